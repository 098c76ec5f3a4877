/** What golden files keep of many long answers. */
import { textHash } from "../harmony/hashes"
import type { DeepseekAnswer } from "./oracle"

/** Random bodies that golden files have answers for. */
export const randomBodies = 300

/** Of a prompt's text; all refusals are one, since their words are everybody's own. */
export function answerHash(answer: DeepseekAnswer): string {
  return "error" in answer ? "refused" : textHash(answer.text)
}
