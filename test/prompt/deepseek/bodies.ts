/**
 * Bodies of chat requests for DeepSeek's formats, as JSON texts: written ones, by name, and random ones, by seed. The
 * reference reads the text itself, so numbers and orders of keys stand in it as a client would send them.
 */
import { lowerArguments, lowerTools } from "../../../src/api/conversation"
import { parseJsonText } from "../../../src/http/json-text"
import type { ContentPart, Conversation, Json, Message } from "../../../src/ir/conversation"
import { copyFloats } from "../../../src/ir/json-spelling"
import type { DeepseekVersion } from "../../../src/prompt/deepseek/turn"
import { conversationOf } from "../../support/conversation"
import { seededRandom } from "../../support/random"

/** The three formats. */
export const versions: readonly DeepseekVersion[] = ["v32", "v4", "v41"]

const weather = `{"type":"function","function":{"name":"get_weather","description":"Says the weather – now.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"Name, e.g. \\"Zürich\\""},"days":{"type":"integer","default":1}},"required":["city"]}}}`
const odd = `{"type":"function","function":{"name":"odd","parameters":{"10":14.0,"2":9007199254740993,"b":[1e2,-0.0,1.5e-7,1e300,null,true],"a":{"z":"\\u2028 \\u007f \\ud83d\\ude00 é","y":{}},"e":[]},"strict":true}}`
const bare = `{"type":"function","function":{"name":"now"}}`
const call = (id: string, name: string, given: string): string =>
  `{"id":"${id}","type":"function","function":{"name":"${name}","arguments":${given}}}`
const asText = (json: string): string => JSON.stringify(json)
const twoCalls = `"tool_calls":[${call("c1", "get_weather", asText('{"city":"Bern","days":2}'))},${call("c2", "now", '""')}]`

