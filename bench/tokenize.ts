/**
 * Text → ids: our tokenizer beside others, one table a run, in Markdown.
 *
 *     npx bun --no-install bench/tokenize.ts [--check] [--npm] [--python] [--only gigatoken] [--vocabularies qwen3,o200k_base]
 *
 * `--npm` and `--python` install and run the peers of bench/peers. Ids are compared with the reference's (golden texts)
 * and every peer's with ours, so a fast wrong answer is marked. Vocabularies come from test/vocab.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { loadBytes } from "../src/tokenizer/load"
import texts from "../test/tokenizer/golden/texts.json"
import { longTexts } from "../test/tokenizer/golden-texts"
import { sampleTexts, stretches, type TextKind } from "./support/sample-texts"
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
const names = (flags.vocabularies ?? (flags.check ? "qwen3,o200k_base" : "qwen3,llama3_1,o200k_base,gemma3")).split(",")
const roundMs = flags.check ? 5 : 40
const rounds = flags.check ? 2 : 15
const largeBytes = flags.check ? 32_000 : 1_000_000
const longLength = flags.check ? 10_000 : 100_000
/** Peers on npm get shorter ones: their worst cases take time by the square. */
const longLengthNpm = 10_000
const peerWorstMsMax = 5_000

interface Case {
  readonly column: string
  readonly kind: TextKind
  readonly bytes: number
  /** The first pass over a text, by a tokenizer that has only seen another kind. */
  readonly first?: boolean
}

const cases: readonly Case[] = [
  { column: "first en 1 MB", kind: "english", bytes: largeBytes, first: true },
  { column: "en 100 B", kind: "english", bytes: 100 },
  { column: "en 1 KB", kind: "english", bytes: 1_000 },
  { column: "en 32 KB", kind: "english", bytes: 32_000 },
  ...(["english", "code", "multilingual", "chat"] as const).map((kind) => ({
    column: `${{ english: "en", code: "code", multilingual: "multi", chat: "chat" }[kind]} 1 MB`,
    kind,
    bytes: largeBytes,
  })),
  { column: "multi 1 KB", kind: "multilingual", bytes: 1_000 },
]

const sample = sampleTexts(largeBytes)
const inputs = new Map(
  cases.map(({ column, kind, bytes }) => {
    const text = sample.texts.get(kind)!
    return [column, bytes >= largeBytes ? [text] : stretches(text, bytes, 200)]
  }),
)
const long = longTexts(longLength)
const longNpm = longTexts(longLengthNpm)

/** CPU seconds for one input: the best of some rounds, as with Python's peers. Others only make a round slower. */
function secondsFor(encode: (text: string) => unknown, all: readonly string[]): number {
  let best = Infinity
  let at = 0
  for (let round = 0; round < rounds; round++) {
    const startedAt = cpuSeconds()
    let count = 0
    let spent = 0
    do {
      for (let i = 0; i < all.length; i++) {
        encode(all[at]!)
        at = at + 1 === all.length ? 0 : at + 1
        count += 1
      }
      spent = cpuSeconds() - startedAt
    } while (spent < roundMs / 1e3)
    best = Math.min(best, spent / count)
    if (spent > 5) break
  }
  return best
}

function rowOf(vocabulary: string, peer: Peer, ours: Map<TextKind, Uint32Array>): PeerRow {
  const values: { [column: string]: number } = {}
  const encode = (text: string): unknown => peer.encode(text)
  // Warm code, another kind of text: what comes first then is the text's words, not the compiler.
  for (let round = 0; round < (flags.check ? 1 : 3); round++) encode(sample.texts.get("code")!)
  for (const { column, first } of cases) {
    const all = inputs.get(column)!
    if (first === true) {
      const startedAt = cpuSeconds()
      encode(all[0]!)
      values[column] = cpuSeconds() - startedAt
    } else {
      values[column] = secondsFor(encode, all)
    }
  }
  let worst = 0
  for (const text of (peer.name.startsWith("npm") ? longNpm : long).values()) {
    // What comes again: as with words, the first time of a long piece takes longer.
    for (let round = 0; round < 2; round++) encode(text)
    const startedAt = cpuSeconds()
    encode(text)
    worst = Math.max(worst, cpuSeconds() - startedAt)
    if (worst * 1000 > peerWorstMsMax) break
  }
  values.worst = worst
  const same = [...ours].every(([kind, ids]) =>
    Bun.deepEquals(Uint32Array.from(peer.ids(sample.texts.get(kind)!)), ids),
  )
  return { vocabulary, name: peer.name, values, same }
}

/** CPU and wall seconds from a file's bytes to the first ids, of several loads in a row. */
interface Loads {
  /** Nothing of this vocabulary was loaded in this process. */
  readonly first: Seconds
  readonly best: Seconds
}

interface Seconds {
  readonly cpu: number
  readonly wall: number
}

