/**
 * Other tokenizers, behind one small interface. Those on npm live in bench/peers, installed when a bench is asked for
 * them; those in Python run in a process of their own (bench/peers/python_peers.py) and give finished rows.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { WasmTokenizer } from "../../src/tokenizer/wasm-tokenizer"
import { type Vocabulary, vocabularies, vocabularyFolder } from "../../test/tokenizer/vocabularies"

/** What the tokenizer benches are told: a small run with checks, which peers (`only`: of Python's) and vocabularies. */
export function peerFlags() {
  const { values } = parseArgs({
    options: {
      check: { type: "boolean", default: false },
      npm: { type: "boolean", default: false },
      python: { type: "boolean", default: false },
      vocabularies: { type: "string" },
      only: { type: "string" },
    },
  })
  return values
}

/** CPU seconds of this process so far: on shared cores the clock says more about the others than about the code. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** Text ↔ ids of one vocabulary. Special tokens that a text spells out become their ids, where the peer knows them. */
export interface Peer {
  readonly name: string
  /** The fastest call that there is; only its time matters. */
  encode(text: string): unknown
  ids(text: string): ArrayLike<number>
  decode(ids: Uint32Array): string
}

/** What the benches ask Python's tokenizers for. */
export interface PythonJob {
  readonly what: "encode" | "decode"
  /** Names of peers, with commas; absent: all. */
  readonly only?: string | undefined
  /** Vocabulary → tokenizer.json, or ranks of npm `tiktoken`. */
  readonly vocabularies: { readonly [name: string]: string }
  readonly texts: { readonly [kind: string]: string }
  readonly cases: readonly { readonly column: string; readonly kind: string; readonly bytes: number }[]
  readonly stretches: { readonly [column: string]: readonly string[] }
  readonly ids: { readonly [name: string]: { readonly [kind: string]: readonly number[] } }
  readonly long: { readonly [name: string]: string }
}

/** One tokenizer's row: values by column, and whether its ids were ours. */
export interface PeerRow {
  readonly vocabulary: string
  readonly name: string
  readonly values: { readonly [column: string]: number }
  readonly same: boolean
}

const root = join(import.meta.dir, "../..")
const peers = join(root, "bench/peers")

/** Our tokenizer, through calls that users make: ids into the caller's array. */
export function sluicePeer(vocabulary: string): Peer {
  const opened = vocabularyNamed(vocabulary).open()
  if (!opened.ok) throw new Error(`${vocabulary}: ${opened.error.message}`)
  const tokenizer = opened.value
  const options = { addSpecialTokens: false }
  const ids = (text: string): Uint32Array => {
    const encoded = tokenizer.encode(text, options)
    if (!encoded.ok) throw new Error(encoded.error.message)
    return encoded.value
  }
  const out = new Uint32Array(1 << 20)
  const encode = (text: string): unknown =>
    tokenizer instanceof WasmTokenizer ? tokenizer.encodeInto(text, out, options) : ids(text)
  return { name: "sluice", encode, ids, decode: (list) => tokenizer.decode(list, false) }
}

/** A peer whose one way to encode gives the ids. */
function peerOf(name: string, ids: (text: string) => ArrayLike<number>, decode: Peer["decode"]): Peer {
  return { name, encode: ids, ids, decode }
}

/** A vocabulary of the tests by its name; throws for one that is not installed. */
export function vocabularyNamed(name: string): Vocabulary {
  const vocabulary = vocabularies().find((each) => each.name === name)
  if (vocabulary === undefined) throw new Error(`no vocabulary "${name}"`)
  if (vocabulary.missing !== null) throw new Error(vocabulary.missing)
  return vocabulary
}

/** Where Python and the load times find a vocabulary. */
export function vocabularyFile(name: string): string {
  return name === "o200k_base"
    ? join(root, "node_modules/tiktoken/encoders/o200k_base.json")
    : join(vocabularyFolder(name), "tokenizer.json")
}

