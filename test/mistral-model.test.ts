/** Models in Mistral's layout, from their folders to the ids that the role without an engine answers over HTTP. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { defaultConfig } from "../src/config"
import { loadModelFolder } from "../src/model/files"
import { openServedModel } from "../src/served-model"
import golden from "./golden/mistral/prompts.json"
import { namedRequests } from "./prompt/mistral/requests"
import { tekkenFile, type Version } from "./prompt/mistral/vocabularies"
import { startTestRenderer } from "./support/test-renderer"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mistral-model-"))
})
afterEach(() => rmSync(folder, { recursive: true }))

const options = {
  contextTokensMax: null,
  generationConfig: "auto",
  overrideGenerationConfig: {},
  tokenizerFolder: null,
  tokenizerMode: "auto",
} as const

type Files = { readonly [name: string]: string | object }

/** The profile of a folder with these files. */
async function profileOf(files: Files, mode: "auto" | "mistral" | "hf" = "auto") {
  for (const [name, content] of Object.entries(files)) {
    await Bun.write(join(folder, name), typeof content === "string" ? content : JSON.stringify(content))
  }
  const loaded = await loadModelFolder(folder, "m", { ...options, tokenizerMode: mode })
  if (!loaded.ok) throw new Error(loaded.error.message)
  return loaded.value
}

const params = { dim: 64, n_layers: 2, max_seq_len: 32_768 }
const config = { model_type: "mistral", max_position_embeddings: 32_768, eos_token_id: 2 }

/** Parts of the golden requests, whose whole list is gone through without HTTP. */
const tried = [
  "many turns",
  "two systems",
  "control tokens spelled out",
  "three tools",
  "a call, its result and more",
  "results in another order",
  "a long id",
  "arguments of a list",
  "arguments that are an object",
  "a result of JSON",
  "a last message with blanks to continue",
  "reasoning and a call",
  "thinking that goes on",
  "thinking in a system",
  "effort high",
  "a schema with a required flag",
  "an answer and a call in a row",
] as const

describe.each<[Version, Files]>([
  ["v3", { "params.json": params }],
  ["v7", { "config.json": config, "consolidated.safetensors": "", "tokenizer.json": "{}" }],
  ["v11", { "config.json": config, "consolidated-00001-of-00002.safetensors": "" }],
  ["v13", { "params.json": params, "chat_template.jinja": "{{ 'unused' }}" }],
  ["v15", { "config.json": config, "params.json": params }],
])("a folder with a tekken.json of %s", (version, files) => {
  test("has the parsers of its version", async () => {
    const model = await openServedModel(
      defaultConfig,
      await profileOf({ ...files, "tekken.json": tekkenFile(version) }),
    )
    if (!model.ok) throw new Error(model.error.message)
    const { reasoning, tools, needsSpecialTokens } = model.value.chatParser
    expect({ reasoning, tools, needsSpecialTokens }).toEqual({
      // The files of v11 in these tests name the tokens of later ones, too.
      reasoning: version === "v3" || version === "v7" ? "none" : "mistral",
      tools: "mistral",
      needsSpecialTokens: true,
    })
  })

  test("renders chats as the reference does", async () => {
    const profile = await profileOf({ ...files, "tekken.json": tekkenFile(version) })
    expect(profile).toMatchObject({ tokenizerMode: "mistral", contextTokensMax: 32_768, eosToken: "</s>" })
    const server = await startTestRenderer({ profile })
    try {
      for (const name of tried) {
        const body = namedRequests.find((each) => each.name === name)!.body
        const { status, json } = await server.post("/v1/chat/completions/render", `{"model":"m",${body.slice(1)}`)
        const wanted = golden.named[version][name]
        if (wanted.startsWith("refused")) expect([name, status, json.error.code]).toEqual([name, 400, 400])
        else expect([name, json.token_ids?.join(" ")]).toEqual([name, wanted])
      }
    } finally {
      await server.stop()
    }
  })
})

test("a model that sees gets a place for each image, and whoever generates the images", async () => {
  const files = { "config.json": { ...config, model_type: "pixtral" }, "params.json": params }
  const profile = await profileOf({ ...files, "tekken.json": tekkenFile("v3") })
  const server = await startTestRenderer({ profile })
  try {
    for (const [name, count] of [
      ["an image behind a text", 1],
      ["images between texts", 3],
    ] as const) {
      const body = namedRequests.find((each) => each.name === name)!.body
      const { json } = await server.post("/v1/chat/completions/render", `{"model":"m",${body.slice(1)}`)
      expect([json.token_ids?.join(" "), json.content_parts?.length]).toEqual([golden.named.v3[name], count])
    }
  } finally {
    await server.stop()
  }
})

test("template variables that the server sets by default mean nothing; a request's are refused", async () => {
  const profile = await profileOf({ "params.json": params, "tekken.json": tekkenFile("v13") })
  const server = await startTestRenderer({
    profile,
    config: { defaultChatTemplateKwargs: { style: "terse", deep: { a: 1 }, enable_thinking: true } },
  })
  try {
    const ask = (more: string) =>
      server.post("/v1/chat/completions/render", `{"model":"m","messages":[{"role":"user","content":"Hi"}]${more}}`)
    expect((await ask("")).status).toBe(200)
    expect((await ask(',"chat_template_kwargs":{}')).status).toBe(200)
    for (const name of ["style", "deep", "enable_thinking", "other"]) {
      const { status, json } = await ask(`,"chat_template_kwargs":{"${name}":"x"}`)
      expect([status, json.error.param]).toEqual([400, "chat_template_kwargs"])
      expect(json.error.message).toEndWith(name)
    }
  } finally {
    await server.stop()
  }
})

describe("a model that cannot have Mistral's prompts", () => {
  const opened = async (files: Files, mode: "auto" | "mistral" = "auto") => {
    const model = await openServedModel(defaultConfig, await profileOf(files, mode))
    return model.ok ? "opened" : model.error.message
  }

  test("says so before it listens", async () => {
    const file = tekkenFile("v13")
    expect(
      await opened({
        "params.json": params,
        "tekken.json": { ...file, config: { ...Object(file.config), version: "v2" } },
      }),
    ).toBe('tekken.json has the format version "v2"; known are v3, v7, v11, v13, v15')
    const others = (file.special_tokens as readonly object[]).slice(0, 20)
    expect(await opened({ "params.json": params, "tekken.json": { ...file, special_tokens: others } })).toBe(
      "the vocabulary has no token [CALL_ID], which prompts of version v13 need",
    )
  })

  test("is served by its chat template when told to", async () => {
    const files = { "config.json": config, "params.json": params, "tekken.json": tekkenFile("v13") }
    expect((await profileOf(files, "hf")).tokenizerMode).toBe("hf")
  })
})
