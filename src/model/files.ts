/**
 * A Hugging Face model folder → `ModelProfile`. Weights are never looked at. Whatever is wrong with a file becomes one
 * line that names it.
 */
import { readdir } from "node:fs/promises"
import { join, resolve } from "node:path"
import type { Json } from "../ir/conversation"
import type { SettledTokenizerMode, TokenizerMode } from "../ir/tokenizer-mode"
import { err, ok, type Result } from "../result"
import { readBytesFile, readJsonFile, readTextFile } from "./file-reader"
import { addSamplingOverrides, readSamplingDefaults } from "./generation-config"
import { isObject, type JsonObject } from "./json-object"
import { configOfParams, findMistralVocabulary } from "./mistral-files"
import type { ModelProfile, VocabularyFile } from "./profile"
import { settleTokenizerMode } from "./tokenizer-mode"
import { deriveWindow } from "./window"

/** Largest files that are read, in bytes. Real ones are well below a tenth of these. */
export const modelFileBytesMax = {
  config: 16 * 1024 * 1024,
  tokenizer: 512 * 1024 * 1024,
  tokenizerConfig: 64 * 1024 * 1024,
  generationConfig: 1024 * 1024,
  chatTemplate: 4 * 1024 * 1024,
} as const

/** Named templates that a folder may hold besides the default one. */
const namedTemplatesMax = 64

/** A model that cannot be loaded; `message` is one line that names the file or the flag. */
export interface ModelFailure {
  readonly kind: "model_missing" | "model_broken" | "model_option"
  readonly message: string
}

/** What flags say about a model; the names are those of `Config`. */
export interface ModelOptions {
  /** `--max-model-len`, in tokens; null = the model's own window. */
  readonly contextTokensMax: number | null
  /** `auto` = the model's own generation_config.json, `vllm` = none, else a folder that has one. */
  readonly generationConfig: string
  readonly overrideGenerationConfig: { readonly [name: string]: Json }
  readonly tokenizerMode: TokenizerMode
}

/** The same with the folder whose tokenizer files and chat templates count. */
export interface FolderOptions extends ModelOptions {
  /** null = the model's own folder. */
  readonly tokenizerFolder: string | null
}

/**
 * Reads config.json (or params.json), the vocabulary, tokenizer_config.json, the chat templates and
 * generation_config.json. `name` is what the user calls the model. EOS ids: config.json's, then generation_config.json's
 * (PARSERS 7).
 */
export async function loadModelFolder(
  folder: string,
  name: string,
  options: FolderOptions,
): Promise<Result<ModelProfile, ModelFailure>> {
  const tokenizerFolder = options.tokenizerFolder ?? folder
  const found = await readConfig(folder)
  if (!found.ok) return found
  const { path: configPath, json: config } = found.value
  const kind = readKind(configPath, config)
  if (!kind.ok) return kind
  const tokenizerFiles: readonly string[] = await readdir(tokenizerFolder).catch(() => [])
  const tokenizerMode = settleTokenizerMode(options.tokenizerMode, {
    architectures: kind.value.architectures,
    tokenizerFiles,
  })
  const vocabulary = findVocabulary(tokenizerFolder, tokenizerFiles, tokenizerMode)
  if (!vocabulary.ok && kind.value.modelType !== harmonyModelType) return vocabulary
  const tokenizerConfigPath = join(tokenizerFolder, "tokenizer_config.json")
  const tokenizerConfig = await readJsonFile(tokenizerConfigPath, modelFileBytesMax.tokenizerConfig)
  if (!tokenizerConfig.ok) return tokenizerConfig
  const settings = tokenizerConfig.value ?? {}

  const chatTemplates = await readChatTemplates(tokenizerFolder, settings)
  if (!chatTemplates.ok) return chatTemplates
  const specialTokens = readSpecialTokens(settings)
  const eosToken = specialTokens.eos_token ?? (tokenizerMode === "mistral" ? mistralEosToken : null)
  const generation = await readGenerationConfig(folder, options.generationConfig)
  if (!generation.ok) return generation
  const eosTokenIds = collectEosIds(configPath, config, generation.value)
  if (!eosTokenIds.ok) return eosTokenIds
  const samplingDefaults = resolveSamplingDefaults(generation.value, options)
  if (!samplingDefaults.ok) return samplingDefaults
  const window = deriveWindow(configPath, config, settings, options.contextTokensMax)
  if (!window.ok) return window
  return ok({
    name,
    root: resolve(folder),
    tokenizer: vocabulary.ok ? { ...vocabulary.value, tokenizerConfig: settings } : { kind: "o200k_harmony" },
    tokenizerMode,
    chatTemplates: chatTemplates.value,
    specialTokens,
    eosToken,
    eosTokenIds: eosTokenIds.value,
    contextTokensMax: window.value,
    samplingDefaults: samplingDefaults.value,
    ...kind.value,
  })
}

