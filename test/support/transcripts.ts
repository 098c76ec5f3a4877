/** Recorded pairs of a request and vLLM's answer, and the token ids that its stand-in engine "generated" for them. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { repository } from "./serve"

const folder = join(repository, "../shared/transcripts")
const pythonFolder = join(folder, "python_032_mock_qwen3")

/** JSON of any shape: what a recording holds is known only to the case that reads it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes; a wrong path fails them
export type Loose = any

/** One event of a recorded stream; `data` is the text `[DONE]` or JSON. */
export interface RecordedEvent {
  readonly event?: string
  readonly data: Loose
}

/** One recorded exchange. A body is JSON, or text where the client sent something else. */
export interface Transcript {
  readonly name: string
  readonly script: string | null
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: readonly string[]
    readonly body?: Loose
    readonly body_raw?: string
  }
  readonly response: {
    readonly status: number
    readonly body?: Loose
    readonly body_text?: string
    readonly sse?: readonly RecordedEvent[]
  }
}

/** Whether the recordings lie beside this repository. They are other projects' output and not part of it. */
export const transcriptsExist = existsSync(pythonFolder)

/** Names of all recordings of vLLM's Python server, without `.json`. Empty where there are none. */
export function transcriptNames(): readonly string[] {
  if (!transcriptsExist) return []
  return readdirSync(pythonFolder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => file.slice(0, -".json".length))
    .sort()
}

/** One recording of vLLM's Python server. */
export function readTranscript(name: string): Transcript {
  return JSON.parse(readFileSync(join(pythonFolder, `${name}.json`), "utf8"))
}

/** A recording of vLLM's render server: a request and the token ids of its prompt. */
export interface RenderedPrompt {
  readonly name: string
  readonly path: string
  readonly request: Loose
  readonly tokenIds: readonly number[]
}

/** Every request that vLLM's render server turned into token ids. */
export function renderedPrompts(): readonly RenderedPrompt[] {
  if (!transcriptsExist) return []
  const read = (path: string): Loose => JSON.parse(readFileSync(join(folder, path), "utf8"))
  const rendered: RenderedPrompt[] = []
  for (const [name, entry] of Object.entries<Loose>(read("python_032_launch_render_responses_qwen3.json"))) {
    if (entry.status !== 200) continue
    rendered.push({ name, path: entry.path, request: entry.request, tokenIds: entry.response.token_ids })
  }
  for (const name of ["render_chat", "render_chat_tools"]) {
    const { request, response } = read(`python_032_launch_render_qwen3/${name}.json`)
    rendered.push({ name, path: request.path, request: request.body, tokenIds: response.body.token_ids })
  }
  return rendered
}

/** A recorded request to vLLM's render server, with its answer. */
export interface RenderedExchange {
  readonly name: string
  readonly path: string
  readonly request: Loose
  readonly status: number
  readonly response: Loose
}

/** Every recorded exchange with vLLM's render server. */
export function renderedExchanges(): readonly RenderedExchange[] {
  if (!transcriptsExist) return []
  const read = (path: string): Loose => JSON.parse(readFileSync(join(folder, path), "utf8"))
  const responses = Object.entries<Loose>(read("python_032_launch_render_responses_qwen3.json"))
  const chat = ["render_chat", "render_chat_tools", "render_bad_model"].map((name) => {
    const { request, response } = read(`python_032_launch_render_qwen3/${name}.json`)
    return { name, path: request.path, request: request.body, status: response.status, response: response.body }
  })
  return [...responses.map(([name, entry]) => ({ name, ...entry })), ...chat]
}

/** A recorded exchange with vLLM's full server whose scale-out routes are on. */
export function scaleOutExchange(name: string): Transcript {
  return JSON.parse(readFileSync(join(folder, "python_032_mock_qwen3_scaleout", `${name}.json`), "utf8"))
}

/** What the stand-in engine says for a script, without the EOS id that it adds. */
export function scriptTokenIds(script: string): readonly number[] {
  const text = readFileSync(join(folder, "scripts_qwen3", `${script}.tok`), "utf8")
  return text.trim().split(/\s+/).map(Number)
}

/** The prompts that the recorded server sent to its engine, by the id that its answer has. Empty where there are none. */
export function sentPrompts(): ReadonlyMap<string, readonly number[]> {
  const file = join(repository, "../shared/engine/captures/python_032_frontend_requests.jsonl")
  const prompts = new Map<string, readonly number[]>()
  if (!existsSync(file)) return prompts
  for (const line of readFileSync(file, "utf8").trim().split("\n")) {
    const { type, body }: Loose = JSON.parse(line)
    if (type !== "ADD") continue
    // The engine's id is the answer's with the choice's number behind it.
    const externalId: string = body[16]
    prompts.set(externalId.replace(/[-_]\d+$/, ""), body[1])
  }
  return prompts
}

/** The id that a recorded answer has; null for errors. */
export function answerId({ response }: Transcript): string | null {
  return response.body?.id ?? response.sse?.[0]?.data.id ?? null
}
