import { describe, expect, test } from "bun:test"
import { Items } from "../../src/generate/items"
import { Sequence } from "../../src/generate/sequence"
import { StopFilter } from "../../src/generate/stop"
import { type EngineOutput, emptyOutput, Finish } from "../../src/ir/engine"
import type { Piece } from "../../src/ir/piece"
import type { OutputParser, ParserSink } from "../../src/parser/parser"
import { type ItemCall, RecordingSink } from "../support/recording-sink"

/** Ids are places in this list. `<r>` and `<t>` switch between reasoning and text; `<call>` begins a call. */
const vocabulary = ["Hello", " world", "<eos>", "ST", "OP", "<r>", "<t>", "<call>", "{}", "!", "\n"]

class WordDetokenizer {
  push(id: number, piece: Piece): void {
    piece.add(id, vocabulary[id]!)
  }
  finish(): void {}
}

/** Goes by token, like a real parser does. */
class SwitchParser implements OutputParser {
  reasoningTokens = 0
  private kind: "text" | "reasoning" | "call" = "text"
  push(piece: Piece, sink: ParserSink): void {
    let start = 0
    for (let i = 0; i < piece.count; i++) {
      const text = piece.text.slice(start, piece.ends[i]!)
      start = piece.ends[i]!
      if (text === "<r>") this.kind = "reasoning"
      else if (text === "<t>") {
        if (this.kind === "call") sink.callEnd()
        this.kind = "text"
      } else if (text === "<call>") {
        this.kind = "call"
        sink.callStart("f", "")
      } else if (text === "") continue
      else if (this.kind === "reasoning") {
        this.reasoningTokens += 1
        sink.reasoning(text)
      } else if (this.kind === "call") sink.callArguments(text)
      else sink.text(text)
    }
  }
  finish(): void {}
}

interface Setting {
  readonly stop?: readonly string[]
  readonly include?: boolean
  readonly wantsSteps?: boolean
  readonly intervalTokens?: number
  readonly includeReasoning?: boolean
  readonly parallelToolCalls?: boolean
}

/** Runs steps of `[ids, finish]`; gives the sink's calls, ids of items numbered i0, i1 … */
function run(
  steps: readonly (readonly [readonly number[], Finish])[],
  setting: Setting = {},
): { calls: ItemCall[]; aborted: boolean; ended: boolean[] } {
  const sink = new RecordingSink()
  let items = 0
  let aborted = false
  const ended: boolean[] = []
  const options = {
    includeReasoning: setting.includeReasoning ?? true,
    parallelToolCalls: setting.parallelToolCalls ?? true,
  }
  const sequence = sequenceTo(sink, {
    stop: setting.stop === undefined ? null : new StopFilter(setting.stop, setting.include ?? false, 0),
    items: new Items(sink, options, { item: () => `i${items++}`, call: () => "call" }),
    wantsSteps: setting.wantsSteps ?? false,
    showsStopToken: setting.include ?? false,
    intervalTokens: setting.intervalTokens ?? 1,
    onEnd: (failed) => ended.push(failed),
    abortEngine: () => {
      aborted = true
    },
  })
  for (const [ids, finish] of steps) sequence.output(engineOutput(ids, finish))
  return { calls: sink.calls, aborted, ended }
}

/** A sequence that nothing was asked of but `parts`. */
function sequenceTo(sink: RecordingSink, parts: Partial<ConstructorParameters<typeof Sequence>[0]>): Sequence {
  return new Sequence({
    detokenizer: new WordDetokenizer(),
    stop: null,
    parser: new SwitchParser(),
    items: new Items(sink, { includeReasoning: true, parallelToolCalls: true }, { item: () => "i0", call: () => "" }),
    sink,
    promptTokens: 7,
    wantsSteps: false,
    showsStopToken: false,
    intervalTokens: 1,
    now: () => 5,
    countTokens: () => {},
    onEnd: () => {},
    abortEngine: () => {},
    ...parts,
  })
}

