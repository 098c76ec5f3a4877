/**
 * The vocabulary of the small model, which comes with the real engine and lacks 21 bytes: the cases that all other
 * vocabularies have in test/tokenizer/golden.test.ts.
 */
import { test } from "bun:test"
import { goldenCases } from "../tokenizer/golden-cases"
import { vocabularies } from "../tokenizer/vocabularies"

const vocabulary = vocabularies().find(({ name }) => name === "smollm2")!
// Bun reports the hooks of a skipped group as tests without a name, so the group is not declared at all.
if (vocabulary.missing !== null) test.skip("the real engine's vocabulary", () => {})
else goldenCases(vocabulary)
