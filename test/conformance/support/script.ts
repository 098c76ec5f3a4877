/**
 * What the simulator shall generate, as the extra body field `vllm_xargs`, and texts that several tests use.
 */

/** `vllm_xargs` that makes the simulator answer with `text` (special tokens spelled out), one token a step. */
export function script(text: string, more: { readonly [key: string]: Argument } = {}): Script {
  return { vllm_xargs: { sim_text: text, ...more } }
}

/** A value of `vllm_xargs`. */
export type Argument = string | number | readonly number[]

/** The field as the request carries it. */
export interface Script {
  readonly vllm_xargs: { readonly [key: string]: Argument }
}

/** Model output that calls one function, in the markup of the built-in model (hermes). */
export function callText(name: string, input: unknown): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`
}

/** Model output that thinks first. */
export function thinking(reasoning: string, rest: string): string {
  return `<think>${reasoning}</think>${rest}`
}

/** A sentence with multi-byte characters, so that a split in the middle of one would show. */
export const sentence = "Grüße aus Zürich: 東京は晴れ、 +3 °C 🌤️."
