/**
 * Opens a vocabulary from a file, a model folder, or bytes: the way in for users of the tokenizer alone. BPE in all its
 * file formats; other kinds are refused with the reason.
 */
import { err, type Result } from "../result"
import { type JsonObject, objectOf, stringOf } from "./json-shape"
import { openParts } from "./open-parts"
import { type ExtraTokens, readTekken, readTiktokenFile } from "./tiktoken-ranks"
import type { TokenizerFailure } from "./tokenizer"
import { readTokenizerJsonBytes } from "./tokenizer-json"
import type { WasmTokenizer } from "./wasm-tokenizer"

/** What a file of bare ranks (`*.tiktoken`, `tiktoken.model`) does not say. */
export interface LoadOptions {
  /** The split pattern, in the syntax of tiktoken. Default: that of Kimi for `tiktoken.model`, else that of cl100k. */
  readonly pattern?: string
  /** Tokens beside the ranks. Default: what tokenizer_config.json beside the file names, and Kimi's reserved ones. */
  readonly tokens?: ExtraTokens
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
 * Opens a tokenizer: a path to a vocabulary file or to a model folder, or the bytes of a file. The failure's message
 * says what is wrong or not supported. Reading a path needs Node or Bun; bytes load anywhere.
 */
export async function load(
  source: string | Uint8Array,
  options: LoadOptions = {},
): Promise<Result<WasmTokenizer, TokenizerFailure>> {
  if (typeof source !== "string") return loadBytes(source, options)
  const { readFile, stat, readdir } = await import("node:fs/promises")
  const { basename, dirname, join } = await import("node:path")
  try {
    let path = source
    if ((await stat(source)).isDirectory()) {
      const names = await readdir(source)
      const name =
        vocabularyFiles.find((each) => names.includes(each)) ?? names.find((each) => each.endsWith(".tiktoken"))
      if (name === undefined) return unusable(`${source} holds no vocabulary file that is known`)
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

/** As `load`, of a file's bytes, at once. */
export function loadBytes(bytes: Uint8Array, options: LoadOptions = {}): Result<WasmTokenizer, TokenizerFailure> {
  if (!beginsJson(bytes)) {
    const { pattern = cl100kPattern, tokens = { special: {}, added: {} } } = options
    return openParts(readTiktokenFile(bytes, pattern, tokens))
  }
  if (!isTekken(bytes)) return openParts(readTokenizerJsonBytes(bytes))
  try {
    return openParts(readTekken(JSON.parse(new TextDecoder().decode(bytes))))
  } catch (cause) {
    return unusable(`the file is no JSON: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** tekken.json is told by the names of its tokens' fields, which stand near its start. */
function isTekken(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes.subarray(0, 4096)).includes('"token_bytes"')
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

/** Kimi keeps its special tokens in tokenizer_config.json, and reserves the ids that it gives no name. */
function kimiOptions(bytes: Uint8Array, config: JsonObject, options: LoadOptions): LoadOptions {
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
  return { pattern: options.pattern ?? kimiPattern, tokens: options.tokens ?? { special, added } }
}
