import { CombinedParser } from "../combined"
import type { ParserFactory, Vocabulary } from "../parser"

/** For models without an output grammar: `<think>so</think> yes` is text as it stands. */
export function plainFactory(vocabulary: Vocabulary): ParserFactory {
  return {
    reasoning: "none",
    tools: "none",
    needsSpecialTokens: false,
    callTag: null,
    reasoningTag: null,
    create: (start) => new CombinedParser(null, null, vocabulary, start),
  }
}
