import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { Json } from "../../src/ir/conversation"
import { adaptProfile, type FolderOptions, loadModelFolder, readVocabulary } from "../../src/model/files"
import type { ModelProfile } from "../../src/model/profile"
import { err, ok } from "../../src/result"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "files-test-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const plain: FolderOptions = {
  tokenizerFolder: null,
  contextTokensMax: null,
  generationConfig: "auto",
  overrideGenerationConfig: {},
  tokenizerMode: "auto",
}
const tokenizerJson = {
  added_tokens: [{ id: 7, content: "<|im_end|>" }],
  model: { type: "BPE", vocab: { hello: 1, "</s>": 2 }, merges: [] },
}
const smallest = { "config.json": { max_position_embeddings: 4096 }, "tokenizer.json": tokenizerJson }

type Content = string | { readonly [key: string]: unknown }

/** Writes files into the folder: a text as it is, anything else as JSON. */
function write(files: { readonly [path: string]: Content }): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), typeof content === "string" ? content : JSON.stringify(content))
  }
}

async function load(
  files: { readonly [path: string]: Content },
  options: Partial<FolderOptions> = {},
): Promise<ModelProfile> {
  write(files)
  const loaded = await loadModelFolder(folder, "acme/tiny", { ...plain, ...options })
  if (!loaded.ok) throw new Error(loaded.error.message)
  return loaded.value
}

/** The error, with the folder's name taken out. */
async function problem(
  files: { readonly [path: string]: Content },
  options: Partial<FolderOptions> = {},
): Promise<string> {
  write(files)
  const loaded = await loadModelFolder(folder, "acme/tiny", { ...plain, ...options })
  return loaded.ok ? "no error" : `${loaded.error.kind}: ${loaded.error.message.replaceAll(folder, "DIR")}`
}

const window = async (config: { [key: string]: unknown }, asked: number | null = null, tokenizerConfig = {}) =>
  (
    await load(
      { "config.json": config, "tokenizer.json": tokenizerJson, "tokenizer_config.json": tokenizerConfig },
      { contextTokensMax: asked },
    )
  ).contextTokensMax

