import { describe, expect, test } from "bun:test"
import { type CallRequest, constrainReply } from "../../src/api/reply-constraint"
import type { FunctionTool, ToolChoice } from "../../src/ir/conversation"
import type { OutputGrammar } from "../../src/ir/output-grammar"
import type { StructuredOutputs } from "../../src/ir/sampling"
import { conversationOf } from "../support/conversation"

const thinkId = 7
const grammar: OutputGrammar = {
  callTag: (constraint) => ({ calls: JSON.parse(JSON.stringify(constraint)) }),
  reasoningTag: (ids) => ({ ended: ids.at(-1) === thinkId, formats: ids.at(-1) === thinkId ? [] : ["reasoning"] }),
}
const without: OutputGrammar = { callTag: null, reasoningTag: null }

function tool(name: string, strict: boolean | null = null): FunctionTool {
  return { name, description: null, parameters: { title: name }, strict }
}

function request(
  toolChoice: ToolChoice,
  tools: readonly FunctionTool[],
  structuredOutputs: StructuredOutputs | null = null,
  parallelToolCalls = true,
): CallRequest {
  const conversation = conversationOf([], { tools, toolChoice })
  return { conversation, parallelToolCalls, structuredOutputs }
}

/** With the reasoning behind the prompt, so that the constraint stands alone. */
function constrained(request: CallRequest, level: "auto" | "function" | "parameter" = "auto"): unknown {
  const { structuredOutputs, reasoningEnded } = constrainReply(request, Uint32Array.of(thinkId), level, true, grammar)
  expect(reasoningEnded).toBe(structuredOutputs === null ? null : true)
  return structuredOutputs
}

function tag(format: unknown): unknown {
  return { structural_tag: { type: "structural_tag", format } }
}

function calls(functions: readonly [string, unknown][], allowsText: boolean, single: boolean): unknown {
  return {
    calls: { functions: functions.map(([name, parameters]) => ({ name, parameters })), allowsText, single },
  }
}

const both = [tool("a"), tool("b", true)]
const free = [tool("a"), tool("b", false)]

describe("calls", () => {
  test("that are forced keep the family's syntax; schemas hold for strict functions", () => {
    const functions: [string, unknown][] = [
      ["a", true],
      ["b", { title: "b" }],
    ]
    expect(constrained(request({ kind: "required" }, both))).toEqual(tag(calls(functions, false, false)))
    expect(constrained(request({ kind: "named", name: "b" }, both))).toEqual(
      tag(calls([["b", { title: "b" }]], false, true)),
    )
    expect(constrained(request({ kind: "required" }, both, null, false))).toEqual(tag(calls(functions, false, true)))
  })

  test("that are the model's to make are held only when something asks for it", () => {
    const frame: [string, unknown][] = [
      ["a", true],
      ["b", true],
    ]
    expect(constrained(request({ kind: "auto" }, free))).toBeNull()
    expect(constrained(request({ kind: "none" }, both))).toBeNull()
    expect(constrained(request({ kind: "auto" }, [], { regex: "x" }))).toEqual({ regex: "x" })
    expect(constrained(request({ kind: "auto" }, free, null, false))).toEqual(tag(calls(frame, true, true)))
    expect(constrained(request({ kind: "auto" }, free), "function")).toEqual(tag(calls(frame, true, false)))
    expect(constrained(request({ kind: "auto" }, free), "parameter")).toEqual(
      tag(
        calls(
          [
            ["a", { title: "a" }],
            ["b", { title: "b" }],
          ],
          true,
          false,
        ),
      ),
    )
  })

  test("stand beside the constraint of the text, and take its place when they are forced", () => {
    const functions: [string, unknown][] = [
      ["a", true],
      ["b", { title: "b" }],
    ]
    const own: [StructuredOutputs, unknown][] = [
      [{ json_object: true }, { type: "json_schema", json_schema: { type: "object" } }],
      [{ json: { type: "string" } }, { type: "json_schema", json_schema: { type: "string" } }],
      [{ json: '{"type":"null"}' }, { type: "json_schema", json_schema: { type: "null" } }],
      [{ regex: "a+" }, { type: "regex", pattern: "a+" }],
      [{ choice: ["x"] }, { type: "or", elements: [{ type: "const_string", value: "x" }] }],
      [{ grammar: 'root ::= "x"' }, { type: "grammar", grammar: 'root ::= "x"' }],
      [{ structural_tag: '{"format":{"type":"any_text"}}' }, { type: "any_text" }],
    ]
    for (const [constraint, format] of own) {
      expect(constrained(request({ kind: "auto" }, both, constraint))).toEqual(
        tag({ type: "or", elements: [calls(functions, false, false), format] }),
      )
    }
    expect(constrained(request({ kind: "required" }, both, { regex: "x" }))).toEqual(
      tag(calls(functions, false, false)),
    )
  })

  test("leave alone a constraint that no tag can hold", () => {
    for (const constraint of [{ json: "{" }, { json: {}, disable_any_whitespace: true }, { structural_tag: {} }]) {
      expect(constrained(request({ kind: "auto" }, both, constraint))).toEqual(constraint)
    }
  })
})

