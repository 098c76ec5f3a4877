/**
 * A program that runs one test engine, as `vllm serve` runs a headless one: it takes the flags of the link and prints
 * log lines. SIGTERM ends it with status 0 after ABORT for what runs; an engine that dies ends it with status 1.
 */
import { TestEngine } from "./test-engine"

function flag(name: string): string {
  const at = process.argv.indexOf(`--${name}`)
  const value = process.argv[at + 1]
  if (at === -1 || value === undefined) throw new Error(`--${name} is missing`)
  return value
}

const host = flag("data-parallel-address")
const address = `tcp://${host.includes(":") ? `[${host}]` : host}:${flag("data-parallel-rpc-port")}`
console.log(`dialling with ${process.argv.includes("--headless") ? "--headless" : "no --headless"}`)
if (process.argv.includes("--never-registers")) {
  setInterval(() => {}, 1_000)
} else {
  const engine = new TestEngine({ address })
  let status = 1
  process.on("SIGTERM", () => {
    status = 0
    engine.terminate()
  })
  await engine.until(() => engine.isEnded)
  if (status === 1) console.error("the engine died")
  process.exit(status)
}
