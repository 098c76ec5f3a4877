import type { Script } from "./script"

/** A `fetch` for clients that cannot send fields of their own, or that send several requests for one call. */
export interface ScriptedFetch {
  readonly fetch: typeof fetch
  /** Bodies as the client wrote them, before the script was added. */
  readonly bodies: unknown[]
}

/** Adds the next script to each request that has a JSON body; a request more than there are scripts is an error. */
export function scriptedFetch(...scripts: readonly Script[]): ScriptedFetch {
  const bodies: unknown[] = []
  const send = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    if (typeof init?.body !== "string") return fetch(input, init)
    const body: unknown = JSON.parse(init.body)
    if (typeof body !== "object" || body === null) throw new Error("the client sent no object")
    const next = scripts[bodies.length]
    if (next === undefined) throw new Error(`the client sent request ${bodies.length + 1} of ${scripts.length}`)
    bodies.push(body)
    return fetch(input, { ...init, body: JSON.stringify({ ...body, ...next }) })
  }
  return { fetch: Object.assign(send, { preconnect: fetch.preconnect }), bodies }
}
