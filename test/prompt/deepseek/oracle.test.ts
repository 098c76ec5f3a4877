/** Prompts in DeepSeek's formats, compared with vLLM's encoders themselves. A failing case shows its body. */
import { describe, expect, test } from "bun:test"
import { missingPython } from "../../support/python-environment"
import { randomBody, versions, writtenBodies } from "./bodies"
import { askDeepseek } from "./oracle"
import { writtenText } from "./written-text"

const reason = missingPython()
if (reason !== null) console.log(`deepseek oracle: skipped, ${reason}`)

/** Another one each time, so that runs add up. */
const seed = Math.floor(Math.random() * 1_000_000)

describe.skipIf(reason !== null)(`vLLM's encoders for DeepSeek, seed ${seed}`, () => {
  for (const version of versions) {
    test(`${version}: say the same of all written bodies and 1000 random ones, refusals included`, async () => {
      const bodies = [...writtenBodies(), ...Array.from({ length: 1000 }, (_, i) => randomBody(seed + i))]
      const answers = await askDeepseek(bodies.map((body) => ({ version, body })))
      let refusals = 0
      for (const [i, body] of bodies.entries()) {
        const theirs = answers[i]!
        const ours = writtenText(version, body)
        if ("error" in theirs) refusals += 1
        expect({ body, ...ours }).toEqual("error" in theirs ? { body, error: expect.any(String) } : { body, ...theirs })
      }
      // Both kinds of answers were met.
      expect(refusals).toBeGreaterThan(0)
      expect(refusals).toBeLessThan(bodies.length / 2)
    }, 600_000)
  }
})
