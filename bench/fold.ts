/**
 * The way up inside one process, from engine outputs to the bytes of a reply: detokenizer → stop strings → parser →
 * items → fold → events, as a server runs them (support/reply-road.ts), without engine and sockets. For each shape of
 * output, number of sequences and size of a step: nanoseconds and heap objects a token, and bytes a second.
 *
 *     npx bun --no-install bench/fold.ts [--check]
 *
 * Every reply is compared with what its text says, so a fast wrong answer fails; so does an object a token.
 */
import { cpus } from "node:os"
import { emptyOutput, Finish } from "../src/ir/engine"
import { cellsMade } from "../test/support/objects-made"
import { foldedItems } from "./support/answers"
import { type Reply, type ReplyForm, ReplyRoad } from "./support/reply-road"

const isCheck = Bun.argv.includes("--check")
const repeats = isCheck ? 1 : 3
/** Of one reply, and what one run gives at least, over all its replies. */
const replyTokens = isCheck ? 100 : 1_000
const runTokens = isCheck ? 0 : 100_000
const sequenceCounts = isCheck ? [8] : [1, 64, 512]
const longReplies = isCheck ? [500] : [1_000, 10_000, 100_000]
/** Heap objects other than strings that a token may leave behind in the middle of a reply. */
const objectsPerTokenMax = 0.01

/** Tokens of each step, over and over. */
const steps: { readonly [title: string]: readonly number[] } = {
  "1": [1],
  "1–8": [1, 2, 3, 4, 5, 6, 7, 8],
  "8": [8],
}

