/**
 * Makes engine-0.32.jsonl from recordings of a real engine (vLLM 0.32.0 on a CPU, SmolLM2-135M) that lie beside the
 * repository: one message a line, its frames as hex and what a Python decoder read from them.
 *
 *     npx bun --no-install test/golden/frames/extract.ts
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const captures = join(import.meta.dir, "../../../../shared/engine/captures")

/** Recording and numbers in it: each tells another story, and none has frames of a whole vocabulary. */
const wanted: readonly (readonly [string, readonly number[]])[] = [
  ["engine_032", [6, 7, 13, 14, 22, 27, 28, 31, 42, 56, 107, 116, 129, 135, 137, 155, 222, 247]],
  ["sigterm", [19]],
]

if (!existsSync(captures)) throw new Error(`no recordings at ${captures}`)
const lines = wanted.flatMap(([name, numbers]) => {
  const folder = join(captures, name)
  const messages = readFileSync(join(folder, "manifest.jsonl"), "utf8").trim().split("\n")
  return messages.flatMap((line) => {
    const message: { n: number; scenario: string; frames: { file: string }[]; decoded?: unknown } = JSON.parse(line)
    if (!numbers.includes(message.n)) return []
    const frames = message.frames.map(({ file }) => readFileSync(join(folder, file)).toString("hex"))
    const { n, scenario, decoded = null } = message
    return [JSON.stringify({ recording: name, n, scenario, frames, decoded })]
  })
})
writeFileSync(join(import.meta.dir, "engine-0.32.jsonl"), `${lines.join("\n")}\n`)
