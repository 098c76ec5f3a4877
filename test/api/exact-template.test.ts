/** What a client wrote reaches a chat template as it wrote it, through either API; and a template's refusal comes back. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { jsonObjectValue } from "../../src/flags-values"
import { startTestServer, type TestServer } from "../support/test-server"

const template = `{%- for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}
{%- if m.content == 'refuse' %}{{ raise_exception('I will not.') }}{% endif %}{% endfor %}
{%- for t in tools or [] %}|{{ t.function.parameters | tojson }}|{{ t.function.parameters }}{% endfor %}
{%- for d in documents or [] %}|{{ d }}{% endfor %}|{{ scale }}|{{ settings }}`

const parameters =
  '{"type":"object","properties":{"b":{"maximum":14.0},"10":{"const":9007199254740993},"2":{"default":1e3}}}'
const written =
  '{"type": "object", "properties": {"b": {"maximum": 14.0}, "10": {"const": 9007199254740993}, "2": {"default": 1000.0}}}'
const printed =
  "{'type': 'object', 'properties': {'b': {'maximum': 14.0}, '10': {'const': 9007199254740993}, '2': {'default': 1000.0}}}"
const kwargs = '"chat_template_kwargs":{"scale":2.0,"settings":{"z":1.0,"1":[0.5,3.0,3]}}'

let server: TestServer

beforeAll(async () => {
  server = await startTestServer({
    config: { enableScaleOut: true },
    profile: { chatTemplates: { default: template } },
  })
})
afterAll(() => server.stop())

async function prompt(path: string, body: string, asked = server): Promise<string> {
  const rendered = await asked.post(path, body)
  expect([rendered.status, rendered.text]).toEqual([200, expect.any(String)])
  const { token_ids: tokens, tokens: counted } = rendered.json
  const detokenized = await asked.post("/detokenize", { tokens: tokens ?? counted })
  return detokenized.json.prompt
}

describe("floats, long integers and the order of keys", () => {
  test("of tools, arguments, documents and kwargs are in a chat's prompt", async () => {
    const call = `{"id":"a","type":"function","function":{"name":"f","arguments":${JSON.stringify('{"2":2.0,"1":18446744073709551616,"x":[1.0,1]}')}}}`
    const text = await prompt(
      "/tokenize",
      `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[${call}]}],"tools":[{"type":"function","function":{"name":"f","parameters":${parameters}}}],"documents":[{"text":"t","score":1.0}],${kwargs}}`,
    )
    expect(text).toBe(
      `{"2": 2.0, "1": 18446744073709551616, "x": [1.0, 1]}|${written}|${printed}|{'text': 't', 'score': 1.0}|2.0|{'z': 1.0, '1': [0.5, 3.0, 3]}`,
    )
  })

  test("and of a Responses request as well", async () => {
    const text = await prompt(
      "/v1/responses/render",
      `{"input":"hi","tools":[{"type":"function","name":"f","parameters":${parameters}}],${kwargs}}`,
    )
    expect(text).toBe(`|${written}|${printed}|2.0|{'z': 1.0, '1': [0.5, 3.0, 3]}`)
  })
})

test("a reply's schema reaches the engine's grammar as it was spelled", async () => {
  const schema =
    '{"type":"object","properties":{"2":{"const":14.0},"1":{"enum":[1.0,-0.0,1e22,9007199254740993,1.5]}},"required":["2"]}'
  const spelled =
    '{"type":"object","properties":{"2":{"const":14.0},"1":{"enum":[1.0,-0.0,1e+22,9007199254740993,1.5]}},"required":["2"]}'
  const body = `{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":${schema}}}}`
  const { json } = await server.post("/v1/chat/completions/render", body)
  expect(json.sampling_params.structured_outputs).toEqual({ json: spelled })
  // A model that reasons gets it as a part of a tag.
  const reasoning = await startTestServer({ config: { enableScaleOut: true } })
  try {
    const tagged = await reasoning.post("/v1/chat/completions/render", body)
    expect(tagged.json.sampling_params.structured_outputs.structural_tag).toContain(`"json_schema":${spelled}`)
  } finally {
    await reasoning.stop()
  }
})

test("a trusted template among the template variables counts, unless the request or the server has one", async () => {
  const messages = '"messages":[{"role":"user","content":"x"}]'
  const named = '"chat_template_kwargs":{"chat_template":"named {{ messages | length }}"}'
  const ask = async (chatTemplate: string | null, path: string, body: string) => {
    const trusting = await startTestServer({
      config: { enableScaleOut: true, trustRequestChatTemplate: true, chatTemplate },
      profile: { chatTemplates: { default: template } },
    })
    try {
      return await prompt(path, body, trusting)
    } finally {
      await trusting.stop()
    }
  }
  for (const path of ["/tokenize", "/v1/chat/completions/render"]) {
    expect(await ask(null, path, `{${messages},${named}}`)).toBe("named 1")
    expect(await ask(null, path, `{${messages},${named},"chat_template":"own"}`)).toBe("own")
    expect(await ask("server's", path, `{${messages},${named}}`)).toBe("server's")
  }
  expect(await ask(null, "/v1/responses/render", `{"input":"x",${named}}`)).toBe("named 1")
  const refused = await server.post("/v1/responses", `{"input":"x",${named}}`)
  expect([refused.status, refused.json.error.param]).toEqual([400, null])
})

test("kwargs of the command line are as exact, and give way to the request's number for number", async () => {
  const given = jsonObjectValue.read('{"scale":2.0,"settings":{"z":1.0,"1":18446744073709551616}}')
  if (!given.ok) throw new Error(given.error)
  const other = await startTestServer({
    config: { defaultChatTemplateKwargs: given.value },
    profile: { chatTemplates: { default: template } },
  })
  try {
    const messages = '"messages":[{"role":"user","content":"x"}]'
    expect(await prompt("/tokenize", `{${messages}}`, other)).toBe("|2.0|{'z': 1.0, '1': 18446744073709551616}")
    const changed = `{${messages},"chat_template_kwargs":{"scale":3,"settings":null}}`
    expect(await prompt("/tokenize", changed, other)).toBe("|3|{'z': 1.0, '1': 18446744073709551616}")
  } finally {
    await other.stop()
  }
})

test("a template's refusal is a 400 with its words", async () => {
  const refused = await server.post("/v1/chat/completions", { messages: [{ role: "user", content: "refuse" }] })
  expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining("I will not.")])
})
