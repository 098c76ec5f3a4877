/** gpt-oss through HTTP: prompts in the Harmony format, and replies of messages, on every API. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { gptOssProfile } from "../support/gpt-oss-model"
import { startTestServer, type TestServer } from "../support/test-server"

let server: TestServer
beforeAll(async () => {
  server = await startTestServer({ profile: await gptOssProfile(), config: { harmonyStartDate: "2026-03-05" } })
})
afterAll(() => server.stop())

const system = (rest = "") =>
  "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n" +
  "Current date: 2026-03-05\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be " +
  `included for every message.${rest}<|end|>`
const functionsNote = "\nCalls to these tools must go to the commentary channel: 'functions'."
const toolSection =
  "# Tools\n\n## functions\n\nnamespace functions {\n\n// Looks.\ntype look = (_: {\nat: string,\n}) => any;\n\n" +
  "} // namespace functions"
const parameters = { type: "object", properties: { at: { type: "string" } }, required: ["at"] }
const chatTools = [{ type: "function", function: { name: "look", description: "Looks.", parameters } }]
const responseTools = [{ type: "function", name: "look", description: "Looks.", parameters }]

const thought = "<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant"
const answer = `${thought}<|channel|>final<|message|>It is blue.`
const call = `${thought}<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": "sky"}`

async function promptOf(path: string, body: object): Promise<string> {
  const { json, status, text } = await server.post(path, { ...body, max_tokens: 1, return_prompt_text: true })
  if (status !== 200) throw new Error(text)
  return json.prompt_text
}

const chatPrompt = (messages: object[], extra: object = {}) => promptOf("/v1/chat/completions", { messages, ...extra })

describe("a prompt", () => {
  test("is a system message, a developer message for instructions and tools, and the turns", async () => {
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "What <|end|>?" },
    ]
    expect(await chatPrompt(messages, { tools: chatTools })).toBe(
      `${system(functionsNote)}<|start|>developer<|message|># Instructions\n\nBe brief.\n\n${toolSection}<|end|>` +
        "<|start|>user<|message|>What <|end|>?<|end|><|start|>assistant",
    )
    // What the user spells out is text: there is one end token for each message, and three messages.
    const { json } = await server.post("/tokenize", { messages, tools: chatTools })
    expect(json.tokens.filter((id: number) => id === 200_007)).toHaveLength(3)
  })

  test("goes on after calls with their results under the names of their functions, and keeps the model's own words", async () => {
    const turns = [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: "One moment.",
        reasoning: "Look it up.",
        tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: '{"at":  "sky"}' } }],
      },
      { role: "tool", tool_call_id: "a", content: "blue" },
    ]
    const shown =
      "<|start|>user<|message|>Hi<|end|>" +
      "<|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>" +
      "<|start|>assistant<|channel|>analysis<|message|>Look it up.<|end|>" +
      '<|start|>assistant to=functions.look<|channel|>commentary json<|message|>{"at":  "sky"}<|call|>' +
      "<|start|>functions.look to=assistant<|channel|>commentary<|message|>blue<|end|>"
    expect(await chatPrompt(turns)).toBe(`${system()}${shown}<|start|>assistant`)
    const done = [...turns, { role: "assistant", content: "Blue.", reasoning: "So." }, { role: "user", content: "Ok" }]
    expect(await chatPrompt(done)).toBe(
      `${system()}${shown.replace(/<\|start\|>assistant<\|channel\|>analysis.*?<\|end\|>/, "")}` +
        "<|start|>assistant<|channel|>final<|message|>Blue.<|end|><|start|>user<|message|>Ok<|end|><|start|>assistant",
    )
  })

  test("stays open where the model shall go on with its last message", async () => {
    const open = { add_generation_prompt: false, continue_final_message: true }
    const user = { role: "user", content: "Hi" }
    expect(await chatPrompt([user, { role: "assistant", content: "It is", reasoning: "So." }], open)).toBe(
      `${system()}<|start|>user<|message|>Hi<|end|><|start|>assistant<|channel|>analysis<|message|>So.<|end|>` +
        "<|start|>assistant<|channel|>final<|message|>It is",
    )
    expect(await chatPrompt([user, { role: "assistant", content: null, reasoning: "So" }], open)).toEndWith(
      "<|start|>assistant<|channel|>analysis<|message|>So",
    )
  })

  test("tells the effort, built-in tools and whatever else the template of gpt-oss takes", async () => {
    const prompt = await chatPrompt([{ role: "user", content: "Hi" }], {
      reasoning_effort: "high",
      chat_template_kwargs: { builtin_tools: ["python"], model_identity: "You are a test.", unknown: 1 },
    })
    expect(prompt).toStartWith("<|start|>system<|message|>You are a test.\nKnowledge cutoff: 2024-06\n")
    expect(prompt).toContain("\n\nReasoning: high\n\n# Tools\n\n## python\n\nUse this tool to execute Python code")
  })

  test("is refused with its field where the format has no place for it", async () => {
    const user = { role: "user", content: "Hi" }
    const faultOf = async (body: object) => {
      const { status, json } = await server.post("/v1/chat/completions", body)
      return [status, json.error.type, json.error.param]
    }
    for (const effort of ["none", "minimal", "max"]) {
      expect(await faultOf({ messages: [user], reasoning_effort: effort })).toEqual([
        400,
        "BadRequestError",
        "reasoning_effort",
      ])
    }
    const kwargs = { builtin_tools: ["telescope"] }
    expect(await faultOf({ messages: [user], chat_template_kwargs: kwargs })).toEqual([
      400,
      "BadRequestError",
      "chat_template_kwargs",
    ])
    expect(await faultOf({ messages: [{ role: "critic", content: "Hm" }] })).toEqual([
      400,
      "BadRequestError",
      "messages",
    ])
    const { status, json } = await server.post("/v1/chat/completions", {
      messages: [user, { role: "tool", tool_call_id: "b", content: "x" }],
    })
    expect([status, json.error.message]).toEqual([400, "No call message found for b"])
  })
})

describe("chat", () => {
  const post = async (text: string, extra: object = {}) => {
    const body = { messages: [{ role: "user", content: "Hi" }], vllm_xargs: { sim_text: text }, ...extra }
    const { json, status, text: raw } = await server.post("/v1/chat/completions", body)
    if (status !== 200) throw new Error(raw)
    const { message, finish_reason } = json.choices[0]
    const calls = message.tool_calls?.map((each: { function: object }) => each.function)
    return { reasoning: message.reasoning, content: message.content, calls, finish: finish_reason, usage: json.usage }
  }

  test("tells reasoning, text and calls apart", async () => {
    expect(await post(answer)).toMatchObject({ reasoning: "Look it up.", content: "It is blue.", finish: "stop" })
    expect((await post(answer)).usage.completion_tokens_details).toEqual({ reasoning_tokens: 4 })
    expect(await post(call, { tools: chatTools })).toMatchObject({
      reasoning: "Look it up.",
      content: null,
      calls: [{ name: "look", arguments: '{"at": "sky"}' }],
      finish: "tool_calls",
    })
  })

  test("streams what it gives as a whole, whatever comes in one step", async () => {
    const preamble = "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
    for (const text of [answer, call, preamble + call, `${preamble}<|channel|>analysis<|message|>é😀<|end|>Hm`]) {
      const whole = await post(text, { tools: chatTools })
      for (const step of [1, 3, 100]) {
        const events = await server.events("/v1/chat/completions", {
          messages: [{ role: "user", content: "Hi" }],
          tools: chatTools,
          vllm_xargs: { sim_text: text, sim_tokens_per_step: step },
        })
        let reasoning = ""
        let content = ""
        const calls: { name: string; arguments: string }[] = []
        for (const { data } of events) {
          if (data === "[DONE]") continue
          const delta = JSON.parse(data).choices[0]?.delta ?? {}
          reasoning += delta.reasoning ?? ""
          content += delta.content ?? ""
          for (const { index, function: part } of delta.tool_calls ?? []) {
            calls[index] ??= { name: part.name, arguments: "" }
            calls[index].arguments += part.arguments
          }
        }
        expect({ reasoning: reasoning || null, content: content || null, calls }).toEqual({
          reasoning: whole.reasoning,
          content: whole.content,
          calls: whole.calls ?? [],
        })
      }
    }
  })

  test("goes on inside of the message that the prompt leaves open", async () => {
    const open = {
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "It is" },
      ],
      add_generation_prompt: false,
      continue_final_message: true,
    }
    expect(await post(" blue.", open)).toMatchObject({ reasoning: null, content: " blue." })
  })

  test("shows plain text of a model that writes no messages", async () => {
    expect(await post("Plain words, no message at all.")).toMatchObject({ content: "Plain words, no message at all." })
  })
})

const twice =
  "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|><|start|>assistant" +
  "<|channel|>analysis<|message|>c<|end|><|start|>assistant<|channel|>final<|message|>d<|return|>"

describe("messages of one kind", () => {
  test("are lines of one text in chat", async () => {
    const body = { messages: [{ role: "user", content: "Hi" }], vllm_xargs: { sim_text: twice } }
    const { message } = (await server.post("/v1/chat/completions", body)).json.choices[0]
    expect([message.reasoning, message.content]).toEqual(["a\nc", "b\nd"])
    const deltas = (await server.events("/v1/chat/completions", body)).map(
      ({ data }) => /"delta":(\{.*?\})/.exec(data)?.[1],
    )
    expect(deltas.filter((delta) => delta !== undefined && delta !== "{}").slice(1)).toEqual([
      ...['{"reasoning":"a"}', '{"content":"b"}', '{"reasoning":"\\n"}', '{"reasoning":"c"}', '{"content":"\\n"}'],
      '{"content":"d"}',
    ])
  })

  test("are items of their own in responses", async () => {
    const body = { input: "Hi", vllm_xargs: { sim_text: twice } }
    const { output } = (await server.post("/v1/responses", body)).json
    expect(
      output.map((item: { type: string; content: { text: string }[] }) => [item.type, item.content[0]!.text]),
    ).toEqual([
      ["reasoning", "a"],
      ["message", "b"],
      ["reasoning", "c"],
      ["message", "d"],
    ])
  })
})

describe("responses", () => {
  test("give reasoning, text and calls as items", async () => {
    const items = async (text: string) => {
      const body = { input: "Hi", tools: responseTools, vllm_xargs: { sim_text: text } }
      return (await server.post("/v1/responses", body)).json.output
    }
    expect(await items(answer)).toMatchObject([
      { type: "reasoning", content: [{ type: "reasoning_text", text: "Look it up." }] },
      { type: "message", content: [{ type: "output_text", text: "It is blue." }] },
    ])
    expect(await items(call)).toMatchObject([
      { type: "reasoning" },
      { type: "function_call", name: "look", arguments: '{"at": "sky"}', status: "completed" },
    ])
  })

  test("take their own items back: a loop of calls", async () => {
    const first = (
      await server.post("/v1/responses", { input: "Hi", tools: responseTools, vllm_xargs: { sim_text: call } })
    ).json
    const input = [
      { role: "user", content: "Hi" },
      ...first.output,
      { type: "function_call_output", call_id: first.output[1].call_id, output: "blue" },
    ]
    const body = { input, instructions: "Be brief.", tools: responseTools }
    const second = await server.post("/v1/responses", { ...body, vllm_xargs: { sim_text: answer } })
    expect(second.json.output[1].content[0].text).toBe("It is blue.")
    const { json } = await server.post("/tokenize", {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          reasoning: "Look it up.",
          tool_calls: [{ id: "a", function: { name: "look", arguments: '{"at": "sky"}' } }],
        },
        { role: "tool", tool_call_id: "a", content: "blue" },
      ],
      tools: chatTools,
    })
    expect(second.json.usage.input_tokens).toBe(json.count)
  })

  test("show the model all parts of its reasoning, one a line", async () => {
    const tokens = async (path: string, body: object): Promise<number> => {
      const { json } = await server.post(path, body)
      return json.count ?? json.usage.input_tokens
    }
    const user = { role: "user", content: "Hi" }
    const parts = ["One.", "Two."].map((text) => ({ type: "reasoning_text", text }))
    const last = { type: "function_call", call_id: "a", name: "look", arguments: "{}" }
    const output = { type: "function_call_output", call_id: "a", output: "blue" }
    const input = [user, { type: "reasoning", summary: [], content: parts }, last, output]
    const calls = [{ id: "a", function: { name: "look", arguments: "{}" } }]
    const messages = (reasoning: string) => [
      user,
      { role: "assistant", reasoning, tool_calls: calls },
      { role: "tool", tool_call_id: "a", content: "blue" },
    ]
    const ours = await tokens("/v1/responses", { input, tools: responseTools, vllm_xargs: { sim_text: answer } })
    expect(ours).toBe(await tokens("/tokenize", { messages: messages("One.\nTwo."), tools: chatTools }))
    expect(ours).not.toBe(await tokens("/tokenize", { messages: messages("One."), tools: chatTools }))
  })

  test("refuse an effort that the model does not know", async () => {
    const { status, json } = await server.post("/v1/responses", { input: "Hi", reasoning: { effort: "none" } })
    expect([status, json.error.param]).toEqual([400, "reasoning_effort"])
  })
})
