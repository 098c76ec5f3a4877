/** A server in front of a real engine, spoken to over HTTP. */
import { readEvents, type SentEvent } from "../support/sent-events"
import { type ServedProcess, serve } from "../support/serve"
import type { Loose } from "../support/transcripts"
import { servedName } from "./golden-requests"
import { contextTokensMax, engineEnvironment, modelFolder } from "./installation"

/** A reply with its body read. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly json: Loose
}

/** See the head of this file. */
export class Served {
  readonly process: ServedProcess

  private constructor(process: ServedProcess) {
    this.process = process
  }

  /** Starts `sluice serve` for the engine's model, with these flags more. */
  static async start(...flags: readonly string[]): Promise<Served> {
    const model = [modelFolder, "--served-model-name", servedName, "--max-model-len", `${contextTokensMax}`]
    return new Served(await serve([...model, "--engine", "vllm", ...flags], { env: engineEnvironment() }))
  }

  async post(path: string, body: object | string, headers: { readonly [name: string]: string } = {}): Promise<Answer> {
    const response = await this.open(path, body, headers)
    return { status: response.status, headers: response.headers, json: await response.json() }
  }

  /** Posts with `stream: true` and reads to the end. */
  async events(path: string, body: object): Promise<SentEvent[]> {
    const response = await this.open(path, { ...body, stream: true })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${response.status}: ${text}`)
    return readEvents(text)
  }

  /** The reply as soon as its head is there. */
  open(
    path: string,
    body: object | string,
    headers: { readonly [name: string]: string } = {},
    signal: AbortSignal | null = null,
  ): Promise<Response> {
    return fetch(this.process.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
      signal,
    })
  }

  async health(): Promise<number> {
    return (await fetch(`${this.process.url}/health`)).status
  }

  /** The sum of a metric's series. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.process.url}/metrics`)).text()
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"))].map(([, value]) =>
      Number(value),
    )
    if (values.length === 0) throw new Error(`no metric ${name}`)
    return values.reduce((sum, value) => sum + value, 0)
  }

  /** A stream that would run for long, read up to its first event; `rest` reads on to its end. */
  async longStream(
    path: string,
    body: object,
    signal: AbortSignal | null = null,
  ): Promise<{ rest(): Promise<string> }> {
    const response = await this.open(path, { ...body, stream: true, ignore_eos: true }, {}, signal)
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
    const reader = response.body!.getReader()
    const decoder = new TextDecoder()
    let text = decoder.decode((await reader.read()).value, { stream: true })
    return {
      rest: async () => {
        for (;;) {
          const { done, value } = await reader.read()
          if (done) return text
          text += decoder.decode(value, { stream: true })
        }
      },
    }
  }
}

/** Waits until `holds` does, looking every 50 ms; the limit of the test's own time ends a vain wait. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(50)
}