/** The peers on npm for a vocabulary; installs them when they are not there. */
export async function npmPeers(vocabulary: string): Promise<Peer[]> {
  if (!existsSync(join(peers, "node_modules"))) await command("npm", "ci", "--no-audit", "--no-fund", "--prefix", peers)
  const require = createRequire(join(peers, "package.json"))
  if (vocabulary !== "o200k_base") {
    const {
      Tokenizer,
    }: { Tokenizer: new (json: object, config: object) => HfTokenizer } = require("@huggingface/tokenizers")
    const file = JSON.parse(readFileSync(vocabularyFile(vocabulary), "utf8"))
    const config = JSON.parse(readFileSync(join(vocabularyFolder(vocabulary), "tokenizer_config.json"), "utf8"))
    const tokenizer = new Tokenizer(file, config)
    return [
      peerOf(
        "npm @huggingface/tokenizers",
        (text) => tokenizer.encode(text, { add_special_tokens: false }).ids,
        (ids) => tokenizer.decode(Array.from(ids), { skip_special_tokens: false }),
      ),
    ]
  }
  return [npmTiktoken(require), gptTokenizer(require), aiTokenizer(require)]
}

interface HfTokenizer {
  encode(text: string, options: object): { readonly ids: number[] }
  decode(ids: number[], options: object): string
}

function npmTiktoken(require: NodeJS.Require): Peer {
  type Encoding = { encode(text: string, allowed: "all"): Uint32Array; decode(ids: Uint32Array): Uint8Array }
  const { get_encoding }: { get_encoding(name: string): Encoding } = require("tiktoken")
  const encoding = get_encoding("o200k_base")
  const decoder = new TextDecoder()
  return peerOf(
    "npm tiktoken",
    (text) => encoding.encode(text, "all"),
    (ids) => decoder.decode(encoding.decode(ids)),
  )
}

function gptTokenizer(require: NodeJS.Require): Peer {
  type Encoding = { encode(text: string, options: object): number[]; decode(ids: Iterable<number>): string }
  const { encode, decode }: Encoding = require("gpt-tokenizer/encoding/o200k_base")
  return peerOf(
    "npm gpt-tokenizer",
    (text) => encode(text, { allowedSpecial: "all" }),
    (ids) => decode(ids),
  )
}

function aiTokenizer(require: NodeJS.Require): Peer {
  type Encoding = { encode(text: string, allowed: string[]): number[]; decode(ids: ArrayLike<number>): string }
  const module: { Tokenizer?: new (data: object) => Encoding; default?: new (data: object) => Encoding } =
    require("ai-tokenizer")
  const Encoder = module.Tokenizer ?? module.default!
  const encoding = new Encoder(require("ai-tokenizer/encoding/o200k_base"))
  return peerOf(
    "npm ai-tokenizer",
    (text) => encoding.encode(text, ["<|endoftext|>", "<|endofprompt|>"]),
    (ids) => encoding.decode(Array.from(ids)),
  )
}

/** The peers in Python, in an environment that is made when it is not there. */
export async function pythonRows(job: PythonJob): Promise<PeerRow[]> {
  const environment = join(peers, ".venv")
  const stamp = join(environment, ".installed-requirements")
  const wanted = readFileSync(join(peers, "requirements.txt"), "utf8")
  const python = join(environment, "bin/python")
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
    rmSync(environment, { recursive: true, force: true })
    await command("python3", "-m", "venv", environment)
    await command(python, "-m", "pip", "install", "--quiet", "--requirement", join(peers, "requirements.txt"))
    writeFileSync(stamp, wanted)
  }
  const folder = join(environment, "job")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "job.json"), JSON.stringify(job))
  const out = await command(python, "-B", join(peers, "python_peers.py"), join(folder, "job.json"))
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as PeerRow) // Written by our script.
}

async function command(...words: readonly string[]): Promise<string> {
  // One thread each: a server's cores are busy with other requests.
  const env = { ...process.env, RAYON_NUM_THREADS: "1", TOKENIZERS_PARALLELISM: "false" }
  const child = Bun.spawn([...words], { stdin: "ignore", stdout: "pipe", stderr: "inherit", env })
  const [out, code] = await Promise.all([new Response(child.stdout).text(), child.exited])
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}`)
  return out
}
