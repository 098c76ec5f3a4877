import type { V4Effort, V4Setting } from "./setting"

/** The words for each level, the models' own. Source: vLLM 0.33.0, `deepseek_v4_encoding.py`. */
const v4Texts: { readonly [effort in V4Effort]: string } = {
  low: "",
  high: `Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.

`,
  max: `Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.
You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause rather than any surface symptom.
Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no assumption remains unchecked and no error remains undiscovered.

`,
}

/** How hard the model shall think, as V4 and V4.1 are told it in front of everything; "" where they do not think. */
export function effortText({ isThinking, effort }: V4Setting): string {
  if (!isThinking) return ""
  if (typeof effort !== "number") return v4Texts[effort]
  return `Reasoning Effort: ${effort} (range 1-100, the higher the value, the more thorough the reasoning)\n\n`
}
