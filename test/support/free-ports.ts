/** Ports below those that systems hand out by themselves, so that nobody is given one of them meanwhile. */
const first = 20_000
const last = 32_000
const triesMax = 200

/** The first of `count` ports in a row at which nobody listens now. Another process may take one before they are used. */
export function freePorts(count: number): number {
  for (let tries = 0; tries < triesMax; tries++) {
    const from = first + Math.floor(Math.random() * (last - first))
    const held: { stop(closeActiveConnections: boolean): void }[] = []
    try {
      for (let port = from; port < from + count; port++) {
        held.push(Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }))
      }
      return from
    } catch {
      // One of them is taken: elsewhere.
    } finally {
      for (const each of held) each.stop(true)
    }
  }
  throw new Error(`no ${count} ports in a row are free`)
}
