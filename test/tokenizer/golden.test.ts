/** Every vocabulary against what the reference tokenizers gave; the cases are in golden-cases.ts. */
import { expect, test } from "bun:test"
import { goldenCases } from "./golden-cases"
import { vocabularies } from "./vocabularies"

/** SmolLM2's is there only with the real engine, whose step runs its cases (test/real-engine). */
const elsewhere = "smollm2"

for (const vocabulary of vocabularies()) if (vocabulary.name !== elsewhere) goldenCases(vocabulary)

test("there are vocabularies of many families", () => {
  expect(vocabularies().length).toBeGreaterThanOrEqual(30)
})
