/**
 * Opens a vocabulary from a file, a model folder, or bytes: the way in for users of the tokenizer alone. BPE in all its
 * file formats; other kinds are refused with the reason.
 */
import { err, type Result } from "../result"
import type { ExtraTokens } from "./extra-tokens"
import { fileModules } from "./file-modules"
import { type JsonObject, objectOf, stringOf, type Unsupported } from "./json-shape"
import { openKept } from "./kept-tokenizer"
import type { LoadedTokenizer } from "./loaded-tokenizer"
import { openParts } from "./open-parts"
import { readRankFile, readTekken, readTiktokenFile } from "./tiktoken-ranks"
import type { TokenizerFailure } from "./tokenizer"
import { readTokenizerJsonBytes } from "./tokenizer-json"
import type { ReadParts } from "./tokenizer-parts"

/**
 * How to load. `pattern` and `tokens` are what a file of ranks does not say, or says otherwise; other files say all
 * themselves, and these are passed over.
 */
export interface LoadOptions {
  /**
   * The split pattern, in the syntax of tiktoken. Default: what an encoder file says, that of Kimi for
   * `tiktoken.model`, else that of cl100k.
   */
  readonly pattern?: string
  /**
   * Tokens beside the ranks. Default: what an encoder file says; for `tiktoken.model` what tokenizer_config.json beside
   * it names, and Kimi's reserved ones; else none.
   */
  readonly tokens?: ExtraTokens
  /**
   * A folder to keep what was built in, so that the same file loads several times faster the next time: made when it is
   * not there, and safe to remove. Default: none. Not in browsers.
   */
  readonly cache?: string
}

/** Kimi's split pattern. Source: tokenization_kimi.py of the model's repository. */
const kimiPattern = [
  "[\\p{Han}]+",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "\\p{N}{1,3}",
  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*",
  "\\s*[\\r\\n]+",
  "\\s+(?!\\S)",
  "\\s+",
].join("|")

const cl100kPattern =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" +
  "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/** Ids behind the ranks of a Kimi vocabulary that are special whether they have a name or not. */
const kimiReservedCount = 256

/** Files of a model folder that hold a vocabulary, best first. */
const vocabularyFiles = ["tokenizer.json", "tekken.json", "tiktoken.model"]

/**
 * Opens a tokenizer: a path to a vocabulary file or to a model folder, or the bytes of a file (tokenizer.json,
 * tekken.json, `*.tiktoken`, `tiktoken.model`, an encoder file of npm `tiktoken`). The failure's message says what is
 * wrong or not supported. Reading a path needs Bun or Node 20.16; bytes load anywhere.
 */
export async function load(
  source: string | Uint8Array,
  options: LoadOptions = {},
): Promise<Result<LoadedTokenizer, TokenizerFailure>> {
  if (typeof source !== "string") return loadBytes(source, options)
  const modules = fileModules()
  if (modules === null) return unusable(`${source}: a path can be read by Bun and Node 20.16 or newer; give bytes`)
  const { readFile, stat, readdir } = modules.files.promises
  const { basename, dirname, join } = modules.paths
  try {
    let path = source
    if ((await stat(source)).isDirectory()) {
      const names = await readdir(source)
      const name =
        vocabularyFiles.find((each) => names.includes(each)) ?? names.find((each) => each.endsWith(".tiktoken"))
      if (name === undefined) return unusable(`${source} holds none of ${vocabularyFiles.join(", ")} and *.tiktoken`)
      path = join(source, name)
    }
    const bytes = await readFile(path)
    if (basename(path) !== "tiktoken.model") return loadBytes(bytes, options)
    const configPath = join(dirname(path), "tokenizer_config.json")
    const config = await readFile(configPath, "utf8").catch(() => "{}")
    return loadBytes(bytes, kimiOptions(bytes, objectOf(JSON.parse(config)) ?? {}, options))
  } catch (cause) {
    return unusable(`${source} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** As `load`, of a file's bytes, at once. The bytes are not kept. */
export function loadBytes(bytes: Uint8Array, options: LoadOptions = {}): Result<LoadedTokenizer, TokenizerFailure> {
  const { pattern = null, tokens = null, cache } = options
  if (cache === undefined) return openParts(readBytes(bytes, options))
  return openKept(cache, [JSON.stringify([pattern, tokens]), bytes], () => readBytes(bytes, options))
}

function readBytes(bytes: Uint8Array, options: LoadOptions): Result<ReadParts, Unsupported | TokenizerFailure> {
  if (!beginsJson(bytes)) {
    const { pattern = cl100kPattern, tokens = { special: {}, added: {} } } = options
    return readTiktokenFile(bytes, pattern, tokens)
  }
  // Names of fields that stand near the start of tekken.json, and of npm `tiktoken`'s encoder files.
  const head = new TextDecoder().decode(bytes.subarray(0, 4096))
  const isTekken = head.includes('"token_bytes"')
  if (!isTekken && !head.includes('"pat_str"')) return readTokenizerJsonBytes(bytes)
  try {
    const json: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return isTekken ? readTekken(json) : readEncoder(json, options)
  } catch (cause) {
    return unusable(`the file is no JSON: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

function readEncoder(
  value: unknown,
  { pattern, tokens }: LoadOptions,
): Result<ReadParts, Unsupported | TokenizerFailure> {
  const json = objectOf(value)
  const ranks = stringOf(json?.bpe_ranks)
  const ownPattern = stringOf(json?.pat_str)
  if (ranks === null || ownPattern === null) return unusable("an encoder file without its ranks or its pattern")
  const special: { [token: string]: number } = {}
  for (const [token, id] of Object.entries(objectOf(json?.special_tokens) ?? {})) special[token] = Number(id)
  const file = { bpe_ranks: ranks, pat_str: pattern ?? ownPattern }
  return readRankFile(file, tokens ?? { special, added: {} })
}

function unusable(message: string): Result<never, TokenizerFailure> {
  return err({ kind: "tokenizer_unusable", message })
}

function beginsJson(bytes: Uint8Array): boolean {
  let at = 0
  // A byte order mark, then white space.
  if (bytes[0] === 0xef && bytes[1] === 0xbb) at = 3
  while (at < bytes.length && bytes[at]! <= 0x20) at += 1
  return bytes[at] === 0x7b
}

/**
 * What `tiktoken.model` does not say: Kimi keeps its special tokens in tokenizer_config.json (`config`, parsed), and
 * reserves the ids that it gives no name.
 */
export function kimiOptions(bytes: Uint8Array, config: JsonObject, options: LoadOptions): LoadOptions {
  const special: { [token: string]: number } = {}
  const added: { [token: string]: number } = {}
  const named = new Set<number>()
  for (const [id, value] of Object.entries(objectOf(config.added_tokens_decoder) ?? {})) {
    const token = objectOf(value)
    const content = stringOf(token?.content)
    if (content === null) continue
    named.add(Number(id))
    const group = token?.special === true ? special : added
    group[content] = Number(id)
  }
  let ranks = 0
  for (const byte of bytes) if (byte === 0x0a) ranks += 1
  if (bytes.length > 0 && bytes[bytes.length - 1] !== 0x0a) ranks += 1
  for (let id = ranks; id < ranks + kimiReservedCount; id++)
    if (!named.has(id)) special[`<|reserved_token_${id}|>`] = id
  return { ...options, pattern: options.pattern ?? kimiPattern, tokens: options.tokens ?? { special, added } }
}
