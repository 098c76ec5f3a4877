/** Chat completions' bodies, in JSON, that Mistral's prompts are compared on, right ones and wrong ones. */
import { seededRandom } from "../../support/random"

/** A body with what it is about. */
export interface NamedRequest {
  readonly name: string
  readonly body: string
}

const text = JSON.stringify
const user = (content: string): string => `{"role":"user","content":${text(content)}}`
const system = (content: string): string => `{"role":"system","content":${text(content)}}`
const answer = (content: string): string => `{"role":"assistant","content":${text(content)}}`
const part = (content: string): string => `{"type":"text","text":${text(content)}}`
const thought = (thinking: string, rest = ""): string => `{"type":"thinking","thinking":${text(thinking)}${rest}}`
const image = '{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}'
const parts = (role: string, ...all: readonly string[]): string => `{"role":"${role}","content":[${all.join(",")}]}`
const call = (id: string, args: string, name = "f"): string =>
  `{"id":${text(id)},"type":"function","function":{"name":${text(name)},"arguments":${args}}}`
const calls = (content: string, ...all: readonly string[]): string =>
  `{"role":"assistant","content":${content},"tool_calls":[${all.join(",")}]}`
const result = (id: string, content: string, rest = ""): string =>
  `{"role":"tool","tool_call_id":${text(id)},"content":${text(content)}${rest}}`
const tool = (name: string, description: string, parameters: string, rest = ""): string =>
  `{"type":"function","function":{"name":${text(name)},"description":${description},"parameters":${parameters}${rest}}}`
const body = (messages: readonly string[], rest = ""): string => `{"messages":[${messages.join(",")}]${rest}}`

const weather = tool(
  "get_weather",
  '"Weather of a city — now."',
  '{"type":"object","properties":{"city":{"type":"string","description":"The city\'s \\"name\\""},"days":{"type":"integer","minimum":1,"default":3}},"required":["city"]}',
)
const odd = tool(
  "mix-2",
  "null",
  '{"type":"object","properties":{"10":{"maximum":14.0,"default":-0.5},"2":{"type":["string","null"],"const":9007199254740993},"a":{"enum":[1e3,1E-7,123456789012345680000.0,null,true]}},"additionalProperties":false,"$defs":{"Z":true}}',
  ',"strict":true',
)
const bare = '{"type":"function","function":{"name":"ping"}}'
const withTools = (...tools: readonly string[]): string => `,"tools":[${tools.join(",")}]`
const goOn = ',"continue_final_message":true'

const idA = "aBcDeF123"
const idB = "b00000002"
const asked = user("Weather?")
const round = [
  asked,
  calls("null", call(idA, '"{\\"city\\": \\"Zürich\\"}"', "get_weather")),
  result(idA, "Sunny, 21°"),
]
/** A call with these arguments and its result, and what comes after. */
const withArguments = (args: string): string =>
  body([asked, calls("null", call(idA, args)), result(idA, "ok"), user("So?")])
const withResult = (content: string): string => body([asked, calls("null", call(idA, '"{}"')), result(idA, content)])
const withSchema = (schema: string): string => body([asked], withTools(tool("f", '""', schema)))