describe("a model folder", () => {
  test("becomes a profile", async () => {
    const tokenizerConfig = {
      bos_token: null,
      eos_token: { content: "<|im_end|>", lstrip: false },
      pad_token: "<pad>",
      add_bos_token: true,
      extra_special_tokens: { image_token: "<image>" },
      chat_template: "{{ messages }}",
    }
    const profile = await load({
      "config.json": {
        model_type: "qwen3",
        architectures: ["Qwen3ForCausalLM"],
        max_position_embeddings: 40_960,
        eos_token_id: 2,
      },
      "tokenizer.json": tokenizerJson,
      "tokenizer_config.json": tokenizerConfig,
      "generation_config.json": { temperature: 0.6, top_k: 20, top_p: 0.95, do_sample: true, eos_token_id: [7, 9, 2] },
    })
    expect(profile).toEqual({
      name: "acme/tiny",
      root: folder,
      tokenizer: { kind: "file", path: join(folder, "tokenizer.json"), versionPath: null, tokenizerConfig },
      tokenizerMode: "hf",
      chatTemplates: { default: "{{ messages }}" },
      specialTokens: { image_token: "<image>", eos_token: "<|im_end|>", pad_token: "<pad>" },
      eosToken: "<|im_end|>",
      eosTokenIds: [2, 7, 9],
      contextTokensMax: 40_960,
      samplingDefaults: { temperature: 0.6, topK: 20, topP: 0.95 },
      modelType: "qwen3",
      architectures: ["Qwen3ForCausalLM"],
      isMixtureOfExperts: false,
    })
  })

  test("needs only config.json and tokenizer.json", async () => {
    expect(await load(smallest)).toEqual({
      name: "acme/tiny",
      root: folder,
      tokenizer: { kind: "file", path: join(folder, "tokenizer.json"), versionPath: null, tokenizerConfig: {} },
      tokenizerMode: "hf",
      chatTemplates: {},
      specialTokens: {},
      eosToken: null,
      eosTokenIds: [],
      contextTokensMax: 4096,
      samplingDefaults: {},
      modelType: "",
      architectures: [],
      isMixtureOfExperts: false,
    })
  })

  test.each([
    ["num_experts", { num_experts: 128 }, true],
    ["a list of them by layer", { moe_num_experts: [0, 16] }, true],
    ["those of the text model", { text_config: { n_routed_experts: 64 }, vision_config: {} }, true],
    ["none", { num_local_experts: 0 }, false],
  ])("tells a mixture of experts by %s", async (_name, config, expected) => {
    const profile = await load({ ...smallest, "config.json": { max_position_embeddings: 4096, ...config } })
    expect(profile).toMatchObject({ isMixtureOfExperts: expected })
  })

  test("settles how its prompts are made: by the flag, its architecture and the files of its tokenizer", async () => {
    const config = { max_position_embeddings: 10, architectures: ["DeepseekV32ForCausalLM"] }
    expect((await load({ ...smallest, "config.json": config })).tokenizerMode).toBe("deepseek_v32")
    expect((await load(smallest, { tokenizerMode: "deepseek_v4" })).tokenizerMode).toBe("deepseek_v4")
    const mistral = { "other/tekken.json": {}, "other/params.json": {} }
    const options = { tokenizerFolder: join(folder, "other") }
    expect((await load({ ...smallest, ...mistral }, options)).tokenizerMode).toBe("mistral")
  })

  test("may take tokenizer, templates and special tokens from another folder", async () => {
    const other = join(folder, "other")
    const profile = await load(
      {
        "config.json": { max_position_embeddings: 10, eos_token_id: 5 },
        "chat_template.jinja": "mine",
        "generation_config.json": { temperature: 0.1 },
        "other/tokenizer.json": tokenizerJson,
        "other/tokenizer_config.json": { eos_token: "</s>" },
        "other/chat_template.jinja": "theirs",
        "other/generation_config.json": { temperature: 0.9 },
      },
      { tokenizerFolder: other },
    )
    expect(profile).toMatchObject({
      root: folder,
      chatTemplates: { default: "theirs" },
      eosTokenIds: [5],
      samplingDefaults: { temperature: 0.1 },
    })
  })

  test.each([
    [{}, "model_missing: DIR has no config.json: not a model folder"],
    [{ "config.json": {} }, "model_missing: DIR has no tokenizer.json, tekken.json, tiktoken.model or *.tiktoken"],
    [{ ...smallest, "config.json": "{" }, "model_broken: DIR/config.json is not JSON: JSON Parse error: Expected '}'"],
    [{ ...smallest, "config.json": "[]" }, "model_broken: DIR/config.json must hold a JSON object"],
    [{ ...smallest, "tokenizer_config.json/x": "" }, "model_broken: DIR/tokenizer_config.json is not a file"],
    [
      { ...smallest, "tokenizer_config.json": { chat_template: 1 } },
      "model_broken: DIR/tokenizer_config.json: chat_template must be a text or a list of {name, template}",
    ],
    [
      { ...smallest, "tokenizer_config.json": { chat_template: [{ name: "a" }] } },
      "model_broken: DIR/tokenizer_config.json: chat_template must be a text or a list of {name, template}",
    ],
    [{ ...smallest, "config.json": { model_type: 3 } }, "model_broken: DIR/config.json: model_type must be a text"],
    [
      { ...smallest, "config.json": { architectures: "A" } },
      "model_broken: DIR/config.json: architectures must be a list of texts",
    ],
    [
      { ...smallest, "config.json": { eos_token_id: "2" } },
      "model_broken: DIR/config.json: eos_token_id must be a token id or a list of token ids",
    ],
    [
      { ...smallest, "generation_config.json": { eos_token_id: [-1] } },
      "model_broken: DIR/generation_config.json: eos_token_id must be a token id or a list of token ids",
    ],
    [
      { ...smallest, "generation_config.json": { top_p: 0 } },
      "model_broken: DIR/generation_config.json: top_p 0: expected a number above 0, up to 1",
    ],
    [
      { ...smallest, "config.json": { n_positions: "many" } },
      'model_broken: DIR/config.json: n_positions "many": expected a whole number from 1',
    ],
  ] as [{ [path: string]: Content }, string][])("that is broken names the file: %#", async (files, expected) => {
    expect(await problem(files)).toBe(expected)
  })

  test("with a file beyond its limit, or one that is not UTF-8, names it", async () => {
    write(smallest)
    writeFileSync(join(folder, "chat_template.jinja"), Buffer.from([0x7b, 0xff]))
    expect(await problem({})).toBe("model_broken: DIR/chat_template.jinja is not UTF-8")
    truncateSync(join(folder, "chat_template.jinja"), 4 * 1024 * 1024 + 1)
    expect(await problem({})).toBe("model_broken: DIR/chat_template.jinja is larger than 4194304 bytes")
  })
})