/** Without a cache, and then with one that has the vocabulary; null: the vocabulary has no file. */
function loadSeconds(name: string): { readonly built: Loads; readonly cached: Loads } | null {
  if (name === "o200k_base") return null
  const bytes = new Uint8Array(readFileSync(vocabularyFile(name)))
  const cache = mkdtempSync(join(tmpdir(), "sluice-bench-"))
  const load = (folder: { readonly cache?: string }): Seconds => {
    const [startedAt, cpuAt] = [performance.now(), cpuSeconds()]
    const loaded = loadBytes(bytes, folder)
    if (!loaded.ok) throw new Error(loaded.error.message)
    const ids = loaded.value.encode("Hello", { addSpecialTokens: false })
    if (!ids.ok) throw new Error(ids.error.message)
    return { cpu: cpuSeconds() - cpuAt, wall: (performance.now() - startedAt) / 1000 }
  }
  const loads = (folder: { readonly cache?: string }): Loads => {
    const found = Array.from({ length: flags.check ? 1 : 5 }, () => load(folder))
    const best = { cpu: Math.min(...found.map(({ cpu }) => cpu)), wall: Math.min(...found.map(({ wall }) => wall)) }
    return { first: found[0]!, best }
  }
  try {
    const built = loads({})
    load({ cache })
    return { built, cached: loads({ cache }) }
  } finally {
    rmSync(cache, { recursive: true })
  }
}

function checkAnswers(name: string, peer: Peer): void {
  const { texts: wanted, reference } = vocabularyNamed(name).golden()
  texts.forEach((text, i) => {
    const ids = Array.from(peer.ids(text))
    if (!Bun.deepEquals(ids, [...wanted[i]!]))
      throw new Error(`${name}: ${JSON.stringify(text)}: not ${reference}'s ids`)
  })
}

const megabytes = new Map(cases.map(({ column }) => [column, Buffer.byteLength(inputs.get(column)![0]!) / 1e6]))

function cell(column: string, seconds: number | undefined): string {
  if (seconds === undefined) return "–"
  if (column === "worst") return `${(seconds * 1000).toPrecision(3)} ms`
  if (column === "en 100 B") return `${(seconds * 1e6).toFixed(2)} µs`
  return (megabytes.get(column)! / seconds).toPrecision(3)
}

console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores; Bun ${Bun.version}; ${sample.source}; CPU time; MB/s but for ` +
    `100 B (a call) and the worst of ${long.size} texts of ${longLength} characters (npm: ${longLengthNpm}); best of ${rounds}; ids into the ` +
    "caller's array for sluice",
)
const rows: PeerRow[] = []
const allOurs: { [name: string]: { [kind: string]: number[] } } = {}
const loads: string[] = []
const shown = ({ cpu, wall }: Seconds): string => `${cpu.toFixed(3)} (${wall.toFixed(3)})`

/** A peer that gives up is no row. */
function addRow(peer: Peer, row: () => PeerRow): void {
  try {
    rows.push(row())
  } catch (cause) {
    console.log(`${peer.name}: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

for (const name of names) {
  const load = loadSeconds(name)
  if (load !== null) {
    const { built, cached } = load
    loads.push(`| ${name} | ${[built.first, built.best, cached.first, cached.best].map(shown).join(" | ")} |`)
  }
  const peer = sluicePeer(name)
  checkAnswers(name, peer)
  const ours = new Map([...sample.texts].map(([kind, text]) => [kind, Uint32Array.from(peer.ids(text))]))
  allOurs[name] = Object.fromEntries([...ours].map(([kind, ids]) => [kind, Array.from(ids)]))
  rows.push(rowOf(name, peer, ours))
  if (flags.npm) for (const other of await npmPeers(name)) addRow(other, () => rowOf(name, other, ours))
  Bun.gc(true)
}
if (flags.python) {
  const files = Object.fromEntries(names.map((name) => [name, vocabularyFile(name)]))
  const job = { cases, texts: Object.fromEntries(sample.texts), stretches: Object.fromEntries(inputs) }
  const more = { ids: allOurs, long: Object.fromEntries(long), vocabularies: files }
  rows.push(...(await pythonRows({ what: "encode", only: flags.only, ...job, ...more })))
}
rows.sort((a, b) => names.indexOf(a.vocabulary) - names.indexOf(b.vocabulary))

const columns = [...cases.map(({ column }) => column), "worst"]
console.log(`| vocabulary | tokenizer | ${columns.join(" | ")} | same ids |`)
console.log(`| --- | --- | ${columns.map(() => "---:").join(" | ")} | --- |`)
for (const { vocabulary, name, values, same } of rows) {
  const cells = columns.map((column) => cell(column, values[column]))
  console.log(`| ${vocabulary} | ${name} | ${cells.join(" | ")} | ${same ? "yes" : "no"} |`)
}
console.log("\nLoad, from bytes to the first ids: seconds of CPU (wall)\n")
console.log("| vocabulary | built, first | best | from the cache, first | best |")
console.log("| --- | ---: | ---: | ---: | ---: |")
for (const row of loads) console.log(row)
if (rows.some(({ name, same }) => name === "sluice" && !same)) throw new Error("our ids changed between runs")
