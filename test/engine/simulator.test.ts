import { describe, expect, test } from "bun:test"
import { defaultConfig, type SimulatorConfig } from "../../src/config"
import { Simulator } from "../../src/engine/simulator"
import type { Json } from "../../src/ir/conversation"
import type { Engine, EngineError, EngineOutput, LogprobRows } from "../../src/ir/engine"
import type { SamplingParams } from "../../src/ir/sampling"
import { openO200k } from "../../src/tokenizer/open"
import { type EngineUnderTest, engineContract, requestOf, samplingOf, submitTo } from "./contract"
import { ManualClock } from "./manual-clock"
import { RecordingReceiver } from "./recording-receiver"

/** A vocabulary of Latin-1 characters and a few special tokens, so that ids in tests can be read. */
const specials = ["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
const vocabSize = 256 + specials.length
const eos = 256
const endOfText = 258
const special = new RegExp(specials.map((each) => each.replace(/[|]/g, "\\|")).join("|"), "g")

function encode(text: string): Uint32Array {
  const ids: number[] = []
  let from = 0
  const plain = (part: string): void => {
    for (const char of part) ids.push(char.charCodeAt(0) & 0xff)
  }
  for (const match of text.matchAll(special)) {
    plain(text.slice(from, match.index))
    ids.push(256 + specials.indexOf(match[0]))
    from = match.index + match[0].length
  }
  plain(text.slice(from))
  return Uint32Array.from(ids)
}

function decode(tokenIds: Uint32Array): string {
  return Array.from(tokenIds, (id) => (id < 256 ? String.fromCharCode(id) : (specials[id - 256] ?? ""))).join("")
}

const settings: SimulatorConfig = { ...defaultConfig.simulator, stepMs: 10, prefillMs: 5, restartMs: 1_000 }

function stage(changes: Partial<SimulatorConfig> = {}, queuedRequestsMax: number | null = null) {
  const clock = new ManualClock()
  const engine = new Simulator({ ...settings, ...changes }, { encode, decode, vocabSize, clock, queuedRequestsMax })
  return { clock, engine }
}

function scripted(script: { readonly [key: string]: Json }, sampling: Partial<SamplingParams> = {}) {
  return requestOf([104, 105], samplingOf({ ...sampling, extraArgs: script }), [eos, endOfText])
}

/** Runs one request to its end and gives what the receiver saw. */
function run(
  script: { readonly [key: string]: Json },
  sampling: Partial<SamplingParams> = {},
  changes: Partial<SimulatorConfig> = {},
): RecordingReceiver {
  const { clock, engine } = stage(changes)
  const { receiver } = submitTo(engine, scripted(script, sampling))
  clock.runOut()
  expect(receiver.brokenRules).toEqual([])
  expect(engine.status()).toMatchObject({ running: 0, waiting: 0 })
  return receiver
}

function refusal(script: { readonly [key: string]: Json }, changes: Partial<SimulatorConfig> = {}) {
  const { engine } = stage(changes)
  const submitted = engine.submit(scripted(script), new RecordingReceiver())
  return submitted.ok ? null : submitted.error
}

engineContract("simulator", async (): Promise<EngineUnderTest> => {
  const engine = new Simulator({ ...settings, stepMs: 1, prefillMs: 0 }, { encode, decode, vocabSize })
  const errors: { readonly [kind in EngineError["kind"]]?: string } = {
    engine_retryable: "retryable",
    engine_disconnected: "disconnect",
    engine_validation: "validation",
    engine_dead: "fatal",
  }
  return {
    engine,
    vocabSize,
    eosTokenId: eos,
    request: (tokenIds, sampling, failure) => {
      const script = { sim_token_ids: [...tokenIds] }
      if (failure === null) return scripted(script, sampling)
      const error = errors[failure.kind]
      if (error === undefined) return null
      return scripted({ ...script, sim_error: error, sim_fail_after_tokens: failure.afterTokens }, sampling)
    },
    dispose: async () => {},
  }
})

describe("scripts", () => {
  test("give the text, special tokens as ids, then EOS, one token a step", () => {
    const receiver = run({ sim_text: "<think>a</think>b" })
    expect(receiver.outputs).toEqual([
      { tokenIds: [259], finish: null, stopTokenId: -1 },
      { tokenIds: [97], finish: null, stopTokenId: -1 },
      { tokenIds: [260], finish: null, stopTokenId: -1 },
      { tokenIds: [98], finish: null, stopTokenId: -1 },
      { tokenIds: [eos], finish: "stop", stopTokenId: -1 },
    ])
  })

  test("take tokens per step from a number or a list, whose last number repeats and whose zeros are silent steps", () => {
    const sizes = (script: { readonly [key: string]: Json }): number[] =>
      run({ sim_text: "abcdefg", ...script }).outputs.map((output) => output.tokenIds.length)
    expect(sizes({ sim_tokens_per_step: 3 })).toEqual([3, 3, 2])
    expect(sizes({ sim_tokens_per_step: [3, 1, 2] })).toEqual([3, 1, 2, 2])
    expect(sizes({ sim_tokens_per_step: [0, 0, 8] })).toEqual([8])
    expect(sizes({ sim_tokens_per_step: 65_536 })).toEqual([8])
  })

  test("end with another finish at the last token of the text, without EOS", () => {
    for (const finish of ["length", "abort", "repetition", "error"] as const) {
      expect(run({ sim_text: "ab", sim_finish: finish }).outputs).toEqual([
        { tokenIds: [97], finish: null, stopTokenId: -1 },
        { tokenIds: [98], finish, stopTokenId: -1 },
      ])
    }
    expect(run({ sim_text: "", sim_finish: "length" }).outputs).toEqual([
      { tokenIds: [], finish: "length", stopTokenId: -1 },
    ])
    expect(run({ sim_text: "" }).outputs).toEqual([{ tokenIds: [eos], finish: "stop", stopTokenId: -1 }])
  })

  test("fail before the first token, or behind the tokens asked for", () => {
    const ends = (script: { readonly [key: string]: Json }): unknown => {
      const receiver = run({ sim_text: "abc", ...script })
      return [decode(Uint32Array.from(receiver.tokenIds)), receiver.error?.kind ?? receiver.finish]
    }
    expect(ends({ sim_error: "retryable" })).toEqual(["", "engine_retryable"])
    expect(ends({ sim_error: "validation" })).toEqual(["", "engine_validation"])
    expect(ends({ sim_error: "disconnect", sim_fail_after_tokens: 2 })).toEqual(["ab", "engine_disconnected"])
    expect(ends({ sim_error: "fatal", sim_fail_after_tokens: 3 })).toEqual(["abc", "engine_dead"])
    expect(ends({ sim_fail_after_tokens: 1, sim_tokens_per_step: 9 })).toEqual(["a", "engine_retryable"])
    expect(ends({ sim_fail_after_tokens: 3, sim_finish: "length" })).toEqual(["abc", "engine_retryable"])
    expect(ends({ sim_fail_after_tokens: 99 })).toEqual(["abc<|im_end|>", "stop"])
  })

  test("that make no sense are refused at once, each with the key's name and param vllm_xargs", () => {
    const wrong: { readonly [key: string]: Json }[] = [
      { sim_text: 1 },
      { sim_text: null },
      { sim_text: "a", sim_token_ids: [1] },
      { sim_words: "a" },
      { sim_token_ids: "1" },
      { sim_token_ids: [vocabSize] },
      { sim_token_ids: [-1] },
      { sim_token_ids: [1.5] },
      { sim_token_ids: [10n ** 20n] },
      { sim_tokens_per_step: 0 },
      { sim_tokens_per_step: [] },
      { sim_tokens_per_step: [1, 0] },
      { sim_tokens_per_step: [1, "1"] },
      { sim_tokens_per_step: 65_537 },
      { sim_step_ms: -1 },
      { sim_step_ms: "5" },
      { sim_step_ms: null },
      { sim_finish: "eos" },
      { sim_finish: null },
      { sim_error: "none" },
      { sim_fail_after_tokens: -1 },
      { sim_fail_after_tokens: 1.5 },
      { sim_cached_tokens: "3" },
      { sim_cache_write_tokens: [3] },
    ]
    for (const script of wrong) {
      const error = refusal(script)
      expect(error, JSON.stringify(Object.keys(script))).toMatchObject({
        kind: "engine_validation",
        param: "vllm_xargs",
      })
      expect(error!.message).toContain(Object.keys(script)[0]!)
    }
  })

  test("are refused where the server takes none, while other keys of vllm_xargs are left alone", () => {
    expect(refusal({ sim_text: "a" }, { allowScripts: false })).toMatchObject({
      kind: "engine_validation",
      param: "vllm_xargs",
    })
    expect(refusal({ other: "a" }, { allowScripts: false })).toBeNull()
    expect(refusal({ other: "a" })).toBeNull()
  })

  test("say what the prefix cache held, never more than the prompt has", () => {
    const seen: number[][] = []
    const { clock, engine } = stage()
    const { receiver } = submitTo(engine, scripted({ sim_text: "a", sim_cached_tokens: 1, sim_cache_write_tokens: 9 }))
    receiver.onOutput = (output) => seen.push([output.cachedTokens, output.cacheWriteTokens])
    clock.runOut()
    expect(seen).toEqual([
      [1, 2],
      [1, 2],
    ])
  })
})

describe("stopping", () => {
  test("at the first EOS keeps its id to itself; a further EOS is named, as the real engine does", () => {
    expect(run({ sim_text: "a<|im_end|>b" }).outputs.at(-1)).toEqual({
      tokenIds: [eos],
      finish: "stop",
      stopTokenId: -1,
    })
    expect(run({ sim_text: "a<|endoftext|>b" }).outputs.at(-1)).toEqual({
      tokenIds: [endOfText],
      finish: "stop",
      stopTokenId: endOfText,
    })
  })

  test("on EOS or stop ids waits for minTokens, for which the text is repeated", () => {
    const receiver = run({ sim_text: "abc" }, { minTokens: 5 })
    expect(decode(Uint32Array.from(receiver.tokenIds))).toBe("abcab<|im_end|>")
    const stopId = run({ sim_text: "abcabc" }, { minTokens: 3, stopTokenIds: [98] })
    expect(decode(Uint32Array.from(stopId.tokenIds))).toBe("abcab")
    expect(run({ sim_text: "" }, { minTokens: 5 }).tokenIds).toEqual([eos])
  })

  test("under ignoreEos only comes with maxTokens or a stop id; the text loops", () => {
    const looped = run({ sim_text: "abc", sim_tokens_per_step: 4 }, { ignoreEos: true, maxTokens: 10 })
    expect(decode(Uint32Array.from(looped.tokenIds))).toBe("abcabcabca")
    expect(looped.finish).toBe("length")
    const stopped = run({ sim_text: "ab<|im_end|>" }, { ignoreEos: true, stopTokenIds: [eos] })
    expect(stopped.outputs.at(-1)).toEqual({ tokenIds: [eos], finish: "stop", stopTokenId: eos })
    const told = run({ sim_text: "abc", sim_finish: "repetition" }, { ignoreEos: true })
    expect([told.tokenIds.length, told.finish]).toEqual([3, "repetition"])
  })

  test("of a model without EOS comes at the last token", () => {
    const { clock, engine } = stage()
    const { receiver } = submitTo(engine, requestOf([1], samplingOf({ extraArgs: { sim_text: "ab" } }), []))
    clock.runOut()
    expect([receiver.tokenIds, receiver.finish]).toEqual([[97, 98], "stop"])
  })
})

describe("time", () => {
  test("sequences of one pace share their steps, on a grid, behind their prefill", () => {
    const { clock, engine } = stage()
    const times: string[] = []
    const submitAt = (at: number, name: string): void => {
      clock.moveTo(at)
      const { receiver } = submitTo(engine, scripted({ sim_text: "ab" }))
      receiver.onOutput = () => times.push(`${name}${clock.now()}`)
    }
    submitAt(1, "first ")
    submitAt(4, "second ")
    submitAt(6, "third ")
    clock.runOut()
    expect(times).toEqual([
      ...["first 10", "second 10", "first 20", "second 20", "third 20"],
      ...["first 30", "second 30", "third 30", "third 40"],
    ])
  })

  test("a script's own pace begins with the first token", () => {
    const { clock, engine } = stage()
    const times: number[] = []
    const { receiver } = submitTo(engine, scripted({ sim_text: "ab", sim_step_ms: 250 }))
    receiver.onOutput = () => times.push(clock.now())
    clock.runOut()
    expect(times).toEqual([10, 260, 510])
  })

  test("a late step skips those it missed and stays on the grid", () => {
    const { clock, engine } = stage()
    const times: number[] = []
    const { receiver } = submitTo(engine, scripted({ sim_text: "abc" }))
    receiver.onOutput = () => {
      times.push(clock.now())
      if (times.length === 1) clock.moveTo(37)
    }
    clock.runOut()
    // The step at 10 lasted until 37: the one at 20 is late at once, those at 30 are lost.
    expect(times).toEqual([10, 37, 40, 50])
  })

  test("outputs say when the sequence came and when it began", () => {
    const { clock, engine } = stage({ sequencesMax: 1 })
    clock.moveTo(2)
    submitTo(engine, scripted({ sim_text: "" }))
    clock.moveTo(3)
    const { receiver } = submitTo(engine, scripted({ sim_text: "" }))
    const seen: number[][] = []
    receiver.onOutput = (output) => seen.push([output.queuedAt, output.scheduledAt])
    clock.runOut()
    expect(seen).toEqual([[0.003, 0.01]])
  })

  test("an idle engine holds no timer", () => {
    const { clock, engine } = stage()
    expect(clock.pending).toBe(0)
    const { sequence } = submitTo(engine, scripted({ sim_text: "a" }))
    expect(clock.pending).toBe(1)
    sequence.abort()
    expect(clock.pending).toBe(0)
  })
})

describe("queue", () => {
  test("runs sequencesMax at once; the rest wait by priority, then in their order", () => {
    const { clock, engine } = stage({ sequencesMax: 1 })
    const order: string[] = []
    for (const [name, priority] of [
      ["a", 0],
      ["b", 5],
      ["c", 0],
      ["d", -1],
    ] as const) {
      const { receiver } = submitTo(engine, { ...scripted({ sim_text: name }), priority })
      receiver.onOutput = (output) => {
        if (output.tokenIds[0] !== eos) order.push(decode(output.tokenIds.subarray(0, 1)))
      }
    }
    expect(engine.status()).toEqual({ alive: true, ready: true, running: 1, waiting: 3, kvCacheUsage: 1, engines: [] })
    clock.runOut()
    expect(order).toEqual(["a", "d", "c", "b"])
    expect(engine.status()).toEqual({ alive: true, ready: true, running: 0, waiting: 0, kvCacheUsage: 0, engines: [] })
  })

  test("over its limit refuses as retryable", () => {
    const { engine } = stage({ sequencesMax: 1 }, 1)
    submitTo(engine, scripted({ sim_text: "a" }))
    submitTo(engine, scripted({ sim_text: "a" }))
    expect(engine.submit(scripted({ sim_text: "a" }), new RecordingReceiver())).toMatchObject({
      ok: false,
      error: { kind: "engine_retryable" },
    })
  })

  test("lets the next one in as soon as one is aborted", () => {
    const { clock, engine } = stage({ sequencesMax: 1 })
    const first = submitTo(engine, scripted({ sim_text: "a" }))
    const second = submitTo(engine, scripted({ sim_text: "b" }))
    const third = submitTo(engine, scripted({ sim_text: "c" }))
    third.sequence.abort()
    expect(engine.status()).toMatchObject({ running: 1, waiting: 1 })
    first.sequence.abort()
    expect(engine.status()).toMatchObject({ running: 1, waiting: 0 })
    clock.runOut()
    expect([first, second, third].map(({ receiver }) => receiver.tokenIds)).toEqual([[], [98, eos], []])
  })
})

describe("failures of the whole engine", () => {
  test("take down what runs and waits until restartMs have passed", () => {
    const { clock, engine } = stage({ sequencesMax: 2 })
    const all = [
      submitTo(engine, scripted({ sim_text: "aaaa" })),
      submitTo(engine, scripted({ sim_text: "bbbb", sim_error: "fatal", sim_fail_after_tokens: 1 })),
      submitTo(engine, scripted({ sim_text: "cccc" })),
    ]
    const again: unknown[] = []
    all[0]!.receiver.fail = (error) => {
      again.push(error.kind, engine.submit(scripted({ sim_text: "a" }), new RecordingReceiver()).ok)
    }
    clock.moveTo(10)
    expect(again).toEqual(["engine_dead", false])
    expect(all.slice(1).map(({ receiver }) => [receiver.tokenIds, receiver.error?.kind])).toEqual([
      [[98], "engine_dead"],
      [[], "engine_dead"],
    ])
    expect(engine.status()).toMatchObject({ alive: false, ready: false, running: 0, waiting: 0 })
    clock.moveTo(1_009)
    expect(engine.status().alive).toBe(false)
    // As an engine of vLLM's that is gone: it comes back, so clients may try again.
    const refused = engine.submit(scripted({ sim_text: "a" }), new RecordingReceiver())
    expect(refused).toMatchObject({ ok: false, error: { kind: "engine_retryable" } })
    clock.moveTo(1_010)
    expect(engine.status()).toMatchObject({ alive: true, ready: true })
    const { receiver } = submitTo(engine, scripted({ sim_text: "a" }))
    clock.runOut()
    expect(receiver.tokenIds).toEqual([97, eos])
  })

  test("a receiver that throws loses its own sequence only, and the bug is raised", () => {
    const { clock, engine } = stage()
    const broken = submitTo(engine, scripted({ sim_text: "a" }))
    const sound = submitTo(engine, scripted({ sim_text: "b" }))
    broken.receiver.onOutput = () => {
      throw new Error("a bug")
    }
    expect(() => clock.moveTo(10)).toThrow("a bug")
    clock.runOut()
    expect(sound.receiver.tokenIds).toEqual([98, eos])
    expect(engine.status()).toMatchObject({ running: 0 })
  })

  test("closing from inside an output leaves that output as it was", () => {
    const { clock, engine } = stage()
    const first = submitTo(engine, scripted({ sim_text: "a" }))
    const second = submitTo(engine, scripted({ sim_text: "b" }))
    const seen: number[] = []
    first.receiver.onOutput = (output) => {
      first.receiver.onOutput = () => {}
      void engine.close()
      seen.push(output.end, output.finish)
    }
    clock.runOut()
    expect(seen).toEqual([1, -1])
    expect([first.receiver.finish, second.receiver.finish]).toEqual(["abort", "abort"])
    expect(second.receiver.tokenIds).toEqual([])
  })
})

describe("logprobs", () => {
  interface Rows {
    readonly width: number
    readonly ids: number[][]
    readonly logprobs: number[][]
    readonly ranks: number[]
  }

  function copy(rows: LogprobRows, count: number): Rows {
    const row = <T>(list: ArrayLike<T>, i: number): T[] => Array.from(list).slice(i * rows.width, (i + 1) * rows.width)
    const each = Array.from({ length: count }, (_, i) => i)
    return {
      width: rows.width,
      ids: each.map((i) => row(rows.tokenIds, i)),
      logprobs: each.map((i) => row(rows.logprobs, i)),
      ranks: Array.from(rows.ranks.subarray(0, count)),
    }
  }

  function rowsOf(sampling: Partial<SamplingParams>, perStep = 4): { output: Rows[]; prompt: (Rows | null)[] } {
    const { clock, engine } = stage()
    const request = requestOf(
      [1, 2, 3, 4],
      samplingOf({ ...sampling, extraArgs: { sim_text: "abcdefgh", sim_tokens_per_step: perStep } }),
      [eos],
    )
    const { receiver } = submitTo(engine, request)
    const seen = { output: [] as Rows[], prompt: [] as (Rows | null)[] }
    receiver.onOutput = (output: EngineOutput) => {
      if (output.logprobs !== null) seen.output.push(copy(output.logprobs, output.end - output.start))
      const prompt = output.promptLogprobs
      seen.prompt.push(prompt === null ? null : copy(prompt, prompt.ranks.length))
    }
    clock.runOut()
    return seen
  }

  function checkRow(ids: number[], logprobs: number[], rank: number, alternatives: number): void {
    const used = ids.filter((id) => id !== -1)
    const others = logprobs.slice(1, used.length)
    expect(new Set(used).size).toBe(used.length)
    expect(used.filter((id) => id < 0 || id >= vocabSize)).toEqual([])
    expect(logprobs.every(Number.isFinite)).toBe(true)
    expect(others).toEqual([...others].sort((a, b) => b - a))
    expect(new Set(logprobs.slice(0, used.length)).size).toBe(used.length)
    expect(used.length).toBe(rank <= alternatives ? alternatives : alternatives + 1)
    if (alternatives > 0)
      expect(others.filter((logprob) => logprob > logprobs[0]!).length).toBe(Math.min(rank - 1, alternatives))
    expect(logprobs.slice(0, used.length).reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeLessThan(1)
  }

  test("begin with the sampled token, then the best alternatives; the sampled one is not repeated", () => {
    const { output } = rowsOf({ logprobs: 3 })
    expect(output.map((rows) => [rows.width, rows.ids.length])).toEqual([
      [4, 4],
      [4, 4],
      [4, 1],
    ])
    expect(output.flatMap((rows) => rows.ids.map((ids) => ids[0]))).toEqual([...encode("abcdefgh"), eos])
    for (const rows of output)
      for (const [i, ids] of rows.ids.entries()) checkRow(ids, rows.logprobs[i]!, rows.ranks[i]!, 3)
    expect(new Set(output.flatMap((rows) => rows.ranks)).size).toBeGreaterThan(1)
  })

  test("of 0 hold the sampled token only; -1 is the whole of a small vocabulary", () => {
    expect(rowsOf({ logprobs: 0 }).output[0]).toMatchObject({ width: 1, ids: [[97], [98], [99], [100]] })
    const all = rowsOf({ logprobs: -1 }).output[0]!
    expect(all.width).toBe(vocabSize + 1)
    checkRow(all.ids[0]!, all.logprobs[0]!, all.ranks[0]!, vocabSize)
  })

  test("do not depend on how tokens fall into steps, and repeat with the same seed only", () => {
    const flat = (sampling: Partial<SamplingParams>, perStep: number): unknown[] =>
      rowsOf({ logprobs: 2, ...sampling }, perStep).output.flatMap((rows) =>
        rows.ids.map((ids, i) => [ids, rows.logprobs[i], rows.ranks[i]]),
      )
    expect(flat({}, 1)).toEqual(flat({}, 4))
    expect(flat({ seed: 5n }, 3)).toEqual(flat({ seed: 5n }, 4))
    expect(flat({ seed: 5n }, 4)).not.toEqual(flat({ seed: 6n }, 4))
    expect(flat({ seed: 2n ** 62n }, 4)).not.toEqual(flat({ seed: 2n ** 61n }, 4))
  })

  test("at temperature 0 always show the most likely token", () => {
    expect(new Set(rowsOf({ logprobs: 1, temperature: 0 }).output.flatMap((rows) => rows.ranks))).toEqual(new Set([1]))
  })

  test("for given ids show exactly these, with the numbers that ranking gives them", () => {
    const all = rowsOf({ logprobs: -1 }).output[0]!
    const some = rowsOf({ logprobTokenIds: [200, 97, 7] }).output[0]!
    expect(some.width).toBe(4)
    expect(some.ids[0]).toEqual([97, 200, 7, -1])
    expect(some.ids[1]).toEqual([98, 200, 97, 7])
    for (const [i, ids] of some.ids.entries()) {
      for (const [j, id] of ids.entries()) {
        if (id === -1) continue
        expect(some.logprobs[i]![j]).toBe(all.logprobs[i]![all.ids[i]!.indexOf(id)]!)
      }
    }
    const { engine } = stage()
    const refused = engine.submit(scripted({}, { logprobTokenIds: [vocabSize] }), new RecordingReceiver())
    expect(refused).toMatchObject({ ok: false, error: { kind: "engine_validation", param: "logprob_token_ids" } })
  })

  test("of the prompt come with the first output, for its tokens from the second on", () => {
    const { prompt } = rowsOf({ promptLogprobs: 2 })
    expect(prompt.map((rows) => rows === null)).toEqual([false, true, true])
    expect(prompt[0]).toMatchObject({ width: 3 })
    expect(prompt[0]!.ids.map((ids) => ids[0])).toEqual([2, 3, 4])
    for (const [i, ids] of prompt[0]!.ids.entries()) checkRow(ids, prompt[0]!.logprobs[i]!, prompt[0]!.ranks[i]!, 2)
  })
})

describe("the answer without a script", () => {
  function answer(prompt: string, sampling: Partial<SamplingParams> = {}): string {
    const { clock, engine } = stage()
    const { receiver } = submitTo(engine, requestOf([...encode(prompt)], samplingOf(sampling), [eos]))
    clock.runOut()
    return decode(Uint32Array.from(receiver.tokenIds))
  }

  const chat = (turn: string): string =>
    `<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\n${turn}<|im_end|>\n<|im_start|>assistant\n`
  const note = "\n\n(Written by the simulator; no model is running.)<|im_end|>"

  test("repeats the last user turn and ends with EOS", () => {
    expect(answer(chat("What is a sluice?"))).toBe(`You said: What is a sluice?${note}`)
    expect(answer(chat(""))).toBe(`You said: an empty prompt${note}`)
  })

  test("repeats the end of a prompt without turns, and of a turn that is longer than what is looked at", () => {
    expect(answer("Once upon a time")).toBe(`You said: Once upon a time${note}`)
    // The test's vocabulary keeps the low byte of a character only, which makes an ampersand of the ellipsis.
    expect(answer(chat(`${"x".repeat(5_000)} the end`))).toBe(`You said: &${"x".repeat(192)} the end${note}`)
    expect(answer(chat("y".repeat(500)))).toBe(`You said: ${"y".repeat(200)}&${note}`)
  })

  test("never makes a special token out of what it repeats", () => {
    const { clock, engine } = stage()
    const quoted = [...encode(chat("say "))]
    const at = quoted.lastIndexOf(eos)
    quoted.splice(at, 0, ...encode("<tool_call>"), ...encode("<think>"))
    const { receiver } = submitTo(engine, requestOf(quoted, samplingOf({}), [eos]))
    clock.runOut()
    expect(receiver.tokenIds.filter((id) => id >= 256)).toEqual([eos])
    expect(decode(Uint32Array.from(receiver.tokenIds))).toContain("say <tool_call><think>")
  })

  test("depends on the seed only, and loops under ignoreEos", () => {
    expect(new Set([0n, 1n, 2n, 3n, 4n, 5n, 6n].map((seed) => answer(chat("hi"), { seed }))).size).toBe(3)
    expect(answer(chat("hi"), { seed: 3n })).toBe(answer(chat("hi"), { seed: 3n }))
    expect(answer(chat("hi"), { ignoreEos: true, maxTokens: 1_000 })).toHaveLength(1_000)
  })

  test("goes through a real tokenizer", async () => {
    const tokenizer = await openO200k({ special: { "<|im_start|>": 200_019, "<|im_end|>": 200_020 }, added: {} })
    const clock = new ManualClock()
    const engine: Engine = new Simulator(settings, {
      encode: (text) => {
        const encoded = tokenizer.encode(text, { addSpecialTokens: false })
        return encoded.ok ? encoded.value : new Uint32Array(0)
      },
      decode: (ids) => tokenizer.decode(ids, false),
      vocabSize: tokenizer.vocabSize,
      clock,
    })
    const prompt = tokenizer.encode(chat("Grüße an 東京 👩‍👩‍👧, <b>bold</b>"), { addSpecialTokens: false })
    const request = requestOf(prompt.ok ? [...prompt.value] : [], samplingOf({ logprobs: -1 }), [200_020])
    const { receiver } = submitTo(engine, request)
    clock.runOut()
    expect(tokenizer.decode(Uint32Array.from(receiver.tokenIds), true)).toBe(
      "You said: Grüße an 東京 👩‍👩‍👧, <b>bold</b>\n\n(Written by the simulator; no model is running.)",
    )
  })
})
