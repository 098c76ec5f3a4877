/**
 * What tells the models their tools. The words are those that they were trained with: any other ones would be a format that
 * they do not know. Source: the encoders in vLLM 0.33.0, which are DeepSeek's own.
 */
import type { Json } from "../../ir/conversation"
import { closeTag, type DsmlTags, jsonText, openTag, v32Tags } from "./dsml"
import { tokens } from "./tokens"

/** How calls look, with the placeholders that the models know. */
function exampleCalls(tags: DsmlTags, nameOf: string): string {
  const parameter = openTag(tags.parameter, ' name="$PARAMETER_NAME" string="true|false"')
  return [
    openTag(tags.calls),
    openTag(tags.call, ` name="$${nameOf}"`),
    `${parameter}$PARAMETER_VALUE${closeTag(tags.parameter)}`,
    "...",
    closeTag(tags.call),
    openTag(tags.call, ` name="$${nameOf}2"`),
    "...",
    closeTag(tags.call),
    closeTag(tags.calls),
  ].join("\n")
}

function schemas(tools: readonly Json[]): string {
  return tools.map(jsonText).join("\n")
}

/** V3.2's section on tools. */
export function v32ToolsText(tools: readonly Json[]): string {
  const { thinkStart, thinkEnd } = tokens
  const block = openTag(v32Tags.calls)
  return `## Tools
You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "${block}" block like the following as part of your reply to the user:
${exampleCalls(v32Tags, "FUNCTION_NAME")}
String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).
If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:
${block}
...
${closeTag(v32Tags.calls)}
<function_results>
...
</function_results>
${thinkStart}...thinking about results${thinkEnd}
Here are the functions available in JSONSchema format:
<functions>
${schemas(tools)}
</functions>
`
}

/** V4's and V4.1's section on tools. */
export function v4ToolsText(tools: readonly Json[], tags: DsmlTags): string {
  const { thinkStart, thinkEnd } = tokens
  return `## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "${openTag(tags.calls)}" block like the following:

${exampleCalls(tags, "TOOL_NAME")}

String parameters should be specified as is and set \`string="true"\`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set \`string="false"\`.

If thinking_mode is enabled (triggered by ${thinkStart}), you MUST output your complete reasoning inside ${thinkStart}...${thinkEnd} BEFORE any tool calls or final response.

Otherwise, output directly after ${thinkEnd} with tool calls or final response.

### Available Tool Schemas

${schemas(tools)}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
`
}

/** The section on the schema of replies. */
export function responseFormatText(schema: Json): string {
  return `## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n${jsonText(schema)}`
}
