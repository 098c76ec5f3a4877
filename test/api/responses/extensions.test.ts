/** What `--responses-extensions` turns on, each part alone, and refused without it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type ResponsesExtension, responsesExtensions } from "../../../src/config"
import { recordEngine } from "../../support/recorded-engine"
import { checkResponseStream, withoutChance } from "../../support/response-grammar"
import { startTestServer, type TestServer } from "../../support/test-server"

const path = "/v1/responses"
const custom = { type: "custom", name: "run", description: "Runs it." }
const find = { type: "function", name: "find", parameters: { type: "object" } }
const crm = { type: "namespace", name: "crm", description: "Customers", tools: [find] }
const look = { type: "function", name: "look", parameters: { type: "object" } }
const logprobs = "message.output_text.logprobs"

const servers = new Map<string, TestServer>()
async function serverWith(...extensions: ResponsesExtension[]): Promise<TestServer> {
  const key = extensions.join()
  const known = servers.get(key)
  if (known !== undefined) return known
  const server = await startTestServer({ config: { responsesExtensions: extensions } })
  servers.set(key, server)
  return server
}
let all: TestServer
beforeAll(async () => {
  all = await serverWith(...responsesExtensions)
})
afterAll(async () => {
  for (const server of servers.values()) await server.stop()
})

function call(name: string, given: object): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`
}

function body(text: string, extra: object, xargs: object = {}) {
  return { input: "Hi", vllm_xargs: { sim_text: text, ...xargs }, ...extra }
}

/** The reply in both modes, which must be the same; and the stream's events. */
async function bothModes(server: TestServer, request: object) {
  const events = await server.events(path, request)
  const { response } = checkResponseStream(events)
  const whole = await server.post(path, request)
  expect(withoutChance(response)).toEqual(withoutChance(whole.json))
  return { response, events }
}

/** Text of the prompt that the engine got. */
async function promptOf(server: TestServer, request: object): Promise<string> {
  using engine = recordEngine()
  const reply = await server.post(path, request)
  if (reply.status !== 200) throw new Error(reply.text)
  const tokens = Array.from(engine.requests[0]!.promptTokenIds)
  return (await server.post("/detokenize", { tokens })).json.prompt
}

describe("without its extension", () => {
  const refused: readonly (readonly [string, ResponsesExtension, object, string])[] = [
    ["a custom tool", "custom_tools", { tools: [custom] }, "tools"],
    [
      "a custom choice",
      "custom_tools",
      { tools: [look], tool_choice: { type: "custom", name: "look" } },
      "tool_choice",
    ],
    [
      "a custom call in the history",
      "custom_tools",
      { input: [{ type: "custom_tool_call", call_id: "c", name: "run", input: "ls" }] },
      "input",
    ],
    [
      "its output",
      "custom_tools",
      { input: [{ type: "custom_tool_call_output", call_id: "c", output: "ls" }] },
      "input",
    ],
    ["a namespace", "namespace_tools", { tools: [crm] }, "tools"],
    [
      "a set of allowed tools",
      "allowed_tools",
      { tools: [look], tool_choice: { type: "allowed_tools", mode: "auto", tools: [look] } },
      "tool_choice",
    ],
    ["a count of alternatives", "logprobs", { top_logprobs: 1 }, "top_logprobs"],
    ["logprobs of the text", "logprobs", { include: [logprobs] }, "include"],
  ]
  test.each(refused)("%s is refused", async (_name, extension, extra, param) => {
    const others = await serverWith(...responsesExtensions.filter((each) => each !== extension))
    for (const server of [await serverWith(), others]) {
      const reply = await server.post(path, body("x", extra))
      expect([reply.status, reply.json.error]).toEqual([
        400,
        {
          message: expect.stringContaining(`--responses-extensions ${extension}.`),
          type: "BadRequestError",
          param,
          code: 400,
        },
      ])
    }
  })

  test("built-in tools are refused whatever is turned on", async () => {
    for (const type of ["web_search", "web_search_preview", "code_interpreter", "mcp", "image_generation", "shell"]) {
      const reply = await all.post(path, body("x", { tools: [{ type, name: "x" }] }))
      expect([reply.status, reply.json.error.param, reply.json.error.message]).toEqual([
        400,
        "tools",
        expect.stringContaining(`tools[0]: tools of type '${type}'`),
      ])
    }
  })
})

