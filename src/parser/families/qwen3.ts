import type { ReasoningFraming } from "../reasoning"

/** Qwen3 and its like: `<think>\nIt may rain.\n</think>\n\nTake a coat.` Source: PARSERS 2. */
export const qwen3Reasoning: ReasoningFraming = {
  start: "<think>",
  end: "</think>",
  afterStart: "\n",
  beforeEnd: "\n",
  afterEnd: "\n\n",
  startsInside: false,
}

/**
 * DeepSeek-R1 and QwQ: `<think>\nIt may rain.\n</think>\n\nTake a coat.`, where the start marker is often left out: a
 * reply is taken for reasoning until the end marker comes. Source: PARSERS 2 and vLLM's Python parser; its Rust one
 * would take a reply without a start marker for text.
 */
export const deepseekR1Reasoning: ReasoningFraming = {
  start: "<think>",
  end: "</think>",
  afterStart: "\n",
  beforeEnd: "",
  afterEnd: "",
  startsInside: true,
}