function engineOutput(ids: readonly number[], finish: Finish): EngineOutput {
  return {
    // Views into larger arrays are what engines give.
    ...emptyOutput(Uint32Array.from([99, ...ids])),
    start: 1,
    end: 1 + ids.length,
    finish,
    cachedTokens: 3,
    queuedAt: 1,
    scheduledAt: 2,
  }
}

const text = (index: number): ItemCall & { call: "open" } => ({
  call: "open",
  item: { kind: "text", index, id: `i${index}`, callId: "", name: "" },
})
const reasoning = (index: number): ItemCall => ({
  call: "open",
  item: { kind: "reasoning", index, id: `i${index}`, callId: "", name: "" },
})
const call = (index: number): ItemCall & { call: "open" } => ({
  call: "open",
  item: { kind: "call", index, id: `i${index}`, callId: "call", name: "f" },
})
const delta = (of: string): ItemCall & { call: "delta" } => ({ call: "delta", text: of })
const close = (cut = false): ItemCall & { call: "close" } => ({ call: "close", cut })
const flush: ItemCall = { call: "flush" }
const step = (...tokenIds: number[]): ItemCall => ({ call: "step", tokenIds })

function done(outputTokens: number, finish: "stop" | "length" = "stop", stopReason: string | null = null): ItemCall {
  return {
    call: "done",
    outcome: {
      finish,
      stopReason,
      usage: { promptTokens: 7, outputTokens, reasoningTokens: 0, cachedTokens: 3, cacheWriteTokens: 0 },
      timing: { queuedAt: 1, scheduledAt: 2, firstTokenAt: 5, lastTokenAt: 5, firstTokenCameAt: 5 },
      kvTransferParams: null,
      ecTransferParams: null,
    },
  }
}

test("moments are the engine's: when it was scheduled first, whatever its clock says, and when tokens ended", () => {
  const sink = new RecordingSink()
  const sequence = sequenceTo(sink, {})
  for (const [at, queuedAt, scheduledAt] of [
    [910, 900, 905],
    // Put back, and scheduled again.
    [920, -1, 915],
    [930, -1, -1],
  ] as const) {
    sequence.output({ ...engineOutput([0], at === 930 ? Finish.length : Finish.none), at, queuedAt, scheduledAt })
  }
  expect(sequence.timing()).toEqual({
    queuedAt: 900,
    scheduledAt: 905,
    firstTokenAt: 910,
    lastTokenAt: 930,
    firstTokenCameAt: 5,
  })
})

