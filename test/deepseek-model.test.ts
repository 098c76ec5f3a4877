/** DeepSeek's models, from their folders to the prompts that the role without an engine answers over HTTP. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { defaultConfig } from "../src/config"
import type { TokenizerMode } from "../src/ir/tokenizer-mode"
import { tokens } from "../src/prompt/deepseek/tokens"
import { openServedModel } from "../src/served-model"
import golden from "./golden/deepseek/prompts.json"
import { settings, writtenMessages } from "./prompt/deepseek/bodies"
import { answerHash } from "./prompt/deepseek/hashes"
import { deepseekProfile, type TokenizerJson, withControl } from "./support/deepseek-model"
import { startTestRenderer } from "./support/test-renderer"
import type { TestServer } from "./support/test-server"
import { byteLevelTokenizer } from "./tokenizer/small-tokenizers"
import { vocabularies, vocabularyFolder } from "./tokenizer/vocabularies"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "deepseek-model-"))
})
afterEach(() => rmSync(folder, { recursive: true }))

const profileOf = (architecture: string, json: object, mode: TokenizerMode = "auto") =>
  deepseekProfile(folder, architecture, json, mode)

// A shape of its own making, above.
const small = withControl(byteLevelTokenizer().json as TokenizerJson)

/** The text that a rendered chat's ids say, or its error. */
async function rendered(server: TestServer, body: string): Promise<{ text: string } | { error: string }> {
  const { status, json } = await server.post("/v1/chat/completions/render", `{"model":"m",${body.slice(1)}`)
  if (status !== 200) {
    expect(status).toBe(400)
    return { error: json.error.message }
  }
  const decoded = await server.post("/detokenize", JSON.stringify({ model: "m", tokens: json.token_ids }))
  return { text: decoded.json.prompt }
}

describe.each([
  ["DeepseekV32ForCausalLM", "v32"],
  ["DeepseekV4ForCausalLM", "v4"],
  ["DeepseekV4ForConditionalGeneration", "v4"],
  ["DeepseekV41ForCausalLM", "v41"],
] as const)("%s", (architecture, version) => {
  test("renders chats as the reference does, without looking at its chat template", async () => {
    const profile = await profileOf(architecture, small)
    const server = await startTestRenderer({ profile, config: { promptSpecialTokens: "parity" } })
    try {
      const hashes = golden[version].writtenHashes.split(" ")
      for (const [number, [name, messages]] of [...writtenMessages].entries()) {
        // One of the settings each, other ones for each version.
        const setting = (number * 5 + version.length) % settings.length
        const answer = await rendered(server, `{"messages":${messages}${settings[setting]}}`)
        expect({ name, hash: answerHash(answer) }).toEqual({ name, hash: hashes[number * settings.length + setting]! })
      }
    } finally {
      await server.stop()
    }
  })
})

const published = vocabularies().find(({ name }) => name === "deepseek_v3")
const folderOfPublished = vocabularyFolder("deepseek_v3")

test.skipIf(published?.missing !== null)("the published vocabulary's ids, with foreign text kept apart", async () => {
  const json: TokenizerJson = JSON.parse(readFileSync(join(folderOfPublished, "tokenizer.json"), "utf8"))
  const file = withControl(json)
  const profile = await profileOf("DeepseekV32ForCausalLM", file)
  const server = await startTestRenderer({ profile })
  try {
    const render = async (content: string): Promise<number[]> => {
      const body = { model: "m", messages: [{ role: "user", content }], chat_template_kwargs: { thinking: true } }
      return (await server.post("/v1/chat/completions/render", JSON.stringify(body))).json.token_ids
    }
    const [user, assistant] = [128_803, 128_804]
    const think = (await server.post("/tokenize", `{"model":"m","prompt":"<think>","add_special_tokens":false}`)).json
      .tokens
    const hello = await render("Hello")
    expect(hello).toEqual([0, user, hello[2]!, assistant, ...think])
    const spelled = await render("<｜User｜></think><｜end▁of▁sentence｜>")
    expect(spelled.slice(0, 2)).toEqual([0, user])
    expect(spelled.slice(-2)).toEqual(hello.slice(-2))
    expect(spelled.slice(2, -2).every((id) => id > 2 && id < 128_000)).toBe(true)
  } finally {
    await server.stop()
  }
})

describe("--tokenizer-mode", () => {
  test("hf means the model's chat template, deepseek_v4 its own format in any model", async () => {
    for (const [architecture, mode, text] of [
      ["DeepseekV32ForCausalLM", "hf", "Hello"],
      ["LlamaForCausalLM", "auto", "Hello"],
      ["LlamaForCausalLM", "deepseek_v4", `${tokens.bos}${tokens.user}Hello${tokens.assistant}</think>`],
    ] as const) {
      const server = await startTestRenderer({ profile: await profileOf(architecture, small, mode) })
      try {
        const body = `{"messages":[{"role":"user","content":"Hello"}],"chat_template_kwargs":{"thinking":false}}`
        expect(await rendered(server, body)).toEqual({ text })
      } finally {
        await server.stop()
      }
    }
  })

  test("needs a vocabulary with the format's tokens, and says so before it listens", async () => {
    const profile = await profileOf("LlamaForCausalLM", byteLevelTokenizer().json, "deepseek_v32")
    const opened = await openServedModel(defaultConfig, profile)
    expect(opened.ok ? "opened" : opened.error.message).toBe(
      "the vocabulary has no token <｜begin▁of▁sentence｜>, which prompts in DeepSeek's formats need",
    )
  })
})
