/** Conversations that every real template is tried on, as the JSON text of its variables. Never reorder: append. */
export interface TriedConversation {
  readonly name: string
  readonly context: string
}

const weather =
  '{"type":"function","function":{"name":"get_weather","description":"Weather of a city — now.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"The city\'s \\"name\\""},"days":{"type":"integer","minimum":1,"maximum":14,"default":3},"unit":{"type":"string","enum":["c","f"]}},"required":["city"]}}}'
const odd =
  '{"type":"function","function":{"name":"mix","description":null,"parameters":{"type":"object","properties":{"2":{"type":"number","maximum":14.0,"default":-0.5},"b":{"type":["string","null"]},"1":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer","const":9007199254740993}},"additionalProperties":false}},"n":{"anyOf":[{"type":"boolean"},{"$ref":"#/$defs/Z"}]}},"$defs":{"Z":{"type":"string"}}},"strict":true}}'
const bare =
  '{"type":"function","function":{"name":"ping","description":"","parameters":{"type":"object","properties":{}}}}'

const system = '{"role":"system","content":"Be brief."}'
const user = '{"role":"user","content":"What is the weather in Paris?"}'
const answer = '{"role":"assistant","content":"Sunny."}'
const thanks = '{"role":"user","content":"Thanks!"}'
const call = (args: string, content: string, id = "call_1", name = "get_weather"): string =>
  `{"role":"assistant","content":${content},"tool_calls":[{"id":"${id}","type":"function","function":{"name":"${name}","arguments":${args}}}]}`
const result = (content: string, id = "call_1"): string =>
  `{"role":"tool","tool_call_id":"${id}","name":"get_weather","content":${content}}`

function context(messages: readonly string[], more: { readonly [name: string]: string } = {}): string {
  const variables: { [name: string]: string } = {
    messages: `[${messages.join(",")}]`,
    tools: "null",
    documents: "null",
    add_generation_prompt: "true",
    bos_token: '"<s>"',
    eos_token: '"</s>"',
    pad_token: '"<pad>"',
    unk_token: '"<unk>"',
    ...more,
  }
  return `{${Object.entries(variables)
    .map(([name, json]) => `${JSON.stringify(name)}:${json}`)
    .join(",")}}`
}

const tools = { tools: `[${weather}]` }
const allTools = { tools: `[${weather},${odd},${bare}]` }

/** All of them. */
export const triedConversations: readonly TriedConversation[] = [
  { name: "user", context: context([user]) },
  { name: "system and user", context: context([system, user]) },
  { name: "turns", context: context([system, user, answer, thanks]) },
  { name: "no generation prompt", context: context([system, user, answer], { add_generation_prompt: "false" }) },
  { name: "white space", context: context(['{"role":"user","content":"  a \\n\\n b\\t "}', answer, thanks]) },
  { name: "other scripts", context: context(['{"role":"user","content":"Grüße, 漢字 👩‍🚀 \\u0000\\u001f é"}']) },
  { name: "markup", context: context(['{"role":"user","content":"<b>&amp;\\"\'{{ x }}{% y %}<|im_end|></s>"}']) },
  { name: "empty content", context: context(['{"role":"system","content":""}', '{"role":"user","content":""}']) },
  { name: "null content", context: context([user, '{"role":"assistant","content":null}', thanks]) },
  { name: "absent content", context: context([user, '{"role":"assistant"}', thanks]) },
  {
    name: "parts",
    context: context(['{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}']),
  },
  {
    name: "image part",
    context: context([
      '{"role":"user","content":[{"type":"image"},{"type":"text","text":"What is it?"}]}',
      answer,
      thanks,
    ]),
  },
  {
    name: "reasoning",
    context: context([user, '{"role":"assistant","content":"4","reasoning":"2+2","reasoning_content":"2+2"}', thanks]),
  },
  {
    name: "think tags",
    context: context([user, '{"role":"assistant","content":"<think>\\nhm\\n</think>\\n\\n4"}', thanks]),
  },
  { name: "thinking off", context: context([user], { enable_thinking: "false", thinking: "false" }) },
  {
    name: "thinking on",
    context: context([system, user], { enable_thinking: "true", thinking: "true", reasoning_effort: '"high"' }),
  },
  { name: "developer", context: context(['{"role":"developer","content":"Be kind."}', user]) },
  { name: "tool", context: context([user], tools) },
  { name: "tools and system", context: context([system, user], allTools) },
  { name: "empty tools", context: context([user], { tools: "[]" }) },
  { name: "call", context: context([user, call('{"city":"Paris","days":2}', '""'), result('"{\\"t\\": 21}"')], tools) },
  {
    name: "call with text and odd arguments",
    context: context(
      [
        system,
        user,
        call('{"2":14.0,"b":null,"1":[true,9007199254740993],"s":"é\\n\\"<"}', '"Let me look."', "c2", "mix"),
        result('"ok"', "c2"),
        answer,
        thanks,
      ],
      allTools,
    ),
  },
  {
    name: "call of nothing",
    context: context([user, call("{}", "null", "abcdefghi", "ping"), result('""', "abcdefghi")], allTools),
  },
  {
    name: "parallel calls",
    context: context(
      [
        user,
        '{"role":"assistant","content":"","tool_calls":[{"id":"a23456789","type":"function","function":{"name":"get_weather","arguments":{"city":"Rome"}}},{"id":"b23456789","type":"function","function":{"name":"ping","arguments":{}}}]}',
        result('"one"', "a23456789"),
        result('"two"', "b23456789"),
        '{"role":"assistant","content":"Both."}',
        thanks,
      ],
      allTools,
    ),
  },
  {
    name: "arguments as text",
    context: context([user, call('"{\\"city\\": \\"Oslo\\"}"', '""'), result('"cold"'), answer, thanks], tools),
  },
  {
    name: "reasoning and call",
    context: context(
      [
        user,
        '{"role":"assistant","content":"","reasoning":"need it","reasoning_content":"need it","tool_calls":[{"id":"d23456789","type":"function","function":{"name":"get_weather","arguments":{"city":"Bern"}}}]}',
        result('"rain"', "d23456789"),
        thanks,
      ],
      { ...tools, enable_thinking: "true", thinking: "true" },
    ),
  },
  {
    name: "tool result as parts",
    context: context(
      [
        user,
        call('{"city":"Kyiv"}', '""'),
        '{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"snow"}]}',
      ],
      tools,
    ),
  },
  {
    name: "documents",
    context: context([user], { documents: '[{"title":"T","text":"one"},{"title":"U","text":"two","score":1.0}]' }),
  },
  {
    name: "two systems",
    context: context([system, '{"role":"system","content":"And polite."}', user, answer, system, thanks]),
  },
  { name: "assistant first", context: context([answer, user]) },
  { name: "two users", context: context([user, thanks]) },
  { name: "a role of its own", context: context([user, '{"role":"critic","content":"Hm."}', thanks]) },
  {
    name: "continued answer",
    context: context([user, '{"role":"assistant","content":"Once upon"}'], {
      add_generation_prompt: "false",
      continue_final_message: "true",
    }),
  },
  { name: "a day given", context: context([system, user], { date_string: '"01 Jan 2027"', ...tools }) },
]