describe("reasoning", () => {
  const prompt = Uint32Array.of(1)

  test("that may still come is a part of the grammar, which then applies from the first token", () => {
    const own = request({ kind: "auto" }, [], { regex: "x" })
    expect(constrainReply(own, prompt, "auto", true, grammar)).toEqual({
      structuredOutputs: tag({ type: "sequence", elements: ["reasoning", { type: "regex", pattern: "x" }] }) as object,
      reasoningEnded: true,
    })
  })

  test("is left to the engine where its back end knows no tags, or the constraint fits into none", () => {
    const own = request({ kind: "auto" }, [], { regex: "x" })
    const unfit = request({ kind: "auto" }, [], { json: {}, disable_any_whitespace: true })
    for (const [each, takesTags] of [
      [own, false],
      [unfit, true],
    ] as const) {
      expect(constrainReply(each, prompt, "auto", takesTags, grammar)).toEqual({
        structuredOutputs: each.structuredOutputs,
        reasoningEnded: null,
      })
    }
  })

  test("and calls of a family without either change nothing", () => {
    expect(constrainReply(request({ kind: "required" }, both, { regex: "x" }), prompt, "auto", true, without)).toEqual({
      structuredOutputs: { regex: "x" },
      reasoningEnded: null,
    })
  })
})

describe("a family that frames its text", () => {
  const framing: OutputGrammar = { ...grammar, textTag: (format) => ({ framed: format }) }
  const regex = { type: "regex", pattern: "a+" }
  const constrain = (asked: CallRequest, prompt: readonly number[]): unknown =>
    constrainReply(asked, Uint32Array.from(prompt), "auto", true, framing).structuredOutputs
  const sequence = (...elements: unknown[]): unknown => tag({ type: "sequence", elements })

  test("has the request's own constraint in the frame, behind the reasoning", () => {
    expect(constrain(request({ kind: "none" }, [], { regex: "a+" }), [])).toEqual(
      sequence("reasoning", { framed: regex }),
    )
  })

  test("has it so beside calls, which have their own frame", () => {
    const asked = request({ kind: "auto" }, both, { regex: "a+" })
    const written = calls(
      both.map(({ name, strict, parameters }) => [name, strict === true ? parameters : true]),
      false,
      false,
    )
    expect(constrain(asked, [])).toEqual(sequence("reasoning", { type: "or", elements: [written, { framed: regex }] }))
    expect(constrain(request({ kind: "required" }, free), [])).toEqual(
      sequence(
        "reasoning",
        calls(
          [
            ["a", true],
            ["b", true],
          ],
          false,
          false,
        ),
      ),
    )
  })

  test("has it bare where the prompt has opened the frame", () => {
    expect(constrain(request({ kind: "none" }, [], { regex: "a+" }), [thinkId])).toEqual({ regex: "a+" })
  })
})
