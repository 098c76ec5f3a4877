/** Recorded messages of real engines, and what they say, read from their JSON without the product's code. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { repository } from "./serve"

const captures = join(repository, "../shared/engine/captures")

/** Whether all recordings lie beside this repository. Without them a small part of them is still here. */
export const capturesExist = existsSync(captures)

/** One message: its frames, and what Python's decoder read from the body (null where it is no MessagePack). */
export interface RecordedMessage {
  readonly title: string
  readonly frames: readonly Uint8Array[]
  // biome-ignore lint/suspicious/noExplicitAny: JSON of many shapes; a wrong path fails the test
  readonly decoded: any
}

/** The messages that are part of the repository. */
export function goldenMessages(): readonly RecordedMessage[] {
  const lines = readFileSync(join(repository, "test/golden/frames/engine-0.32.jsonl"), "utf8").trim().split("\n")
  return lines.map((line) => {
    const { recording, n, scenario, frames, decoded } = JSON.parse(line)
    const bytes = frames.map((hex: string) => new Uint8Array(Buffer.from(hex, "hex")))
    return { title: `${recording} ${n}: ${scenario}`, frames: bytes, decoded }
  })
}

/** Every message of every recording from one socket: `output PULL`, `input ROUTER`, `handshake ROUTER`. */
export function recordedMessages(socket: string): readonly RecordedMessage[] {
  if (!capturesExist) return []
  const recordings = readdirSync(captures)
    .sort()
    .filter((name) => existsSync(join(captures, name, "manifest.jsonl")))
  return recordings.flatMap((name) => {
    const lines = readFileSync(join(captures, name, "manifest.jsonl"), "utf8")
      .trim()
      .split("\n")
    return lines.flatMap((line) => {
      const message = JSON.parse(line)
      if (message.socket !== socket) return []
      const frames = message.frames.map(({ file }: { file: string }) => readFileSync(join(captures, name, file)))
      const title = `${name} ${message.n}: ${message.scenario}`
      return [{ title, frames: frames.map((each: Buffer) => new Uint8Array(each)), decoded: message.decoded ?? null }]
    })
  })
}

/** What an official front end sent: the ADD bodies and the JSON of them. */
export function frontEndRequests(name: "python_032" | "rust_033"): readonly {
  readonly type: string
  readonly bytes: Uint8Array
  // biome-ignore lint/suspicious/noExplicitAny: JSON of many shapes; a wrong path fails the test
  readonly body: any
}[] {
  const file = join(captures, `${name}_frontend_requests.jsonl`)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, "utf8").trim().split("\n")
  return lines.map((line) => {
    const { type, body_hex, body } = JSON.parse(line)
    return { type, bytes: new Uint8Array(Buffer.from(body_hex, "hex")), body }
  })
}
