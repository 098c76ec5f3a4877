/**
 * Ids → text, at once and one id at a time: our tokenizer beside others, one table a run, in Markdown.
 *
 *     npx bun --no-install bench/detokenize.ts [--check] [--npm] [--python] [--only gigatoken] [--vocabularies qwen3,o200k_base]
 *
 * Every text is compared with the one that was encoded.
 */
import { cpus } from "node:os"
import { Piece } from "../src/ir/piece"
import type { Tokenizer } from "../src/tokenizer/tokenizer"
import { sampleTexts, type TextKind } from "./support/sample-texts"
import {
  cpuSeconds,
  npmPeers,
  type Peer,
  type PeerRow,
  peerFlags,
  pythonRows,
  sluicePeer,
  vocabularyFile,
  vocabularyNamed,
} from "./support/tokenizer-peers"

const flags = peerFlags()
const names = (flags.vocabularies ?? (flags.check ? "qwen3,llama2" : "qwen3,llama3_1,o200k_base,gemma3")).split(",")
const bytes = flags.check ? 20_000 : 1_000_000
const roundMs = flags.check ? 5 : 40
const rounds = flags.check ? 2 : 15
const kinds: readonly TextKind[] = ["english", "code", "multilingual", "chat"]
const cases = [
  ...kinds.map((kind) => ({ column: `${kind} MB/s`, kind, bytes })),
  ...(["english", "multilingual"] as const).map((kind) => ({ column: `stream ${kind} ns/token`, kind, bytes })),
]

const sample = sampleTexts(bytes)
// What a normalizer changes does not come back: composed characters, and the sign that stands for a blank.
for (const [kind, text] of sample.texts) sample.texts.set(kind, text.normalize("NFC").replaceAll("▁", "_"))

/** CPU seconds of a run: the best of some rounds, as with Python's peers. Others only make a round slower. */
function secondsFor(run: () => void): number {
  let best = Infinity
  for (let round = 0; round < rounds; round++) {
    const startedAt = cpuSeconds()
    let count = 0
    let spent = 0
    do {
      run()
      count += 1
      spent = cpuSeconds() - startedAt
    } while (spent < roundMs / 1e3)
    best = Math.min(best, spent / count)
  }
  return best
}

function rowOf(vocabulary: string, peer: Peer, tokenizer: Tokenizer | null, ids: Map<TextKind, Uint32Array>): PeerRow {
  const values: { [column: string]: number } = {}
  let same = true
  for (const { column, kind } of cases) {
    const list = ids.get(kind)!
    if (!column.startsWith("stream")) {
      values[column] = secondsFor(() => void peer.decode(list))
      same &&= peer.decode(list) === sample.texts.get(kind)
    } else if (tokenizer !== null) {
      values[column] = secondsFor(() => void streamed(tokenizer, list, false)) / list.length
      same &&= streamed(tokenizer, list, true) === sample.texts.get(kind)
    }
  }
  return { vocabulary, name: peer.name, values, same }
}

/** Pushes every id by itself, as a reply's steps do; keeps the text only when it is wanted. */
function streamed(tokenizer: Tokenizer, ids: Uint32Array, keeps: boolean): string {
  const detokenizer = tokenizer.detokenizer(new Uint32Array(0), false)
  const piece = new Piece()
  const parts: string[] = []
  for (let i = 0; i < ids.length; i++) {
    piece.clear()
    detokenizer.push(ids[i]!, piece)
    if (keeps) parts.push(piece.text)
  }
  piece.clear()
  detokenizer.finish(piece)
  if (keeps) parts.push(piece.text)
  return parts.join("")
}

const rows: PeerRow[] = []
const allIds: { [name: string]: { [kind: string]: number[] } } = {}

/** A peer that gives up is no row. */
function addRow(peer: Peer, row: () => PeerRow): void {
  try {
    rows.push(row())
  } catch (cause) {
    console.log(`${peer.name}: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

for (const name of names) {
  const peer = sluicePeer(name)
  const opened = vocabularyNamed(name).open()
  if (!opened.ok) throw new Error(opened.error.message)
  const ids = new Map(kinds.map((kind) => [kind, Uint32Array.from(peer.ids(sample.texts.get(kind)!))]))
  allIds[name] = Object.fromEntries([...ids].map(([kind, list]) => [kind, Array.from(list)]))
  rows.push(rowOf(name, peer, opened.value, ids))
  if (flags.npm) for (const other of await npmPeers(name)) addRow(other, () => rowOf(name, other, null, ids))
  Bun.gc(true)
}
if (flags.python) {
  const files = Object.fromEntries(names.map((name) => [name, vocabularyFile(name)]))
  const job = { cases, texts: Object.fromEntries(sample.texts), stretches: {}, long: {} }
  rows.push(...(await pythonRows({ what: "decode", only: flags.only, vocabularies: files, ids: allIds, ...job })))
}
rows.sort((a, b) => names.indexOf(a.vocabulary) - names.indexOf(b.vocabulary))

console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores; Bun ${Bun.version}; ${sample.source}, ${bytes} ` +
    `bytes of each; CPU time; best of ${rounds}`,
)
console.log(`| vocabulary | tokenizer | ${cases.map(({ column }) => column).join(" | ")} | same text |`)
console.log(`| --- | --- | ${cases.map(() => "---:").join(" | ")} | --- |`)
for (const { vocabulary, name, values, same } of rows) {
  const cells = cases.map(({ column, kind }) => {
    const seconds = values[column]
    if (seconds === undefined) return "–"
    if (column.startsWith("stream")) return (seconds * 1e9).toFixed(1)
    return (Buffer.byteLength(sample.texts.get(kind)!) / 1e6 / seconds).toPrecision(3)
  })
  console.log(`| ${vocabulary} | ${name} | ${cells.join(" | ")} | ${same ? "yes" : "no"} |`)
}
const wrong = rows.filter(({ name, same }) => name === "sluice" && !same)
if (wrong.length > 0) throw new Error(`wrong text: ${wrong.map(({ vocabulary }) => vocabulary).join(", ")}`)
