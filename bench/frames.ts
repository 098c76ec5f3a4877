/**
 * The engine link's bytes without its sockets: outputs decoded and ADD bodies encoded, per second of this process's CPU
 * time (user and system), beside Python's msgspec with the same structs as vLLM's.
 *
 *     npx bun --no-install bench/frames.ts [--check] [--python]
 *
 * Every message carries scheduler statistics, as an engine's does. Each case's answer is checked first.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { AddEncoder } from "../src/engine/vllm/add-encoder"
import type { AddRequest, EngineLimits } from "../src/engine/vllm/add-request"
import { MessagePackReader } from "../src/engine/vllm/message-pack-reader"
import { OutputFields } from "../src/engine/vllm/output-fields"
import { OutputsDecoder } from "../src/engine/vllm/outputs-decoder"
import { RequestIds } from "../src/engine/vllm/request-id"
import { addRequest } from "../test/support/add-request"
import { logprobsOf, messageOf, outputOf } from "../test/support/engine-outputs"
import { cellsMade } from "../test/support/objects-made"
import { prepareEnvironment, run } from "../test/support/python-environment"

const { values: flags } = parseArgs({
  options: { check: { type: "boolean", default: false }, python: { type: "boolean", default: false } },
})
const repeats = flags.check ? 1 : 7
const caseMs = flags.check ? 5 : 250
const logprobsEach = 5
const limits: EngineLimits = {
  contextTokensMax: 2_000_000,
  vocabSize: 151_936,
  supportsLora: false,
  structuredOutputsBackend: "xgrammar",
}

/** What is measured: `run` does `units` of work. */
interface Case {
  readonly title: string
  readonly unit: string
  readonly units: number
  /** Bytes that one run reads or writes. */
  readonly bytes: number
  run(): void
}

const ids = new RequestIds(0x5eed_1e55)
const publicId = "chatcmpl-0123456789abcdef0123456789abcdef"

function tokenId(i: number): number {
  return (i * 7_919) % 151_000
}

function message(outputs: number, logprobs: number): Uint8Array {
  return messageOf(
    Array.from({ length: outputs }, (_, i) =>
      outputOf({
        requestId: ids.make(publicId, i, 1_000 + i),
        tokenIds: [tokenId(i)],
        fields: logprobs === 0 ? {} : { 2: logprobsOf(tokenId(i), logprobs) },
      }),
    ),
  )
}

/** Adds up everything that a client would look at, so that no work can be left out. */
function decodeCase(outputs: number, logprobs: number): Case & { readonly frame: Uint8Array } {
  const frame = message(outputs, logprobs)
  const frames = [frame]
  const decoder = new OutputsDecoder(ids)
  const { batch } = decoder
  const fields = new OutputFields(batch, ids)
  const sum = (): number => {
    let total = 0
    if (!decoder.decode(frames).ok) throw new Error("the message was not decoded")
    const { count, slot, serial, tokenIds, start, finish, present } = batch
    for (let i = 0; i < count; i++) {
      total += slot[i]! + serial[i]! + tokenIds[start[i]!]! + finish[i]!
      if (present[i] === 0) continue
      const rows = fields.logprobs(i)
      if (!rows.ok || rows.value === null) throw new Error("the logprobs were not decoded")
      total += rows.value.tokenIds[rows.value.width - 2]!
    }
    return total
  }
  let wanted = 0
  for (let i = 0; i < outputs; i++)
    wanted += i + 1_000 + i + tokenId(i) - 1 + (logprobs === 0 ? 0 : tokenId(i) + logprobs - 1)
  if (sum() !== wanted) throw new Error(`the sum is ${sum()} instead of ${wanted}`)
  const title = `decode ${outputs} a message${logprobs === 0 ? "" : `, logprobs=${logprobs}`}`
  return { title, unit: "outputs", units: outputs, bytes: frame.length, run: () => void sum(), frame }
}