/** Applies the flags to a profile that has no folder: the built-in one. */
export async function adaptProfile(
  profile: ModelProfile,
  options: ModelOptions,
): Promise<Result<ModelProfile, ModelFailure>> {
  const contextTokensMax = options.contextTokensMax ?? profile.contextTokensMax
  const tokenizerMode = options.tokenizerMode === "auto" ? profile.tokenizerMode : options.tokenizerMode
  if (contextTokensMax > profile.contextTokensMax) {
    return err({
      kind: "model_option",
      message: `--max-model-len ${contextTokensMax} is larger than the window of ${profile.name}, ${profile.contextTokensMax} tokens`,
    })
  }
  if (options.generationConfig === "auto") {
    const added = addSamplingOverrides(profile.samplingDefaults, options.overrideGenerationConfig)
    return added.ok ? ok({ ...profile, contextTokensMax, tokenizerMode, samplingDefaults: added.value }) : added
  }
  const generation = await readGenerationConfig(null, options.generationConfig)
  if (!generation.ok) return generation
  const samplingDefaults = resolveSamplingDefaults(generation.value, options)
  return samplingDefaults.ok
    ? ok({ ...profile, contextTokensMax, tokenizerMode, samplingDefaults: samplingDefaults.value })
    : samplingDefaults
}

/** Models of this type may come without a vocabulary: theirs is always the same. */
const harmonyModelType = "gpt_oss"

/** Names of vocabulary files, best first; any name that ends in `.tiktoken` comes last. */
const vocabularyFiles = ["tokenizer.json", "tekken.json", "tiktoken.model"]

/** Mistral's files name no EOS: its vocabularies have this one. */
const mistralEosToken = "</s>"

/** The vocabulary's file. Not parsed here: its reader needs no objects of hundreds of thousands of tokens. */
function findVocabulary(
  folder: string,
  names: readonly string[],
  mode: SettledTokenizerMode,
): Result<Omit<VocabularyFile, "tokenizerConfig">, ModelFailure> {
  if (mode === "mistral") {
    const found = findMistralVocabulary(folder, names)
    return found.ok ? ok({ kind: "file", ...found.value }) : found
  }
  const ranks = names.filter((name) => name.endsWith(".tiktoken")).sort()
  const name = [...vocabularyFiles, ...ranks].find((each) => names.includes(each))
  return name === undefined
    ? missing(`${folder} has no ${vocabularyFiles.join(", ")} or *.tiktoken`)
    : ok({ kind: "file", path: join(folder, name), versionPath: null })
}

/** config.json, or what a params.json says in its place; and which of the two, for messages. */
async function readConfig(folder: string): Promise<Result<{ path: string; json: JsonObject }, ModelFailure>> {
  const path = join(folder, "config.json")
  const config = await readJsonFile(path, modelFileBytesMax.config)
  if (!config.ok) return config
  if (config.value !== null) return ok({ path, json: config.value })
  const paramsPath = join(folder, "params.json")
  const params = await readJsonFile(paramsPath, modelFileBytesMax.config)
  if (!params.ok) return params
  if (params.value === null) return missing(`${folder} has no config.json: not a model folder`)
  return ok({ path: paramsPath, json: configOfParams(params.value) })
}

/** The vocabulary's bytes; the failure names the file. */
export async function readVocabulary(path: string): Promise<Result<Uint8Array, ModelFailure>> {
  const bytes = await readBytesFile(path, modelFileBytesMax.tokenizer)
  if (!bytes.ok) return bytes
  return bytes.value === null ? missing(`${path} is gone`) : ok(bytes.value)
}

/** A generation_config.json with the path it was read from; `json` null when there is none. */
interface GenerationConfig {
  readonly path: string
  readonly json: JsonObject | null
}

/**
 * Sampling defaults in vLLM's order: generation_config.json unless `--generation-config vllm`, and
 * `--override-generation-config` on top (CHAT 1.2).
 */
export function resolveSamplingDefaults(
  generation: GenerationConfig,
  options: Pick<ModelOptions, "generationConfig" | "overrideGenerationConfig">,
): Result<ModelProfile["samplingDefaults"], ModelFailure> {
  const used = options.generationConfig === "vllm" ? null : generation.json
  const own = readSamplingDefaults(used ?? {}, generation.path)
  return own.ok ? addSamplingOverrides(own.value, options.overrideGenerationConfig) : own
}

/** With `vllm` the model's own file still counts for EOS ids, as in vLLM. A folder that was named must have the file. */
async function readGenerationConfig(
  folder: string | null,
  source: string,
): Promise<Result<GenerationConfig, ModelFailure>> {
  const own = source === "auto" || source === "vllm"
  if (own && folder === null) return ok({ path: "", json: null })
  const path = join(own ? (folder ?? "") : source, "generation_config.json")
  const read = await readJsonFile(path, modelFileBytesMax.generationConfig)
  if (!read.ok) return read
  if (read.value === null && !own) {
    return err({ kind: "model_option", message: `--generation-config ${source}: ${path} does not exist` })
  }
  return ok({ path, json: read.value })
}

/**
 * Chat templates by name, `default` first. A chat_template.jinja stands for all that older places say; then come
 * tokenizer_config.json (a text, or a list of named ones) and chat_template.json. Files below additional_chat_templates
 * add named ones.
 */