describe("custom tools", () => {
  const server = (): Promise<TestServer> => serverWith("custom_tools")

  test("are functions with one text to the model, and custom calls to the client", async () => {
    const { response, events } = await bothModes(
      await server(),
      body(call("run", { input: 'echo "é\n🎉"' }), { tools: [custom] }),
    )
    expect(response.output).toEqual([
      {
        type: "custom_tool_call",
        id: expect.stringMatching(/^ctc_[0-9a-f]{32}$/),
        call_id: expect.stringMatching(/^call_[0-9a-f]{24}$/),
        name: "run",
        input: 'echo "é\n🎉"',
        status: "completed",
      },
    ])
    expect([response.tools, response.tool_choice]).toEqual([[custom], "auto"])
    const deltas = events.filter(({ event }) => event === "response.custom_tool_call_input.delta")
    expect(deltas.length).toBeGreaterThan(2)
    expect(events.some(({ event }) => event.includes("function_call"))).toBe(false)
    const shim = '{"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]'
    expect(await promptOf(await server(), body("x", { tools: [custom] }))).toContain(shim)
  })

  test("take the text format, and refuse grammars", async () => {
    const withFormat = (format: object) => body("x", { tools: [{ ...custom, format }] })
    expect((await (await server()).post(path, withFormat({ type: "text" }))).status).toBe(200)
    const grammar = { type: "grammar", syntax: "lark", definition: "start: x" }
    const reply = await (await server()).post(path, withFormat(grammar))
    expect([reply.status, reply.json.error.param]).toEqual([400, "tools"])
    const nameless = await (await server()).post(path, body("x", { tools: [{ type: "custom" }] }))
    expect([nameless.status, nameless.json.error.param]).toEqual([400, "tools"])
  })

  test("can be chosen by name", async () => {
    const chosen = { type: "custom", name: "run" }
    const { json } = await (await server()).post(path, body("x", { tools: [custom], tool_choice: chosen }))
    expect(json.tool_choice).toEqual(chosen)
    const asFunction = { type: "function", name: "run" }
    const reply = await (await server()).post(path, body("x", { tools: [custom], tool_choice: asFunction }))
    expect([reply.status, reply.json.error.param]).toEqual([400, "tool_choice"])
  })

  test("are cut like other calls, with what can be read so far", async () => {
    const text = call("run", { input: 'a"b' })
    const cut = '<tool_call>\n{"name": "run", "arguments": {"input": "a\\"b'
    const { response } = await bothModes(await server(), body(cut, { tools: [custom] }, { sim_finish: "length" }))
    expect([response.status, response.output]).toMatchObject(["incomplete", [{ input: 'a"b', status: "incomplete" }]])
    const broken = { sim_error: "disconnect", sim_fail_after_tokens: 14 }
    const events = await (await server()).events(path, body(text, { tools: [custom] }, broken))
    expect(checkResponseStream(events).ending).toBe("failed")
  })

  test("are replayed as the model wrote them", async () => {
    const input = (kind: "custom" | "function"): object[] => [
      { role: "user", content: "Hi" },
      kind === "custom"
        ? { type: "custom_tool_call", id: "ctc_1", call_id: "c1", name: "run", input: 'echo "x"' }
        : { type: "function_call", call_id: "c1", name: "run", arguments: '{"input": "echo \\"x\\""}' },
      kind === "custom"
        ? { type: "custom_tool_call_output", call_id: "c1", output: [{ type: "input_text", text: "x" }] }
        : { type: "function_call_output", call_id: "c1", output: "x" },
    ]
    const prompts = await Promise.all(
      (["custom", "function"] as const).map(async (kind) => {
        const reply = await (await server()).post(path, body("y", { input: input(kind), tools: [custom] }))
        return [reply.status, reply.json.usage.input_tokens]
      }),
    )
    expect(prompts[0]).toEqual(prompts[1]!)
    expect(await promptOf(await server(), body("y", { input: input("custom") }))).toContain('"input": "echo \\"x\\""')
    for (const wrong of [
      { type: "custom_tool_call", call_id: "c", name: "run" },
      { type: "custom_tool_call", call_id: "c", input: "x" },
      { type: "custom_tool_call", name: "run", input: "x" },
      { type: "custom_tool_call_output", output: "x" },
    ]) {
      const reply = await (await server()).post(path, body("y", { input: [{ role: "user", content: "Hi" }, wrong] }))
      expect([reply.status, reply.json.error.param]).toEqual([400, "input"])
    }
  })
})

