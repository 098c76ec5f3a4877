/**
 * The floor of bench/render.ts: a bare server that reads each body and answers with what was last PUT there, so that what
 * is left is the runtime's HTTP and the kernel's sockets.
 */
let answer = ""

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  development: false,
  async fetch(request) {
    const body = await request.bytes()
    if (request.method === "PUT") answer = new TextDecoder().decode(body)
    return new Response(answer, { headers: { "content-type": "application/json;charset=utf-8" } })
  },
})
console.log(`listening on http://127.0.0.1:${server.port}`)

// A module of its own: names here are nobody else's.
export {}