async function readChatTemplates(
  folder: string,
  tokenizerConfig: JsonObject,
): Promise<Result<{ readonly [name: string]: string }, ModelFailure>> {
  const found = new Map<string, string>()
  const file = await readTextFile(join(folder, "chat_template.jinja"), modelFileBytesMax.chatTemplate)
  if (!file.ok) return file
  if (file.value !== null) {
    found.set("default", file.value)
  } else {
    const path = join(folder, "chat_template.json")
    const legacy = await readJsonFile(path, modelFileBytesMax.chatTemplate)
    if (!legacy.ok) return legacy
    for (const [place, value] of [
      [join(folder, "tokenizer_config.json"), tokenizerConfig.chat_template],
      [path, legacy.value?.chat_template],
    ] as const) {
      const named = namedTemplates(place, value)
      if (!named.ok) return named
      for (const [name, text] of named.value) if (!found.has(name)) found.set(name, text)
    }
  }
  for (const subfolder of ["additional_chat_templates", "chat_templates"]) {
    const names = (await readdir(join(folder, subfolder)).catch(() => [])).filter((entry) => entry.endsWith(".jinja"))
    if (names.length > namedTemplatesMax) {
      return broken(join(folder, subfolder), `holds more than ${namedTemplatesMax} chat templates`)
    }
    for (const entry of names.sort()) {
      const text = await readTextFile(join(folder, subfolder, entry), modelFileBytesMax.chatTemplate)
      if (!text.ok) return text
      if (text.value !== null) found.set(entry.slice(0, -".jinja".length), text.value)
    }
  }
  const standard = found.get("default")
  return ok(standard === undefined ? Object.fromEntries(found) : { default: standard, ...Object.fromEntries(found) })
}

function namedTemplates(path: string, value: unknown): Result<[string, string][], ModelFailure> {
  if (value === undefined || value === null) return ok([])
  if (typeof value === "string") return ok([["default", value]])
  const wrong = () => broken(path, "chat_template must be a text or a list of {name, template}")
  if (!Array.isArray(value) || value.length > namedTemplatesMax) return wrong()
  const named: [string, string][] = []
  for (const entry of value) {
    if (!isObject(entry) || typeof entry.name !== "string" || typeof entry.template !== "string") return wrong()
    named.push([entry.name, entry.template])
  }
  return ok(named)
}

/** All `…_token` entries: a text, or an object that holds it as `content`. Flags such as add_bos_token are neither. */
function readSpecialTokens(tokenizerConfig: JsonObject): { [name: string]: string } {
  const tokens: { [name: string]: string } = {}
  const extra = isObject(tokenizerConfig.extra_special_tokens) ? tokenizerConfig.extra_special_tokens : {}
  for (const [name, value] of [...Object.entries(extra), ...Object.entries(tokenizerConfig)]) {
    const text = isObject(value) ? value.content : value
    if (name.endsWith("_token") && typeof text === "string") tokens[name] = text
  }
  return tokens
}

function collectEosIds(
  configPath: string,
  config: JsonObject,
  generation: GenerationConfig,
): Result<readonly number[], ModelFailure> {
  const ids = new Set<number>()
  const nested = isObject(config.text_config) ? config.text_config : {}
  for (const [path, value] of [
    [configPath, config.eos_token_id ?? nested.eos_token_id],
    [generation.path, generation.json?.eos_token_id],
  ] as const) {
    if (value === undefined || value === null) continue
    for (const id of Array.isArray(value) ? value : [value]) {
      if (!isTokenId(id)) return broken(path, "eos_token_id must be a token id or a list of token ids")
      ids.add(id)
    }
  }
  return ok([...ids])
}

function readKind(
  path: string,
  config: JsonObject,
): Result<Pick<ModelProfile, "modelType" | "architectures" | "isMixtureOfExperts">, ModelFailure> {
  const modelType = config.model_type ?? ""
  if (typeof modelType !== "string") return broken(path, "model_type must be a text")
  const architectures = config.architectures ?? []
  if (!Array.isArray(architectures) || !architectures.every((entry) => typeof entry === "string")) {
    return broken(path, "architectures must be a list of texts")
  }
  const textConfig = isObject(config.text_config) ? config.text_config : config
  return ok({ modelType, architectures, isMixtureOfExperts: expertKeys.some((key) => hasExperts(textConfig[key])) })
}

/** Where config.json tells how many experts there are, by family. Source: vLLM 0.32.0, `ModelConfig.get_num_experts`. */
const expertKeys = ["num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts"]

/** Some families give a number for each layer. */
function hasExperts(value: unknown): boolean {
  return Array.isArray(value) ? value.some(hasExperts) : typeof value === "number" && value > 0
}

function isTokenId(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 0xffff_ffff
}

function missing(message: string): Result<never, ModelFailure> {
  return err({ kind: "model_missing", message })
}

function broken(path: string, what: string): Result<never, ModelFailure> {
  return err({ kind: "model_broken", message: `${path}: ${what}` })
}