describe("chat templates", () => {
  const templates = async (files: { readonly [path: string]: Content }) =>
    (await load({ ...smallest, ...files })).chatTemplates

  test("as a list keep their names, default first", async () => {
    const list = [
      { name: "tool_use", template: "tools" },
      { name: "default", template: "plain" },
    ]
    const found = await templates({ "tokenizer_config.json": { chat_template: list } })
    expect(Object.entries(found)).toEqual([
      ["default", "plain"],
      ["tool_use", "tools"],
    ])
  })

  test("in chat_template.jinja stand for all that tokenizer_config.json says", async () => {
    const list = [
      { name: "default", template: "old" },
      { name: "tool_use", template: "old tools" },
    ]
    const files = { "chat_template.jinja": "new\n", "tokenizer_config.json": { chat_template: list } }
    expect(await templates(files)).toEqual({ default: "new\n" })
    expect(await templates({ ...files, "additional_chat_templates/tool_use.jinja": "new tools" })).toEqual({
      default: "new\n",
      tool_use: "new tools",
    })
  })

  test("in chat_template.json come last", async () => {
    expect(await templates({ "chat_template.json": { chat_template: "legacy" } })).toEqual({ default: "legacy" })
    expect(await templates({ "tokenizer_config.json": { chat_template: "newer" } })).toEqual({ default: "newer" })
  })

  test("with a byte order mark lose it", async () => {
    expect(await templates({ "chat_template.jinja": "\ufeff{{ a }}" })).toEqual({ default: "{{ a }}" })
  })
})

describe("the vocabulary", () => {
  const path = async (...names: readonly string[]): Promise<string> => {
    const files = Object.fromEntries(names.map((name) => [name, "x"]))
    const { tokenizer } = await load({ "config.json": smallest["config.json"], ...files })
    return tokenizer.kind === "file" ? tokenizer.path.replace(folder, "DIR") : tokenizer.kind
  }

  test("is the best of the files that a folder has", async () => {
    expect(await path("b.tiktoken", "a.tiktoken")).toBe("DIR/a.tiktoken")
    expect(await path("a.tiktoken", "tiktoken.model")).toBe("DIR/tiktoken.model")
    expect(await path("tekken.json", "tiktoken.model")).toBe("DIR/tekken.json")
    expect(await path("tokenizer.json", "tekken.json")).toBe("DIR/tokenizer.json")
  })

  test("of gpt-oss is known where the folder has none", async () => {
    const config = { max_position_embeddings: 4096, model_type: "gpt_oss" }
    expect((await load({ "config.json": config })).tokenizer).toEqual({ kind: "o200k_harmony" })
    expect((await load({ "config.json": config, "tokenizer.json": "x" })).tokenizer.kind).toBe("file")
  })

  test("is read as bytes, or is missing", async () => {
    await path("tekken.json")
    expect(await readVocabulary(join(folder, "tekken.json"))).toEqual(ok(Buffer.from("x")))
    expect(await readVocabulary(join(folder, "other.json"))).toEqual(
      err({ kind: "model_missing", message: `${join(folder, "other.json")} is gone` }),
    )
  })
})

describe("EOS ids", () => {
  test("are those of config.json, then those of generation_config.json, each once", async () => {
    const files = {
      ...smallest,
      "config.json": { eos_token_id: [4, 5] },
      "generation_config.json": { eos_token_id: [5, 1] },
    }
    expect((await load(files)).eosTokenIds).toEqual([4, 5, 1])
  })

  test("of a model with several parts are the language model's", async () => {
    expect((await load({ ...smallest, "config.json": { text_config: { eos_token_id: 3 } } })).eosTokenIds).toEqual([3])
  })

  test("of generation_config.json count even when its sampling defaults do not", async () => {
    const files = { ...smallest, "generation_config.json": { temperature: 0.5, eos_token_id: 8 } }
    expect(await load(files, { generationConfig: "vllm" })).toMatchObject({ eosTokenIds: [8], samplingDefaults: {} })
  })
})