describe("namespaces", () => {
  const server = (): Promise<TestServer> => serverWith("namespace_tools")

  test("are flattened for the model and split for the client", async () => {
    const { response, events } = await bothModes(
      await server(),
      body(`${call("crm__find", { a: 1 })}${call("other", {})}`, { tools: [crm, look] }),
    )
    expect(response.output).toMatchObject([
      { type: "function_call", name: "find", namespace: "crm", arguments: '{"a":1}' },
      { type: "function_call", name: "other", arguments: "{}" },
    ])
    expect(response.output[1].namespace).toBeUndefined()
    const done = events.find(({ event }) => event === "response.function_call_arguments.done")!.json
    expect(done.name).toBe("find")
    expect(response.tools[0]).toEqual(crm)
    expect(await promptOf(await server(), body("x", { tools: [crm] }))).toContain('"name": "crm__find"')
  })

  test("are replayed with their flat names", async () => {
    const input = [
      { role: "user", content: "Hi" },
      { type: "function_call", call_id: "c1", name: "find", namespace: "crm", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "x" },
    ]
    expect(await promptOf(await server(), body("y", { input, tools: [crm] }))).toContain('"name": "crm__find", "arg')
  })

  test("resolve bare names that only one of them has", async () => {
    const shop = { ...crm, name: "shop" }
    const choose = async (choice: object, tools: object[]) => {
      const reply = await (await server()).post(path, body("x", { tools, tool_choice: choice }))
      return reply.status === 200 ? reply.json.tool_choice : [reply.status, reply.json.error.param]
    }
    const resolved = { type: "function", name: "find", namespace: "crm" }
    expect(await choose({ type: "function", name: "find" }, [crm])).toEqual(resolved)
    expect(await choose({ type: "function", name: "crm__find" }, [crm, shop])).toEqual(resolved)
    expect(await choose(resolved, [crm, shop])).toEqual(resolved)
    expect(await choose({ type: "function", name: "find" }, [crm, shop])).toEqual([400, "tool_choice"])
    expect(await choose({ type: "function", name: "find", namespace: "bank" }, [crm])).toEqual([400, "tool_choice"])
  })

  test("hold functions, custom tools only when those are turned on, and no namespaces", async () => {
    const holding = (inner: object) => body("x", { tools: [{ ...crm, tools: [inner] }] })
    for (const inner of [custom, crm, { type: "web_search" }, { type: "function" }]) {
      const reply = await (await server()).post(path, holding(inner))
      expect([reply.status, reply.json.error.param, reply.json.error.message]).toEqual([
        400,
        "tools",
        expect.stringContaining("tools[0].tools[0]"),
      ])
    }
    const { response } = await bothModes(all, {
      ...holding(custom),
      ...body(call("crm__run", { input: "ls" }), {}),
      tools: [{ ...crm, tools: [custom] }],
    })
    expect(response.output).toMatchObject([{ type: "custom_tool_call", name: "run", namespace: "crm", input: "ls" }])
  })

  test("do not share a flat name with another tool", async () => {
    const twin = { type: "function", name: "crm__find" }
    const reply = await (await server()).post(path, body("x", { tools: [crm, twin] }))
    expect([reply.status, reply.json.error.param]).toEqual([400, "tools"])
  })
})

describe("allowed tools", () => {
  test("are all that the model is shown, and the echo is whole", async () => {
    const server = await serverWith("allowed_tools")
    const other = { ...look, name: "other" }
    const choice = { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "look" }] }
    const request = body(call("look", {}), { tools: [look, other], tool_choice: choice })
    const { response } = await bothModes(server, request)
    expect(response.output).toMatchObject([{ type: "function_call", name: "look" }])
    expect(response.tool_choice).toEqual(choice)
    expect(response.tools.map((tool: { name: string }) => tool.name)).toEqual(["look", "other"])
    const prompt = await promptOf(server, request)
    expect([prompt.includes('"name": "look"'), prompt.includes('"name": "other"')]).toEqual([true, false])
  })

  test("must be among the tools, in a mode that exists", async () => {
    const server = await serverWith("allowed_tools")
    const named = [{ type: "function", name: "look" }]
    for (const choice of [
      { mode: "auto", tools: [{ type: "function", name: "nope" }] },
      { mode: "auto", tools: [{ type: "mcp", server_label: "x" }] },
      { mode: "auto", tools: ["look"] },
      { mode: "auto" },
      { mode: "none", tools: named },
      { mode: "required", tools: [] },
    ]) {
      const request = body("x", { tools: [look], tool_choice: { type: "allowed_tools", ...choice } })
      const reply = await server.post(path, request)
      expect([choice, reply.status, reply.json.error?.param]).toEqual([choice, 400, "tool_choice"])
    }
    const none = { type: "allowed_tools", mode: "auto", tools: [] }
    const text = call("look", {})
    const { json } = await server.post(path, body(text, { tools: [look], tool_choice: none }))
    expect(json.output).toMatchObject([{ type: "message" }])
  })
})