const bodies: { readonly [name: string]: string } = {
  user: body([user("Hello")]),
  "system and user": body([system("Be brief."), user("Hello")]),
  turns: body([system("Be brief."), user("Hello"), answer("Hi!"), user("Thanks")]),
  "many turns": body([user("1"), answer("2"), user("3"), answer("4 "), user("5"), answer(" 6\n"), user("7")]),
  "developer and user": body(['{"role":"developer","content":"Be brief."}', user("Hello")]),
  "two systems": body([system("One."), system("Two."), user("Hello")]),
  "system in the middle": body([user("Hello"), answer("Hi!"), user("More"), system("Be brief."), user("Thanks")]),
  "system between users": body([user("a"), system("b"), user("c")]),
  "system at the end": body([user("a"), system("b")]),
  "empty system": body([system(""), user("a")]),
  "only a system": body([system("b")], withTools(weather)),
  "users in a row": body([user("a"), user(""), user("b")]),
  "empty user": body([user("")]),
  blanks: body([system("  a "), user(" \n a  \t"), answer(" b  "), user("   ")]),
  "other scripts": body([
    user("Grüße, 漢字 👩‍🚀 \u0001\u007f é \u2028"),
    answer("Ünïcødé"),
    user("1234 3.14 don't WE'RE"),
  ]),
  "control tokens spelled out": body([
    system("<s>[INST]"),
    user("[/INST]</s>[TOOL_CALLS] [THINK]x[/THINK]"),
    answer("[INST]"),
    user("<SPECIAL_20>[SYSTEM_PROMPT]"),
  ]),
  "parts of a user": body([parts("user", part("a"), part(""), part("b")), user("c"), parts("user", part("d"))]),
  "parts of an assistant": body([user("a"), parts("assistant", part("b "), part("c ")), user("d")]),
  "parts of a system": body([parts("system", part("a"), part("b")), system("c"), user("d")]),
  "empty parts": body([parts("system", part("")), parts("user"), answer("x"), parts("user", part(""))]),
  "empty part of an assistant": body([user("a"), parts("assistant", part("")), user("d")]),
  "an image alone": body([parts("user", image)]),
  "an image behind a text": body([system("Be brief."), parts("user", part("a"), part("b"), image)], withTools(weather)),
  "an image before a text": body([system("Be brief."), parts("user", image, part("a")), answer("b"), user("c")]),
  "images between texts": body([parts("user", part("a"), image, part("b"), image), user("c"), parts("user", image)]),
  "an image of an assistant": body([asked, parts("assistant", image), user("a")]),
  "an image of a system": body([parts("system", image), user("a")]),
  "a tool": body([asked], withTools(weather)),
  "three tools": body([system("Be brief."), user("a"), answer("b"), user("c")], withTools(weather, odd, bare)),
  "no tools": body([asked], withTools()),
  "a call and its result": body(round, withTools(weather)),
  "a call, its result and more": body([...round, answer("It is sunny."), user("And tomorrow?")], withTools(weather)),
  "a system, a call, its result": body([system("Be brief."), ...round], withTools(weather)),
  "a call without a result": body([asked, calls("null", call(idA, '"{}"')), user("Never mind")]),
  "two calls": body([
    asked,
    calls("null", call(idA, '"{}"'), call(idB, '"{}"', "g")),
    result(idA, "1"),
    result(idB, "2"),
  ]),
  "results in another order": body([
    asked,
    calls("null", call(idA, '"{}"'), call(idB, '"{}"', "g")),
    result(idB, "2"),
    result(idA, "1"),
    user("So?"),
  ]),
  "results of two rounds": body([
    ...round,
    calls("null", call("c00000003", '"{}"')),
    result("c00000003", "3"),
    answer("Done"),
    user("So?"),
  ]),
  "a call with words before it": body([asked, calls('"Let me see. "', call(idA, '"{}"')), result(idA, "1")]),
  "a call with an empty text": body([asked, calls('""', call(idA, '"{}"')), result(idA, "1")]),
  "a call with empty parts": body([asked, calls("[]", call(idA, '"{}"')), result(idA, "1")]),
  "a long id": body([
    asked,
    calls("null", call("chatcmpl-tool-0123456789ab", '"{}"')),
    result("chatcmpl-tool-0123456789ab", "1"),
  ]),
  "a long id that ends badly": body([
    asked,
    calls("null", call("call_ab-cd-ef", '"{}"')),
    result("call_ab-cd-ef", "1"),
  ]),
  "a short id": body([asked, calls("null", call("c1", '"{}"')), result("c1", "1")]),
  "an empty id": body([asked, calls("null", call("", '"{}"')), result("", "1")]),
  "an id of null": body([asked, calls("null", call("null", '"{}"')), result("null", "1")]),
  "no id": body([
    asked,
    `{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`,
    user("a"),
  ]),
  "a result without an id": body([...round.slice(0, 2), '{"role":"tool","content":"1"}']),
  "a result of no call": body([...round.slice(0, 2), result(idB, "1")]),
  "two results of a call": body([...round, result(idA, "1"), answer("a"), user("b")]),
  "two results of a call at the end": body([...round, result(idA, "1")]),
  "two calls of one id": body([
    asked,
    calls("null", call(idA, '"{}"'), call(idA, '"{}"')),
    result(idA, "1"),
    user("a"),
  ]),
  "too few results": body([
    asked,
    calls("null", call(idA, '"{}"'), call(idB, '"{}"')),
    result(idA, "1"),
    answer("a"),
    user("b"),
  ]),
  "too few results at the end": body([asked, calls("null", call(idA, '"{}"'), call(idB, '"{}"')), result(idB, "1")]),
  "a result with a name": body([...round.slice(0, 2), result(idA, "1", ',"name":"get_weather"')]),
  "a result with a bad name": body([...round.slice(0, 2), result(idA, "1", ',"name":"get weather"')]),
  "parts of a result": body([
    ...round.slice(0, 2),
    `{"role":"tool","tool_call_id":"${idA}","content":[${part("a")},${part("b")}]}`,
  ]),
  "a result without content": body([...round.slice(0, 2), `{"role":"tool","tool_call_id":"${idA}","content":null}`]),
  "arguments that are broken": withArguments('"{broken"'),
  "arguments that are empty": withArguments('""'),
  "arguments of blanks": withArguments('" \\n"'),
  "arguments that are null": withArguments("null"),
  "arguments that are an object": withArguments('{"b":[1.0,2],"10":"é","2":{}}'),
  "arguments of a list": withArguments(text('[ 1 , 2.50, -0, -0.0, 1e5, 1E+2, 12345678901234567890, 1e400, "x" ]')),
  "arguments of words": withArguments(text('{"a":NaN,"b":-Infinity,"c":[true,false,null]}')),
  "arguments with a text": withArguments(text('"just \\u00fc a text"')),
  "arguments with keys twice": withArguments(text('{"a":1,"b":2,"a":{"10":1,"2":2}}')),
  "arguments with escapes": withArguments(text('{"a":"\\u0041\\n\\/\\ud83d\\ude00\\u0001\\u007f\\"\\\\"}')),
  "arguments with a half character": withArguments(text('{"a":"\\ud800x"}')),
  "arguments with a tab": withArguments(text('{"a":"\t"}')),
  "arguments with a comma too many": withArguments(text('{"a":1,}')),
  "arguments with words behind": withArguments(text('{"a":1} and more')),
  "arguments with a leading zero": withArguments(text('{"a":01}')),
  "arguments with a byte order mark": withArguments(text('\ufeff{"a":1}')),
  "arguments in blanks": withArguments(text(' \r\n{ "a" :\t[ ] , "b" : { } }\n')),
  "a result of JSON": withResult('{"t":21.0,"sky":["clear"],"n":1e16,"m":1e15}'),
  "a result of a number": withResult("42"),
  "a result of a word": withResult("NaN"),
  "an empty result": withResult(""),
  "a result of blanks": withResult("  "),
  "a result with quotes": withResult('He said "no"\n\\ '),
  "a last message to continue": body([asked, answer("It is")], goOn),
  "a last message with blanks to continue": body([asked, answer("It is  ")], goOn),
  "a last message of parts to continue": body([asked, parts("assistant", part("It is "))], goOn),
  "a last message with a call to continue": body([asked, calls('"See"', call(idA, '"{}"'))], goOn),
  "an empty last message to continue": body([asked, answer("")], goOn),
  "two last messages to continue": body([asked, answer("It"), answer("is")], goOn),
  "a user's message to continue": body([asked], goOn),
  "an assistant's message alone to continue": body([answer("a")], goOn),
  "a last message of the assistant": body([asked, answer("Sunny.")]),
  "a last message of the assistant without a reply": body([asked, answer("Sunny.")], ',"add_generation_prompt":false'),
  "no reply wanted": body([asked], ',"add_generation_prompt":false'),
  reasoning: body([asked, '{"role":"assistant","content":"b ","reasoning":"Hm. "}', user("c")]),
  "empty reasoning": body([asked, '{"role":"assistant","content":"b","reasoning":""}', user("c")]),
  "reasoning alone": body([asked, '{"role":"assistant","content":null,"reasoning":"Hm."}', user("c")]),
  "reasoning and a call": body([
    asked,
    `{"role":"assistant","content":"b","reasoning":"Hm.","tool_calls":[${call(idA, '"{}"')}]}`,
    result(idA, "1"),
  ]),
  "thinking parts": body([asked, parts("assistant", thought("Hm."), part("b"), thought("So"), part("c")), user("d")]),
  "thinking that goes on": body([asked, parts("assistant", thought("Hm", ',"closed":false'))], goOn),
  "thinking in a system": body([parts("system", part("Think like "), thought("this"), part(" always.")), user("a")]),
  "thinking of a user": body([parts("user", thought("Hm."))]),
  "thinking in two messages": body([
    asked,
    answer("a"),
    parts("assistant", thought("Hm."), part("b"), part("c")),
    answer("d"),
    user("e"),
  ]),
  "reasoning and thinking parts": body([
    asked,
    `{"role":"assistant","reasoning":"a","content":[${thought("b")}]}`,
    user("c"),
  ]),
  "effort high": body([asked], ',"reasoning_effort":"high"'),
  "effort none": body([asked, answer("a"), user("b")], `,"reasoning_effort":"none"${withTools(weather)}`),
  "effort medium": body([asked], ',"reasoning_effort":"medium"'),
  "an assistant first": body([answer("Hi!"), user("a")], withTools(bare)),
  "an assistant's call first": body([calls("null", call(idA, '"{}"')), result(idA, "1"), answer("a"), user("b")]),
  "an assistant's call first, then another": body([
    calls("null", call(idA, '"{}"')),
    calls("null", call(idB, '"{}"')),
    result(idB, "2"),
    user("b"),
  ]),
  "assistants in a row": body([asked, answer("a "), answer("b "), user("c")]),
  "an answer and a call in a row": body([asked, answer("a"), calls("null", call(idA, '"{}"')), result(idA, "1")]),
  "an assistant without words": body([asked, '{"role":"assistant","content":null}', user("a")]),
  "an assistant with an empty text": body([asked, answer(""), user("a")]),
  "a user without content": body(['{"role":"user","content":null}']),
  "a system without content": body(['{"role":"system","content":null}', asked]),
  "an unknown role": body([asked, '{"role":"function","name":"f","content":"1"}']),
  "a result behind a user": body([asked, result(idA, "1")]),
  "a system behind an assistant": body([asked, answer("a"), system("b"), user("c")]),
  "a system behind a result": body([...round, system("b"), user("c")]),
  "a result first": body([result(idA, "1"), asked]),
  "a result first, then another": body([result(idA, "1"), result(idA, "1"), asked]),
  "a bad name of a tool": body([asked], withTools(tool("get weather", '""', "{}"))),
  "a long name of a tool": body([asked], withTools(tool("n".repeat(65), '""', "{}"))),
  "a name of a tool with a line break": body([asked], withTools(tool("ping\n", '""', "{}"))),
  "a bad name of a call": body([asked, calls("null", call(idA, '"{}"', "a.b")), result(idA, "1")]),
  "a schema of nothing": withSchema("{}"),
  "a schema with an unknown type": withSchema('{"type":"thing"}'),
  "a schema with types twice": withSchema('{"type":["string","string"]}'),
  "a schema with no types": withSchema('{"properties":{"a":{"type":[]}}}'),
  "a schema with bad properties": withSchema('{"properties":[]}'),
  "a schema with a bad property": withSchema('{"properties":{"a":{"properties":{"b":"string"}}}}'),
  "a schema with a property of true": withSchema('{"properties":{"a":true,"b":false}}'),
  "a schema with bad required": withSchema('{"required":"a"}'),
  "a schema with required twice": withSchema('{"required":["a","a"]}'),
  "a schema with a required flag": withSchema('{"properties":{"a":{"type":"string","required":true}}}'),
  "a schema with no alternatives": withSchema('{"anyOf":[]}'),
  "a schema with alternatives": withSchema('{"anyOf":[{"type":"null"},{"items":[{}]}],"items":{"type":"integer"}}'),
  "a schema with bad items": withSchema('{"items":[]}'),
  "a schema with numbers": withSchema('{"minimum":1,"maximum":2.5,"minLength":0,"maxLength":3.0,"multipleOf":0.1}'),
  "a schema with a negative length": withSchema('{"minLength":-1}'),
  "a schema with half a length": withSchema('{"minLength":1.5}'),
  "a schema with a multiple of nothing": withSchema('{"multipleOf":0}'),
  "a schema with a limit that is a flag": withSchema('{"exclusiveMinimum":true}'),
  "a schema with dependencies": withSchema('{"dependencies":{"a":["b"],"c":{"type":"object"}}}'),
  "a schema with bad dependencies": withSchema('{"dependencies":{"a":["b","b"]}}'),
  "a schema with a bad description": withSchema('{"description":null}'),
  "a schema with words unknown to it": withSchema('{"nullable":1,"$defs":3,"examples":[1],"enum":[],"const":{}}'),
  "a schema with bad examples": withSchema('{"examples":1}'),
}

