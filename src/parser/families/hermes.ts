import type { JsonCallGrammar } from "../json-tools"

/**
 * Hermes, Qwen2.5 and Qwen3: `<tool_call>\n{"name": "book", "arguments": {"seat": "4C"}}\n</tool_call>`. Some models say
 * `parameters`. Source: PARSERS 4.1.
 */
export const hermesCalls: JsonCallGrammar = {
  start: "<tool_call>",
  end: "</tool_call>",
  beforeStart: "\n",
  nameKey: "name",
  argumentKeys: ["arguments", "parameters"],
  forms: [
    { begin: '<tool_call>\n{"name": "', afterName: '", "arguments": ', end: "}\n</tool_call>" },
    { begin: '<tool_call>{"name": "', afterName: '", "arguments": ', end: "}</tool_call>" },
  ],
}