describe("logprobs of the text", () => {
  const include = [logprobs]
  const script = `<think>\nLet me look\n</think>\n\nHello 🎉 wörld STOP it.${call("look", { at: "sky" })}`
  const texts = (entries: { token: string }[]): string => entries.map(({ token }) => token).join("")

  test("are those of the message's own tokens, with bytes, in deltas, done and items", async () => {
    const server = await serverWith("logprobs")
    for (const steps of [1, 3, [2, 5, 1, 7], 100]) {
      const request = body(script, { include, top_logprobs: 2, tools: [look] }, { sim_tokens_per_step: steps })
      const { response, events } = await bothModes(server, request)
      expect(response.top_logprobs).toBe(2)
      const [, message] = response.output
      const { text, logprobs: entries } = message.content[0]
      expect(text).toBe("Hello 🎉 wörld STOP it.")
      for (const { token, logprob, bytes, top_logprobs: top } of entries) {
        expect(top.length).toBe(2)
        for (const each of [{ token, logprob, bytes }, ...top]) {
          expect(each).toEqual({
            token: expect.any(String),
            logprob: expect.any(Number),
            bytes: [...new TextEncoder().encode(each.token)],
          })
        }
      }
      const shown = texts(entries)
      expect(shown).not.toContain("look")
      expect(shown).not.toContain("<")
      // A character of several tokens has no text of its own in any of them.
      expect(shown.replace(/\ufffd+/, "🎉")).toContain("wörld STOP it.")
      const part = events.find(
        ({ json }) => json.type === "response.content_part.done" && json.part.type === "output_text",
      )
      expect(part!.json.part.logprobs).toEqual(entries)
    }
  })

  test("are as many as the tokens of a plain text, whichever way it is held back", async () => {
    const server = await serverWith("logprobs")
    const text = "alpha beta gamma <not a tag> delta"
    const tokens: number = (await server.post("/tokenize", { prompt: text })).json.count
    for (const steps of [1, 2, 100]) {
      const { response } = await bothModes(
        server,
        body(text, { include, stop: ["zeta"] }, { sim_tokens_per_step: steps }),
      )
      const { logprobs: entries } = response.output[0].content[0]
      expect([entries.length, texts(entries)]).toEqual([tokens, text])
      expect(entries[0].top_logprobs).toEqual([])
    }
  })

  test("go on in each message of several", async () => {
    const server = await serverWith("logprobs")
    const two = `One.${call("look", {})}Two.`
    const { response } = await bothModes(server, body(two, { include, tools: [look] }))
    const messages = response.output.filter((item: { type: string }) => item.type === "message")
    expect(
      messages.map((item: { content: [{ logprobs: { token: string }[] }] }) => texts(item.content[0].logprobs)),
    ).toEqual(["One.", "Two."])
  })

  test("are left out unless they are asked for, and withheld where reasoning is hidden", async () => {
    const server = await serverWith("logprobs")
    for (const [extra, echoed] of [
      [{ top_logprobs: 2 }, null],
      [{ include: ["reasoning.encrypted_content"] }, null],
      [{ include, top_logprobs: 2, include_reasoning: false }, 2],
    ] as const) {
      using engine = recordEngine()
      const { response } = await bothModes(server, body(script, extra))
      const message = response.output.find((item: { type: string }) => item.type === "message")
      expect([message.content[0].logprobs, response.top_logprobs]).toEqual([null, echoed])
      expect(engine.requests.map(({ sampling }) => sampling.logprobs)).toEqual([null, null])
    }
  })

  test("have a limit", async () => {
    const server = await serverWith("logprobs")
    for (const top_logprobs of [21, -1]) {
      const reply = await server.post(path, body("x", { include, top_logprobs }))
      expect([reply.status, reply.json.error.param]).toEqual([400, "top_logprobs"])
    }
    expect((await server.post(path, body("x", { include, top_logprobs: 20 }))).status).toBe(200)
  })

  test("come with a stream that fails", async () => {
    const server = await serverWith("logprobs")
    const xargs = { sim_error: "disconnect", sim_fail_after_tokens: 3 }
    const events = await server.events(path, body("one two three four", { include }, xargs))
    const { response, ending } = checkResponseStream(events)
    expect([ending, texts(response.output[0].content[0].logprobs)]).toEqual(["failed", "one two three"])
  })
})