describe("the window", () => {
  test("is the smallest length that config.json states", async () => {
    expect(await window({ max_position_embeddings: 4096 })).toBe(4096)
    expect(await window({ n_positions: 1024 })).toBe(1024)
    expect(await window({ max_seq_len: 2000, seq_length: 1000 })).toBe(1000)
    expect(await window({ text_config: { max_position_embeddings: 32_768 } })).toBe(32_768)
  })

  test("grows with scaled position embeddings as the reference derives it", async () => {
    const scaled = (rope_scaling: object, more = {}) => window({ max_position_embeddings: 4096, rope_scaling, ...more })
    expect(await scaled({ type: "linear", factor: 2 })).toBe(8192)
    expect(await scaled({ rope_type: "dynamic", factor: 2.5 })).toBe(10_240)
    expect(await scaled({ rope_type: "yarn", factor: 4, original_max_position_embeddings: 32_768 })).toBe(131_072)
    expect(await scaled({ rope_type: "llama3", factor: 8, original_max_position_embeddings: 512 })).toBe(4096)
    expect(await scaled({ type: "longrope", factor: 8 })).toBe(4096)
    expect(await scaled({ type: "su", long_factor: [1] })).toBe(4096)
    expect(await scaled({ rope_type: "default" })).toBe(4096)
    expect(await scaled({ rope_type: "linear", factor: 8 }, { model_type: "gemma3_text" })).toBe(4096)
    const perLayer = { full_attention: { rope_type: "linear", factor: 2 }, sliding_attention: { rope_type: "default" } }
    expect(await window({ max_position_embeddings: 4096, rope_parameters: perLayer })).toBe(8192)
  })

  test("comes from the tokenizer only when config.json says nothing and the number is sane", async () => {
    expect(await window({ max_position_embeddings: 4096 }, null, { model_max_length: 512 })).toBe(4096)
    expect(await window({}, null, { model_max_length: 512 })).toBe(512)
    expect(await window({}, null, { model_max_length: 1e30 })).toBe(2048)
    expect(await window({}, 100_000)).toBe(100_000)
  })

  test("may be made smaller by --max-model-len, not larger", async () => {
    expect(await window({ max_position_embeddings: 4096 }, 100)).toBe(100)
    expect(await window({ max_position_embeddings: 4096, model_max_length: 8192 }, 4096)).toBe(4096)
    expect(await problem(smallest, { contextTokensMax: 4097 })).toBe(
      "model_option: --max-model-len 4097 is larger than the model's window of 4096 tokens (max_position_embeddings in config.json)",
    )
  })
})

describe("sampling defaults", () => {
  const defaults = async (source: string, overrides: { [name: string]: Json } = {}) =>
    (
      await load(
        {
          ...smallest,
          "generation_config.json": { temperature: 0.7, top_k: -1, max_new_tokens: 100, min_p: null },
          "other/generation_config.json": { temperature: 0.2, repetition_penalty: 1.1 },
        },
        {
          generationConfig: source === "other" ? join(folder, "other") : source,
          overrideGenerationConfig: overrides,
        },
      )
    ).samplingDefaults

  test("are the model's, none, or another folder's", async () => {
    expect(await defaults("auto")).toEqual({ temperature: 0.7, topK: 0, maxTokens: 100 })
    expect(await defaults("vllm")).toEqual({})
    expect(await defaults("other")).toEqual({ temperature: 0.2, repetitionPenalty: 1.1 })
  })

  test("have the flag's on top, and null takes one away", async () => {
    expect(await defaults("auto", { temperature: null, top_p: 0.5 })).toEqual({ topK: 0, maxTokens: 100, topP: 0.5 })
    expect(await defaults("vllm", { max_new_tokens: 5 })).toEqual({ maxTokens: 5 })
  })

  test("that no request could use, or that mean nothing here, are refused", async () => {
    const overridden = (overrides: { [name: string]: Json }) =>
      problem(smallest, { overrideGenerationConfig: overrides })
    expect(await overridden({ temperature: 3 })).toBe(
      "model_option: --override-generation-config: temperature 3: expected a number 0–2",
    )
    expect(await overridden({ top_k: "5" })).toBe(
      'model_option: --override-generation-config: top_k "5": expected a whole number from -1',
    )
    expect(await overridden({ num_beams: 2 })).toBe(
      'model_option: --override-generation-config: "num_beams" is not one of temperature, top_p, top_k, min_p, repetition_penalty, presence_penalty, frequency_penalty, max_new_tokens',
    )
    expect(await problem(smallest, { generationConfig: join(folder, "none") })).toBe(
      "model_option: --generation-config DIR/none: DIR/none/generation_config.json does not exist",
    )
  })

  test("and the window of a profile without a folder follow the flags as well", async () => {
    const profile: ModelProfile = {
      ...(await load(smallest)),
      name: "built-in",
      samplingDefaults: { temperature: 0.7 },
    }
    const adapted = (options: Partial<FolderOptions>) => adaptProfile(profile, { ...plain, ...options })
    expect(await adapted({})).toEqual({ ok: true, value: profile })
    expect(await adapted({ tokenizerMode: "mistral" })).toEqual({
      ok: true,
      value: { ...profile, tokenizerMode: "mistral" },
    })
    expect(await adapted({ contextTokensMax: 10, overrideGenerationConfig: { top_k: 3 } })).toEqual({
      ok: true,
      value: { ...profile, contextTokensMax: 10, samplingDefaults: { temperature: 0.7, topK: 3 } },
    })
    expect(await adapted({ generationConfig: "vllm" })).toEqual({
      ok: true,
      value: { ...profile, samplingDefaults: {} },
    })
    expect(await adapted({ contextTokensMax: 5000 })).toEqual({
      ok: false,
      error: {
        kind: "model_option",
        message: "--max-model-len 5000 is larger than the window of built-in, 4096 tokens",
      },
    })
  })
})