function encodeCase(promptTokens: number): Case & { readonly add: AddRequest } {
  const add = addRequest({
    engineRequestId: ids.make(publicId, 1, 1),
    promptTokenIds: Uint32Array.from({ length: promptTokens }, (_, i) => tokenId(i)),
  })
  const encoder = new AddEncoder(limits)
  const body = encoder.encode(add)
  const reader = new MessagePackReader()
  reader.reset(body)
  const fields = reader.readValue()
  const prompt = Array.isArray(fields) ? fields[1] : null
  if (!Bun.deepEquals(prompt, [...add.request.promptTokenIds])) throw new Error("the body has another prompt")
  const title = `encode ADD, ${promptTokens} prompt ids`
  return { title, unit: "bodies", units: 1, bytes: body.length, run: () => void encoder.encode(add), add }
}

/** Units of work in a second of CPU time: the best of some rounds. */
function rateOf({ run: once, units }: Case): number {
  let best = 0
  let rounds = 1
  for (let repeat = 0; repeat < repeats; repeat++) {
    Bun.gc(true)
    for (;;) {
      const before = process.cpuUsage()
      for (let i = 0; i < rounds; i++) once()
      const { user, system } = process.cpuUsage(before)
      if (user + system >= caseMs * 1_000) {
        best = Math.max(best, (units * rounds * 1e6) / (user + system))
        break
      }
      rounds *= 2
    }
  }
  return best
}

const sizes = flags.check ? [1, 256] : [1, 64, 256, 512]
const prompts = flags.check ? [100, 1_000] : [100, 1_000, 100_000]
const decoding = [...sizes.map((size) => decodeCase(size, 0)), ...sizes.map((size) => decodeCase(size, logprobsEach))]
const encoding = prompts.map(encodeCase)

const theirs = flags.python ? await pythonRates() : null
console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores; Bun ${Bun.version}; best of ${repeats} rounds`,
)
console.log("| case | sluice / CPU s | MB / CPU s | py msgspec / CPU s | ratio |\n| --- | --: | --: | --: | --: |")
for (const each of [...decoding, ...encoding]) {
  const rate = rateOf(each)
  const theirRate = theirs?.[each.title]
  const peer = theirRate === undefined ? ["–", "–"] : [shown(theirRate), (rate / theirRate).toFixed(1)]
  const megabytes = ((rate / each.units) * each.bytes) / 1e6
  console.log(`| ${[each.title, `${shown(rate)} ${each.unit}`, megabytes.toFixed(0), ...peer].join(" | ")} |`)
}

const million = decoding.find((each) => each.units === 256)!
const made = cellsMade(() => {
  for (let outputs = 0; outputs < 1_000_000; outputs += million.units) million.run()
})
console.log(`objects made over a million outputs: ${made.objects}, strings: ${made.strings}`)
if (made.objects + made.strings > 100) throw new Error("decoding makes objects for outputs or messages")

function shown(rate: number): string {
  return rate >= 1e6 ? `${(rate / 1e6).toFixed(1)} M` : `${(rate / 1e3).toFixed(1)} k`
}

/** msgspec's rates by title, for the same bytes and requests, from a process of its own with one thread. */
async function pythonRates(): Promise<{ readonly [title: string]: number }> {
  const folder = join(import.meta.dir, "peers/frames")
  const environment = join(folder, ".venv")
  await prepareEnvironment(environment, join(folder, "requirements.txt"))
  const job = join(environment, "job")
  mkdirSync(job, { recursive: true })
  const cases = [
    ...decoding.map(({ title, units, frame }, i) => {
      writeFileSync(join(job, `${i}.bin`), frame)
      return { title, units, file: join(job, `${i}.bin`) }
    }),
    ...encoding.map(({ title, units, add }) => ({ title, units, promptIds: [...add.request.promptTokenIds] })),
  ]
  writeFileSync(join(job, "job.json"), JSON.stringify({ repeats, seconds: caseMs / 1_000, cases }))
  const out = await run(join(environment, "bin/python"), "-B", join(folder, "frames.py"), join(job, "job.json"))
  return JSON.parse(out) // Written by our script: title → rate.
}