const forms: { readonly [title: string]: ReplyForm } = {
  "responses, SSE": { api: "responses", stream: true },
  "chat, SSE": { api: "chat", stream: true },
  "responses, JSON": { api: "responses", stream: false },
  "chat, JSON": { api: "chat", stream: false },
}

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
      const thought = filled(prose, tokens)
      return {
        output: `<think>${thought}</think>Done.`,
        items: [
          ["reasoning", thought],
          ["text", "Done."],
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

const road = await ReplyRoad.open()

/** One sample at one length, as ids and as what a reply of it must hold. */
interface Case {
  readonly sample: Sample
  readonly ids: Uint32Array
  readonly items: readonly (readonly [string, string])[]
}

function caseOf(sample: Sample, tokens: number): Case {
  const { output, items } = sample.make(tokens)
  // The end token: the last one of a finished reply, hidden from the text.
  return { sample, ids: Uint32Array.of(...road.encode(output), road.endTokenId), items }
}

/** Plays the engine: gives each reply its next tokens, then lets all write, until the replies have ended. */
function play(replies: readonly Reply[], ids: Uint32Array, step: readonly number[]): number {
  const output = emptyOutput(ids)
  let bytes = 0
  for (let start = 0, turn = 0; start < ids.length; start = output.end, turn++) {
    output.start = start
    output.end = Math.min(ids.length, start + step[turn % step.length]!)
    output.finish = output.end === ids.length ? Finish.stop : Finish.none
    for (let i = 0; i < replies.length; i++) replies[i]!.output(output)
    for (let i = 0; i < replies.length; i++) bytes += replies[i]!.flush()
  }
  return bytes
}

/** The bytes of one reply, after its text was read and compared. */
function checkedBytes(form: ReplyForm, { sample, ids, items }: Case, step: readonly number[]): number {
  const reply = road.request(form, sample.stop)()
  const output = emptyOutput(ids)
  const text: string[] = []
  let bytes = reply.flush(text)
  for (let start = 0, turn = 0; start < ids.length; start = output.end, turn++) {
    output.start = start
    output.end = Math.min(ids.length, start + step[turn % step.length]!)
    output.finish = output.end === ids.length ? Finish.stop : Finish.none
    reply.output(output)
    bytes += reply.flush(text)
  }
  const { items: got, tokens } = foldedItems(form.api, form.stream, text.join(""))
  if (!Bun.deepEquals(got, items)) throw new Error(`wrong items: ${JSON.stringify(got).slice(0, 400)}`)
  if (tokens !== ids.length) throw new Error(`wrong count: ${tokens} tokens instead of ${ids.length}`)
  return bytes
}

interface Measured {
  /** Nanoseconds of processor time a token, all threads of the process, ascending. */
  readonly ns: readonly number[]
  /** Of the fastest run. */
  readonly megabytesPerSecond: number
  readonly objects: number
  readonly strings: number
}

function measure(form: ReplyForm, of: Case, step: readonly number[], sequences: number): Measured {
  const { ids, sample } = of
  const bytes = checkedBytes(form, of, step)
  const start = road.request(form, sample.stop)
  const rounds = Math.max(1, Math.ceil(runTokens / (sequences * ids.length)))
  const ns: number[] = []
  for (let repeat = isCheck ? 0 : -1; repeat < repeats; repeat++) {
    const groups = Array.from({ length: rounds }, () => Array.from({ length: sequences }, start))
    Bun.gc(true)
    const before = process.cpuUsage()
    let written = 0
    for (const replies of groups) {
      for (const reply of replies) written += reply.flush()
      written += play(replies, ids, step)
    }
    const { user, system } = process.cpuUsage(before)
    if (repeat >= 0) ns.push(((user + system) * 1_000) / (rounds * sequences * ids.length)) // the first warms the code
    const expected = bytes * sequences * rounds
    if (written !== expected) throw new Error(`${written} bytes instead of ${expected}`)
    for (const { fold, ended } of groups.flat()) {
      const right = fold.items.every(({ kind, text }, at) => kind === of.items[at]?.[0] && text === of.items[at]?.[1])
      if (!ended || !right) throw new Error("a reply is not the one that was checked")
    }
  }
  ns.sort((a, b) => a - b)
  return { ns, megabytesPerSecond: (bytes / (ids.length * ns[0]!)) * 1_000, ...cellsPerToken(form, of, step) }
}

/** What a token leaves on the heap in the middle of a reply: items are open, nothing ends. */
function cellsPerToken(form: ReplyForm, { sample, ids }: Case, step: readonly number[]) {
  const reply = road.request(form, sample.stop)()
  const output = emptyOutput(ids)
  let turn = 0
  const some = (tokens: number) => {
    for (const end = output.end + tokens; output.end < end; turn++) {
      output.start = output.end
      output.end = Math.min(end, output.start + step[turn % step.length]!)
      reply.output(output)
      reply.flush()
    }
  }
  const piece = Math.floor(ids.length / 8)
  some(piece)
  // What other threads compile meanwhile adds a few cells to some of the counts.
  const counts = [1, 2, 3].map(() => cellsMade(() => some(piece)))
  const objects = Math.min(...counts.map((cells) => cells.objects)) / piece
  const strings = Math.min(...counts.map((cells) => cells.strings)) / piece
  if (!isCheck && objects > objectsPerTokenMax)
    throw new Error(`${sample.title}, ${form.api}: ${objects} objects a token`)
  return { objects, strings }
}

const column = 29

function print(cells: readonly (string | number)[]): void {
  const [title, first, second, ...measured] = cells
  const head = [String(title).padStart(12), String(first).padStart(9), String(second).padStart(7)]
  console.log([...head, ...measured.map((cell) => String(cell).padStart(column))].join("  "))
}

function shown({ ns, megabytesPerSecond, strings, objects }: Measured): string {
  const time = `${ns[Math.floor(ns.length / 2)]!.toFixed(0)} (${ns[0]!.toFixed(0)}–${ns.at(-1)!.toFixed(0)})`
  return `${time} ${megabytesPerSecond.toFixed(0)} ${strings.toFixed(1)}+${objects.toFixed(2)}`
}

console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores, ${process.platform} ${process.arch}; ` +
    `Bun ${Bun.version}; ${repeats} runs: median (lowest–highest) CPU ns a token, then MB/s of the fastest, then strings and ` +
    "other objects that a token makes",
)
print(["output", "sequences", "a step", ...Object.keys(forms)])
for (const sample of samples) {
  const of = caseOf(sample, replyTokens)
  // What differs with many sequences is memory, not text: three of the samples show it.
  for (const sequences of sample.stop.length > 0 || sample.title === "mixed text" ? [1] : sequenceCounts) {
    for (const [title, step] of Object.entries(steps)) {
      const cells = Object.values(forms).map((form) => shown(measure(form, of, step, sequences)))
      print([sample.title, sequences, title, ...cells])
    }
  }
}

console.log("\nlong replies, one sequence, one token a step")
print(["output", "tokens", "a step", ...Object.keys(forms)])
for (const sample of samples) {
  for (const tokens of longReplies) {
    const of = caseOf(sample, tokens)
    const cells = Object.values(forms).map((form) => shown(measure(form, of, [1], 1)))
    print([sample.title, of.ids.length, "1", ...cells])
  }
}