describe("a sequence", () => {
  test("opens an item on its first text and closes it when the end is known; the end token counts but is not shown", () => {
    const { calls, ended } = run([
      [[0], Finish.none],
      [[1, 2], Finish.stop],
    ])
    expect(calls).toEqual([text(0), delta("Hello"), flush, delta(" world"), close(), done(3)])
    expect(ended).toEqual([false])
  })

  test("marks the last item as cut when the length limit ended it, and only that one", () => {
    const { calls } = run([[[0, 7, 8], Finish.length]])
    expect(calls).toEqual([text(0), delta("Hello"), close(), call(1), delta("{}"), close(true), done(3, "length")])
  })

  test("shows the end token's text when asked to", () => {
    const { calls } = run([[[0, 2], Finish.stop]], { stop: ["never"], include: true })
    expect(calls.filter((each) => each.call === "delta")).toEqual([delta("Hello"), delta("<eos>")])
  })

  test("ends at a stop string, aborts the engine, and drops the tokens behind it from ids and counts", () => {
    const { calls, aborted } = run([[[0, 3, 4, 9, 9], Finish.none]], { stop: ["STOP"], wantsSteps: true })
    expect(calls).toEqual([text(0), delta("Hello"), step(0, 3, 4), close(), done(3, "stop", "STOP")])
    expect(aborted).toBe(true)
  })

  test("does not abort an engine that has just finished by itself", () => {
    const { calls, aborted } = run([[[0, 3, 4], Finish.length]], { stop: ["STOP"] })
    expect(calls.at(-1)).toEqual(done(3, "stop", "STOP"))
    expect(aborted).toBe(false)
  })

  test("calls step after what the step's tokens said, and flush behind it", () => {
    const { calls } = run(
      [
        [[0], Finish.none],
        [[1], Finish.length],
      ],
      { wantsSteps: true },
    )
    expect(calls).toEqual([
      ...[text(0), delta("Hello"), step(0), flush],
      ...[delta(" world"), step(1), close(true), done(2, "length")],
    ])
  })

  test("gathers tokens to the interval, except for the first and the last", () => {
    const { calls } = run(
      [
        [[0], Finish.none],
        [[1], Finish.none],
        [[9], Finish.none],
        [[9], Finish.none],
        [[9], Finish.length],
      ],
      { intervalTokens: 3 },
    )
    expect(calls).toEqual([
      ...[text(0), delta("Hello"), flush, delta(" world"), delta("!"), delta("!"), flush],
      ...[delta("!"), close(true), done(5, "length")],
    ])
  })

  test("hides reasoning without giving it an index", () => {
    const { calls } = run([[[5, 0, 6, 1], Finish.length]], { includeReasoning: false })
    expect(calls.slice(0, 2)).toEqual([text(0), delta(" world")])
  })

  test("shows reasoning as an item of its own", () => {
    const { calls } = run([[[5, 0, 6, 1], Finish.length]])
    expect(calls.slice(0, 5)).toEqual([reasoning(0), delta("Hello"), close(), text(1), delta(" world")])
  })

  test("cuts a call that the model did not end, whatever ended the sequence", () => {
    const { calls } = run([[[7, 8, 3, 4], Finish.none]], { stop: ["STOP"] })
    expect(calls.slice(0, -1)).toEqual([call(0), delta("{}"), close(true)])
  })

  test("takes white space around calls for layout, unless text follows it", () => {
    const { calls } = run([
      [[7, 8, 6, 10], Finish.none],
      [[7, 8, 6, 10], Finish.none],
      [[9, 10], Finish.none],
      [[7, 8, 6, 10], Finish.length],
    ])
    expect(calls.filter((each): boolean => each.call !== "flush").slice(0, -1)).toEqual([
      ...[call(0), delta("{}"), close(), call(1), delta("{}"), close()],
      ...[text(2), delta("\n!"), delta("\n"), close(), call(3), delta("{}"), close(true)],
    ])
  })

  test("drops calls after the first when parallel calls are off", () => {
    const { calls } = run([[[7, 8, 7, 8, 6, 1], Finish.length]], { parallelToolCalls: false })
    expect(calls.slice(0, -1)).toEqual([call(0), delta("{}"), close(), text(1), delta(" world"), close(true)])
  })

  test("closes what is open and fails once; nothing is called afterwards", () => {
    const sink = new RecordingSink()
    const sequence = sequenceTo(sink, { stop: new StopFilter(["STOP"], false, 0) })
    sequence.output(engineOutput([0, 3], Finish.none))
    const error = { kind: "engine_disconnected", message: "gone" } as const
    sequence.fail(error)
    sequence.fail(error)
    sequence.output(engineOutput([1], Finish.none))
    expect(sink.calls).toEqual([
      // What was held back for the stop string comes out: no token is lost.
      ...[text(0), delta("Hello"), flush, delta("ST"), close()],
      { call: "fail", error, usage: null },
    ])
  })

  test("fails with its counts when the engine says that the model failed", () => {
    const { calls, ended } = run([[[0], Finish.error]])
    expect(calls.at(-1)).toEqual({
      call: "fail",
      error: { kind: "engine_failed", message: "the engine ended the sequence with an error" },
      usage: { promptTokens: 7, outputTokens: 1, reasoningTokens: 0, cachedTokens: 3, cacheWriteTokens: 0 },
    })
    expect(ended).toEqual([true])
  })
})