/** Lists of messages, with other fields of the body behind them. */
const written: { readonly [name: string]: string } = {
  plain: `[{"role":"user","content":"Hello"}]`,
  "several turns": `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello!"},{"role":"user","content":"Bye"}]`,
  system: `[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]`,
  "two systems": `[{"role":"system","content":"A"},{"role":"system","content":"B"},{"role":"user","content":"x"}]`,
  "system in between": `[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"r1"},{"role":"system","content":"Be brief."},{"role":"user","content":"z"}]`,
  "system last": `[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"system","content":"Go on."}]`,
  "system alone": `[{"role":"system","content":"Say something."}]`,
  "system and answer": `[{"role":"system","content":"S"},{"role":"assistant","content":"Hello","reasoning":"r"},{"role":"user","content":"x"}]`,
  developer: `[{"role":"developer","content":"Be brief."}]`,
  "developer with tools": `[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning":"r"},{"role":"developer","content":"c","tools":[${bare}]}]`,
  "developer made old": `[{"role":"developer","content":"Be brief."},{"role":"user","content":"x"}]`,
  "developer without text": `[{"role":"developer","content":""},{"role":"assistant","content":"b","reasoning":"r"}]`,
  tools: `[{"role":"user","content":"Weather?"}],"tools":[${weather},${odd},${bare}]`,
  "tools and system": `[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"r"},{"role":"system","content":"S"},{"role":"user","content":"z"}],"tools":[${bare}]`,
  "tools and reasoning": `[{"role":"system","content":"S"},{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"old"},{"role":"user","content":"z"}],"tools":[${weather}]`,
  "a call": `[{"role":"user","content":"x"},{"role":"assistant","content":null,"reasoning":"r","tool_calls":[${call("a", "get_weather", asText('{"city":"Bern"}'))}]},{"role":"tool","tool_call_id":"a","content":"Rain"}],"tools":[${weather}]`,
  "two calls": `[{"role":"user","content":"x"},{"role":"assistant","content":"Well.","reasoning":"r",${twoCalls}},{"role":"tool","tool_call_id":"c1","content":"Rain"},{"role":"tool","tool_call_id":"c2","content":"12:00"}]`,
  "results out of order": `[{"role":"user","content":"x"},{"role":"assistant","content":"",${twoCalls}},{"role":"tool","tool_call_id":"c2","content":"12:00"},{"role":"tool","tool_call_id":"c1","content":"Rain"},{"role":"user","content":"And?"}]`,
  "results of unknown calls": `[{"role":"user","content":"x"},{"role":"assistant","content":"",${twoCalls}},{"role":"tool","tool_call_id":"c2","content":"2"},{"role":"tool","tool_call_id":"?","content":"?"}]`,
  "results without ids": `[{"role":"user","content":"x"},{"role":"assistant","content":"",${twoCalls}},{"role":"tool","content":"1"},{"role":"tool","content":"2"},{"role":"assistant","content":"Done.","reasoning":"r2"},{"role":"user","content":"z"}]`,
  "one result of two": `[{"role":"user","content":"x"},{"role":"assistant","content":"",${twoCalls}},{"role":"tool","tool_call_id":"c1","content":"Rain"}]`,
  "more results than calls": `[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[${call("a", "now", "{}")}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"a","content":"2"}]`,
  "a result of nothing": `[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"1"}]`,
  "calls after calls": `[{"role":"user","content":"x"},{"role":"assistant","content":"","reasoning":"r1","tool_calls":[${call("a", "now", "{}")}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"assistant","content":"","reasoning":"r2","tool_calls":[${call("b", "now", "{}")}]},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"assistant","content":"Done.","reasoning":"r3"}],"tools":[${bare}]`,
  "odd arguments": `[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[${call("a", "odd", asText('{"10":14.0,"2":9007199254740993,"s":"<b>\\"q\\"</b>\\n","l":[1.0,{"k":"ü"}],"n":null,"t":true,"e":{},"10":2}'))},${call("b", "odd", '"not JSON"')},${call("c", "odd", '"[1]"')},${call("d", "odd", '{"x":1.50}')}]},{"role":"tool","tool_call_id":"a","content":""}]`,
  "reasoning kept and dropped": `[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning":"old"},{"role":"user","content":"z"},{"role":"assistant","content":"w","reasoning":"new"}]`,
  "no reasoning": `[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]`,
  "nothing said": `[{"role":"user","content":""},{"role":"assistant","content":"","reasoning":""},{"role":"user","content":""}]`,
  "parts of text": `[{"role":"system","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]},{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]},{"role":"assistant","content":[{"type":"text","text":"3"},{"type":"text","text":"4"}],"reasoning":"r","tool_calls":[${call("a", "now", "{}")}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"5"},{"type":"text","text":"6"}]}]`,
  unicode: `[{"role":"system","content":"Sei kürzer. 🙂"},{"role":"user","content":"中文\\r\\n\\t \\u0000 ﬁ 👩‍👩‍👧 {content} {0} %s"},{"role":"assistant","content":" leading and trailing ","reasoning":"  日本語\\n"},{"role":"user","content":"\\n"}]`,
  "users one after the other": `[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"user","content":""}]`,
  "assistants one after the other": `[{"role":"user","content":"x"},{"role":"assistant","content":"a","reasoning":"r"},{"role":"assistant","content":"b","reasoning":"r"}]`,
  "assistant first": `[{"role":"assistant","content":"Hello","reasoning":"r"},{"role":"user","content":"x"}]`,
  "latest reminder": `[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"latest_reminder","content":"2026-03-05"},{"role":"user","content":"z"}]`,
  "reminder last": `[{"role":"user","content":"x"},{"role":"latest_reminder","content":"2026-03-05"}]`,
  "unknown role": `[{"role":"user","content":"x"},{"role":"critic","content":"y"}]`,
  "unknown role made old": `[{"role":"critic","content":"y"},{"role":"user","content":"x"}]`,
  "task title": `[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z","task":"title"}]`,
  "task action": `[{"role":"user","content":"x","task":"action"}]`,
  "task answered": `[{"role":"user","content":"x","task":"query"},{"role":"assistant","content":"Search","reasoning":"r"},{"role":"user","content":"z","task":null}]`,
  "task unknown": `[{"role":"user","content":"x","task":"poem"}]`,
  "task merged": `[{"role":"user","content":"x","task":"domain"},{"role":"user","content":"y"},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"user","content":"z","task":"title"}]`,
  "tools of messages": `[{"role":"system","content":"S","tools":[${bare}]},{"role":"user","content":"x","tools":[${weather}]},{"role":"assistant","content":"y","reasoning":"r"},{"role":"user","content":"z"}]`,
  "schema of replies": `[{"role":"system","content":"S","response_format":{"type":"object","properties":{"ä":{"const":1.0}}}},{"role":"user","content":"x"}]`,
}

/** The written ones, by name. */
export const writtenMessages: ReadonlyMap<string, string> = new Map(Object.entries(written))

/** What a request may say about thinking, beside its messages. */
export const settings: readonly string[] = [
  "",
  `,"chat_template_kwargs":{"thinking":true}`,
  `,"chat_template_kwargs":{"enable_thinking":false}`,
  `,"chat_template_kwargs":{"thinking":true,"drop_thinking":false}`,
  `,"reasoning_effort":"none"`,
  `,"reasoning_effort":"low"`,
  `,"reasoning_effort":"medium"`,
  `,"reasoning_effort":"xhigh"`,
  `,"reasoning_effort":"max"`,
  `,"chat_template_kwargs":{"reasoning_effort":42,"thinking":"yes"}`,
  `,"chat_template_kwargs":{"reasoning_effort":42.0}`,
  `,"chat_template_kwargs":{"reasoning_effort":101,"thinking":[]}`,
  `,"chat_template_kwargs":{"thinking":0,"enable_thinking":{"a":1},"drop_thinking":""}`,
]

