import type { Script } from "./script"

/** A server between a client that is a process of its own and ours: adds scripts, and keeps what the client sent. */
export interface ScriptingProxy extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`; every path of the server behind it is there. */
  readonly origin: string
  /** Bodies as the client wrote them, before the script was added. */
  readonly bodies: unknown[]
}

/** What the model shall say to a request; it may look at what the client sent. */
export type Reply = (body: object) => Script

/**
 * Starts a proxy before `origin`. Each POST gets the next reply's script; one more than there are replies is answered
 * with 500, and so are bodies that are no JSON object. `await using` ends it with all its connections.
 */
export function scriptingProxy(origin: string, replies: readonly Reply[]): ScriptingProxy {
  const bodies: unknown[] = []
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const target = `${origin}${pathname}${search}`
      if (request.method !== "POST") return await fetch(target, { method: request.method })
      const body: unknown = await request.json()
      const reply = replies[bodies.length]
      bodies.push(body)
      if (reply === undefined || typeof body !== "object" || body === null) {
        return new Response(`request ${bodies.length} of ${replies.length}`, { status: 500 })
      }
      return await fetch(target, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...body, ...reply(body) }),
        signal: request.signal,
      })
    },
  })
  return {
    origin: proxy.url.origin,
    bodies,
    async [Symbol.asyncDispose]() {
      await proxy.stop(true)
    },
  }
}
