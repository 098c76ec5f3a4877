/**
 * The way up inside one process: detokenizer → stop strings → parser → items → fold, as `generate/sequence` runs them,
 * without engine, sockets and JSON. Nanoseconds a token, and how many strings and other objects a token leaves behind.
 *
 *     npx bun --no-install bench/fold.ts [--check]
 *
 * Each run's fold is compared with what the text says, so a fast wrong answer fails.
 */
import { cpus } from "node:os"
import { Fold } from "../src/api/fold"
import { Items } from "../src/generate/items"
import { Sequence } from "../src/generate/sequence"
import { StopFilter } from "../src/generate/stop"
import { emptyOutput, Finish } from "../src/ir/engine"
import { builtInProfile } from "../src/model/built-in"
import { chooseParser } from "../src/parser/registry"
import { openO200k } from "../src/tokenizer/open"
import { cellsMade } from "../test/support/objects-made"

const isCheck = Bun.argv.includes("--check")
const sizes = isCheck ? [10, 200] : [10, 100, 1_000, 10_000]
const repeats = isCheck ? 1 : 7
/** Tokens pushed in one repeat, whatever the size of a reply. */
const tokensPerRepeat = isCheck ? 2_000 : 200_000
const tokensPerStep = [1, 8]

/** Model output of about `tokens` tokens and the items that it says. */
interface Sample {
  readonly title: string
  readonly stop: readonly string[]
  make(tokens: number): { readonly output: string; readonly items: readonly (readonly [string, string])[] }
}

const prose = "The kettle hums while rain draws thin lines down the glass, and someone counts the cups. "
const mixed = "Grüße! 東京は晴れ、気温は三度。🌤️ ¿Qué tal? Привет, мир. "
const filled = (text: string, tokens: number) => text.repeat(Math.ceil(tokens / 20))

const samples: readonly Sample[] = [
  { title: "text", stop: [], make: (tokens) => plain(filled(prose, tokens)) },
  { title: "mixed text", stop: [], make: (tokens) => plain(filled(mixed, tokens)) },
  { title: "stop strings", stop: ["\n\nUser:", "cups. And"], make: (tokens) => plain(filled(prose, tokens)) },
  {
    title: "reasoning",
    stop: [],
    make: (tokens) => {
      const half = filled(prose, tokens / 2)
      return {
        output: `<think>${half}</think>${half}`,
        items: [
          ["reasoning", half],
          ["text", half],
        ],
      }
    },
  },
  {
    title: "call",
    stop: [],
    make: (tokens) => {
      const input = JSON.stringify({ note: filled(prose, tokens), list: [1, null, true] })
      return {
        output: `<tool_call>\n{"name": "write", "arguments": ${input}}\n</tool_call>`,
        items: [["call", input]],
      }
    },
  },
]

function plain(text: string) {
  return { output: text, items: [["text", text] as const] }
}

const profile = builtInProfile()
if (profile.tokenizer.kind !== "o200k") throw new Error("the built-in profile has another vocabulary")
const { specialTokens, addedTokens } = profile.tokenizer
const tokenizer = await openO200k({ special: specialTokens, added: addedTokens })
const chosen = chooseParser(profile, "auto", "auto", tokenizer)
if (!chosen.ok) throw new Error(chosen.error.message)
const parsers = chosen.value
const promptTokenIds = encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")

function encode(text: string): Uint32Array {
  const ids = tokenizer.encode(text, { addSpecialTokens: false })
  if (!ids.ok) throw new Error(ids.error.message)
  return ids.value
}

/** Runs one reply through all stages. */
function runOnce(ids: Uint32Array, step: number, stop: readonly string[]): Fold {
  const fold = new Fold()
  const items = new Items(
    fold,
    { includeReasoning: true, parallelToolCalls: true },
    { item: () => "0".repeat(32), call: () => "call_0" },
  )
  const sequence = new Sequence({
    detokenizer: tokenizer.detokenizer(promptTokenIds, false),
    stop: stop.length === 0 ? null : new StopFilter(stop, false, 0),
    parser: parsers.create({ promptTokenIds, parseCalls: true }),
    items,
    sink: fold,
    promptTokens: promptTokenIds.length,
    wantsSteps: false,
    showsStopToken: false,
    intervalTokens: 1,
    now: () => 0,
    countTokens: () => {},
    onEnd: () => {},
    abortEngine: () => {},
  })
  const output = emptyOutput(ids)
  for (let start = 0; start < ids.length; start += step) {
    output.start = start
    output.end = Math.min(ids.length, start + step)
    output.finish = output.end === ids.length ? Finish.stop : Finish.none
    sequence.output(output)
  }
  return fold
}

function checkFold(fold: Fold, expected: readonly (readonly [string, string])[], tokens: number): void {
  const got = fold.items.map(({ kind, text }) => [kind, text])
  if (!Bun.deepEquals(got, expected)) throw new Error(`wrong items: ${JSON.stringify(got).slice(0, 400)}`)
  const counted = fold.outcome?.usage.outputTokens
  if (counted !== tokens) throw new Error(`wrong count: ${counted} tokens instead of ${tokens}`)
}

console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores, ${process.platform} ${process.arch}; ` +
    `Bun ${Bun.version}; ${repeats} runs of ${tokensPerRepeat} tokens: median (lowest–highest)`,
)
const columns: readonly (readonly [string, number])[] = [
  ["output", 12],
  ["tokens", 7],
  ["a step", 6],
  ["ns/token", 20],
  ["strings/token", 13],
  ["objects/token", 13],
]
console.log(columns.map(([title, width]) => title.padStart(width)).join("  "))

for (const { title, stop, make } of samples) {
  for (const size of sizes) {
    const { output, items } = make(size)
    const body = encode(output)
    // The end token: the last one of a finished reply, hidden from the text.
    const ids = Uint32Array.of(...body, profile.eosTokenIds[0]!)
    for (const step of tokensPerStep) {
      const rounds = Math.max(1, Math.round(tokensPerRepeat / ids.length))
      checkFold(runOnce(ids, step, stop), items, ids.length)
      for (let i = 0; i < Math.min(rounds, 50); i++) runOnce(ids, step, stop) // warm code
      const runs: number[] = []
      for (let repeat = 0; repeat < repeats; repeat++) {
        Bun.gc(true)
        const startedAt = Bun.nanoseconds()
        let last: Fold | null = null
        for (let i = 0; i < rounds; i++) last = runOnce(ids, step, stop)
        runs.push((Bun.nanoseconds() - startedAt) / (rounds * ids.length))
        checkFold(last!, items, ids.length)
      }
      const made = cellsMade(() => runOnce(ids, step, stop))
      runs.sort((a, b) => a - b)
      const median = runs[Math.floor(runs.length / 2)]!.toFixed(0)
      const spread = `${median} (${runs[0]!.toFixed(0)}–${runs.at(-1)!.toFixed(0)})`
      const perToken = (cells: number) => (cells / ids.length).toFixed(2)
      const row = [title, ids.length, step, spread, perToken(made.strings), perToken(made.objects)]
      console.log(row.map((cell, at) => String(cell).padStart(columns[at]![1])).join("  "))
    }
  }
}