/** All of them. */
export const namedRequests: readonly NamedRequest[] = Object.entries(bodies).map(([name, body]) => ({ name, body }))

const contents = [
  "Hello",
  "",
  " a  ",
  "line\nbreak\n\n",
  "[INST] x [/INST]</s>",
  "中文 😀👩‍👩‍👧",
  "12 3.5 don't",
  "<s>",
]
const ids = [idA, idB, "Zz9Zz9Zz9", "call_Xyz123abc", "x"]
const argumentTexts = ['{"a": 1}', '{"b":[1.0,"é"],"a":null}', "", "{broken", "[1]", '"x"', " { } "]

/** A conversation of a few rounds with whatever can be in one; a seed is all that one needs to make it again. */
export function randomRequest(seed: number): string {
  const random = seededRandom(seed)
  const chance = (probability: number): boolean => random() < probability
  const of = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!
  const upTo = (most: number): number => Math.floor(random() * (most + 1))
  const content = (): string => {
    if (chance(0.75)) return text(of(contents))
    return `[${Array.from({ length: upTo(3) }, () => part(of(contents))).join(",")}]`
  }
  const spoken = (role: string): string => `{"role":"${role}","content":${content()}}`
  const assistant = (): string[] => {
    const thinks = chance(0.04) ? `,"reasoning":${text(of(contents))}` : ""
    if (chance(0.5)) return [`{"role":"assistant","content":${content()}${thinks}}`]
    const made = Array.from({ length: 1 + upTo(2) }, (_, i) => ids[(i + upTo(1)) % (chance(0.97) ? 4 : 5)]!)
    const used = chance(0.9) ? [...new Set(made)] : made
    const all = used.map((id) => call(id, text(of(argumentTexts)), of(["f", "get_weather"]))).join(",")
    const said = chance(0.1) ? content() : "null"
    const results = used.map((id) => `{"role":"tool","tool_call_id":"${id}","content":${content()}}`)
    if (chance(0.3)) results.reverse()
    if (chance(0.04)) results.pop()
    return [`{"role":"assistant","content":${said},"tool_calls":[${all}]${thinks}}`, ...results]
  }
  const messages: string[] = []
  if (chance(0.5)) messages.push(spoken(of(["system", "developer"])))
  for (let rounds = 1 + upTo(3); rounds > 0; rounds--) {
    if (chance(0.03)) messages.push(spoken("system"))
    if (chance(0.95)) messages.push(spoken("user"))
    if (chance(0.1)) messages.push(spoken("user"))
    if (rounds > 1 || chance(0.25)) messages.push(...assistant())
    if (chance(0.2)) messages.push(...assistant())
  }
  if (messages.length === 0) messages.push(spoken("user"))
  const tools = chance(0.5) ? withTools(...[weather, odd, bare].filter(() => chance(0.6))) : ""
  const effort = chance(0.2) ? `,"reasoning_effort":"${of(["high", "none"])}"` : ""
  const isAnswered = messages.at(-1)!.includes('"role":"assistant"')
  return body(messages, tools + effort + (isAnswered && chance(0.97) ? goOn : ""))
}
