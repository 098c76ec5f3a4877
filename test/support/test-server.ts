import { type Config, defaultConfig, type SimulatorConfig } from "../../src/config"
import type { RunningServer } from "../../src/listener"
import { builtInProfile } from "../../src/model/built-in"
import type { ModelProfile } from "../../src/model/profile"
import { startServer } from "../../src/server"
import { readEvents, type SentEvent } from "./sent-events"

/** What a test changes of the defaults. */
export interface TestServerOptions {
  readonly config?: Partial<Config>
  readonly simulator?: Partial<SimulatorConfig>
  readonly profile?: Partial<ModelProfile>
}

/** A reply with its body read. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes; a wrong path fails them
  readonly json: any
}

/** A server in this process, on a free port. */
export interface TestServer {
  readonly url: string
  readonly log: string[]
  get(path: string, headers?: { readonly [name: string]: string }): Promise<Reply>
  /** `body` is sent as JSON, or as it is when it is text or bytes. */
  post(path: string, body: unknown, headers?: { readonly [name: string]: string }): Promise<Reply>
  /** Posts with `stream: true` and reads all events. */
  events(path: string, body: object): Promise<SentEvent[]>
  /** Running, waiting, inside: back to zero when nobody is served. */
  counts(): Promise<{ running: number; waiting: number; inside: number }>
  stop(): Promise<void>
}

/** Starts a server with a fast simulator and the built-in profile. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const log: string[] = []
  const config: Config = {
    ...defaultConfig,
    port: 0,
    ...options.config,
    simulator: { ...defaultConfig.simulator, stepMs: 0, prefillMs: 0, ...options.simulator },
  }
  const profile = { ...(await builtInProfile()), ...options.profile }
  const started = await startServer(config, profile, (line) => log.push(line))
  if (!started.ok) throw new Error(started.error.message)
  return openTestServer(started.value, log)
}

/** The hands of a test on a server that runs. */
export function openTestServer(running: RunningServer, log: string[]): TestServer {
  const { url } = running

  const send = async (method: string, path: string, body: RequestBody, headers: object): Promise<Reply> => {
    const response = await fetch(url + path, { method, headers: { ...headers }, body })
    const text = await response.text()
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null }
  }
  const asBody = (body: unknown): RequestBody =>
    typeof body === "string" || body instanceof Uint8Array ? new Blob([body as string]) : JSON.stringify(body)
  const server: TestServer = {
    url,
    log,
    get: (path, headers = {}) => send("GET", path, undefined, headers),
    post: (path, body, headers = {}) =>
      send("POST", path, asBody(body), { "content-type": "application/json", ...headers }),
    events: async (path, body) => {
      const reply = await server.post(path, { ...body, stream: true })
      if (reply.status !== 200) throw new Error(`${reply.status}: ${reply.text}`)
      return readEvents(reply.text)
    },
    counts: async () => {
      const metrics = (await server.get("/metrics")).text
      const gauge = (name: string): number => Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, "m").exec(metrics)?.[1])
      const inside: number = (await server.get("/load")).json.server_load
      return { running: gauge("vllm:num_requests_running"), waiting: gauge("vllm:num_requests_waiting"), inside }
    },
    stop: async () => {
      running.stop()
      await running.drained
    },
  }
  return server
}

type RequestBody = Blob | string | undefined

/** Waits until `holds` does; fails after `withinMs`. Polls, so that no test sleeps for a guessed time. */
export async function until(holds: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`did not come true within ${withinMs} ms: ${holds}`)
    await Bun.sleep(2)
  }
}