/** All written messages with all settings: whole bodies. */
export function writtenBodies(): readonly string[] {
  return [...writtenMessages.values()].flatMap((messages) => settings.map((rest) => `{"messages":${messages}${rest}}`))
}

/** A request that may say anything. */
export function randomBody(seed: number): string {
  const random = seededRandom(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const of = <T>(list: readonly T[]): T => list[below(list.length)]!
  const texts = ["Hello", "", "a\nb", "Zürich 😀", '{"a":1}', "</think>", "<｜User｜>", "  ", "{tools}"]
  const contentOf = (): string =>
    below(5) === 0
      ? JSON.stringify([of(texts), of(texts)].map((text) => ({ type: "text", text })))
      : JSON.stringify(of(texts))
  const givens = [
    "{}",
    '{"city":"Bern"}',
    '{"a":1.0,"b":[true,null],"10":{"x":"é"}}',
    "nothing",
    '{"s":"\\u00fc","n":12e3}',
  ]
  const open: string[] = []
  const messages = Array.from({ length: 1 + below(8) }, (_, index): string => {
    const fields: string[] = []
    const wantsResult = open.length > 0 && below(5) > 0
    const roles = ["user", "user", "user", "assistant", "assistant", "system", "developer", "tool", "latest_reminder"]
    const role = wantsResult ? "tool" : index === 0 ? of(["system", "user", "user", "developer"]) : of(roles)
    fields.push(`"role":"${role}"`, `"content":${contentOf()}`)
    if (role === "assistant") {
      if (below(3) > 0) fields.push(`"reasoning":${JSON.stringify(of(texts))}`)
      open.length = 0
      if (below(3) === 0) {
        const ids = Array.from({ length: 1 + below(3) }, () => `c${below(9)}`)
        open.push(...ids)
        fields.push(`"tool_calls":[${ids.map((id) => call(id, of(["f", "g"]), asText(of(givens)))).join(",")}]`)
      }
    } else if (role === "tool") {
      const id = open.splice(below(open.length), 1)[0]
      if (id !== undefined && below(8) > 0) fields.push(`"tool_call_id":"${id}"`)
    } else {
      if (below(9) === 0) fields.push(`"task":"${of(["action", "query", "title", "authority", "domain", "read_url"])}"`)
      if (below(9) === 0) fields.push(`"tools":[${of([weather, bare])}]`)
    }
    return `{${fields.join(",")}}`
  })
  const tools = below(3) === 0 ? `,"tools":[${of([weather, odd, `${bare},${weather}`])}]` : ""
  return `{"messages":[${messages.join(",")}]${tools}${of(settings)}}`
}

/** The conversation that a body asks about; what the reference cannot do, going on with a message, is not among it. */
export function conversationOfBody(text: string): Conversation {
  const parsed = parseJsonText(text, 64)
  if (!parsed.ok) throw new Error(parsed.error.message)
  // Bodies of this file have these fields.
  const body = parsed.value as unknown as {
    readonly messages: readonly BodyMessage[]
    readonly tools?: Parameters<typeof lowerTools>[0]
    readonly chat_template_kwargs?: { readonly [name: string]: Json }
    readonly reasoning_effort?: string
  }
  const asked = body.chat_template_kwargs ?? {}
  const templateKwargs: { [name: string]: Json } = { ...asked }
  copyFloats(asked, templateKwargs)
  if (body.reasoning_effort !== undefined) {
    templateKwargs.reasoning_effort = body.reasoning_effort
    if (!("enable_thinking" in asked)) templateKwargs.enable_thinking = body.reasoning_effort !== "none"
  }
  return conversationOf(body.messages.map(messageOfBody), { tools: lowerTools(body.tools ?? []), templateKwargs })
}

interface BodyMessage {
  readonly role: string
  readonly content?: string | readonly ContentPart[] | null
  readonly reasoning?: string
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: Json } }[]
  readonly tool_call_id?: string
  readonly task?: string | null
  readonly tools?: readonly Json[]
  readonly response_format?: Json
}

function messageOfBody(message: BodyMessage): Partial<Message> {
  const { role, task = null, tools, response_format: responseFormat } = message
  return {
    role,
    content: message.content ?? null,
    reasoning: message.reasoning ?? null,
    toolCalls: (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => ({
      id,
      name,
      arguments: lowerArguments(given),
    })),
    toolCallId: message.tool_call_id ?? null,
    ...(task !== null && { task }),
    ...(tools !== undefined && { tools }),
    ...(responseFormat !== undefined && { responseFormat }),
  }
}
