import type { FunctionTool, Json } from "../../ir/conversation"
import { schemaText } from "./schema-text"

/** Tools under one name: functions of the client, or a built-in tool, which may be no more than its description. */
export interface ToolNamespace {
  readonly name: string
  readonly description: string | null
  readonly tools: readonly Pick<FunctionTool, "name" | "description" | "parameters">[]
}

/**
 * The section that tells a model its tools: `## functions`, `namespace functions {`, and a type for each. Source:
 * openai-harmony 0.0.8.
 */
export function toolsText(namespaces: readonly ToolNamespace[]): string {
  return ["# Tools", ...namespaces.map(namespaceText)].join("\n\n")
}

function namespaceText({ name, description, tools }: ToolNamespace): string {
  const lines = [`## ${name}\n`]
  const comment = tools.length === 0 ? "" : "// "
  for (const line of linesOf(description ?? "")) lines.push(comment + line)
  if (tools.length === 0) return lines.join("\n")
  lines.push(`namespace ${name} {\n`)
  for (const tool of tools) {
    for (const line of linesOf(tool.description ?? "")) lines.push(`// ${line}`)
    const taken = tool.parameters === null ? "" : `_: ${schemaText(tool.parameters, "")}`
    lines.push(`type ${tool.name} = (${taken}) => any;\n`)
  }
  lines.push(`} // namespace ${name}`)
  return lines.join("\n")
}

/** Lines without their ends; the end of the last one begins no further line. */
function linesOf(text: string): string[] {
  if (text === "") return []
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => line.replace(/\r$/, ""))
}

const browserDescription = `Tool for browsing.
The \`cursor\` appears in brackets before each browsing display: \`[{cursor}]\`.
Cite information from the tool using the following format:
\`【{cursor}†L{line_start}(-L{line_end})?】\`, for example: \`【6†L9-L11】\` or \`【8†L3】\`.
Do not quote more than 10 words directly from the tool output.
sources=web (default: web)`

const pythonDescription = `Use this tool to execute Python code in your chain of thought. The code will not be shown to the user. This tool should be used for internal reasoning, but not for code that is intended to be visible to the user (e.g. when creating plots, tables, or files).

When you send a message containing Python code to python, it will be executed in a stateful Jupyter notebook environment. python will respond with the output of the execution or time out after 120.0 seconds. The drive at '/mnt/data' can be used to save and persist user files. Internet access for this session is UNKNOWN. Depends on the cluster.`

function objectOf(properties: { [name: string]: Json }, required: string[]): Json {
  return { type: "object", properties, required }
}

const wholeNumber = { type: "number", default: -1 }

/**
 * The tools that gpt-oss was trained with, by name, in the order in which they are told. The words are the model's own:
 * any other ones would be a tool that it does not know. Source: openai-harmony 0.0.8.
 */
export const builtInTools: ReadonlyMap<string, ToolNamespace> = new Map([
  [
    "browser",
    {
      name: "browser",
      description: browserDescription,
      tools: [
        {
          name: "search",
          description: "Searches for information related to `query` and displays `topn` results.",
          parameters: objectOf(
            { query: { type: "string" }, topn: { type: "number", default: 10 }, source: { type: "string" } },
            ["query"],
          ),
        },
        {
          name: "open",
          description: `Opens the link \`id\` from the page indicated by \`cursor\` starting at line number \`loc\`, showing \`num_lines\` lines.
Valid link ids are displayed with the formatting: \`【{id}†.*】\`.
If \`cursor\` is not provided, the most recent page is implied.
If \`id\` is a string, it is treated as a fully qualified URL associated with \`source\`.
If \`loc\` is not provided, the viewport will be positioned at the beginning of the document or centered on the most relevant passage, if available.
Use this function without \`id\` to scroll to a new location of an opened page.`,
          parameters: objectOf(
            {
              id: { type: ["number", "string"], default: -1 },
              cursor: wholeNumber,
              loc: wholeNumber,
              num_lines: wholeNumber,
              view_source: { type: "boolean", default: false },
              source: { type: "string" },
            },
            [],
          ),
        },
        {
          name: "find",
          description: "Finds exact matches of `pattern` in the current page, or the page given by `cursor`.",
          parameters: objectOf({ pattern: { type: "string" }, cursor: wholeNumber }, ["pattern"]),
        },
      ],
    },
  ],
  ["python", { name: "python", description: pythonDescription, tools: [] }],
])
