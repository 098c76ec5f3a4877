/**
 * Messages between two processes: our ZMTP and libzmq, in every combination, over ipc and tcp. One table, in Markdown.
 *
 *     npx bun --no-install bench/zmtp.ts [--check] [--libzmq] [--seconds 1.5] [--repeats 3]
 *
 * `--libzmq` brings libzmq itself (its C interface called from compiled code) and pyzmq, from the environment of the
 * tests. Every message's length and, where it is small, its number are checked on arrival.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { libzmqPython } from "../test/engine/zmtp/libzmq"

const { values: flags } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    libzmq: { type: "boolean", default: false },
    seconds: { type: "string" },
    repeats: { type: "string" },
  },
})
const seconds = Number(flags.seconds ?? (flags.check ? 0.05 : 1.5))
const repeats = Number(flags.repeats ?? (flags.check ? 1 : 3))
const askBytes = 100
const sizes = [100, 1_000, 65_536] as const

type Kind = "sluice" | "libzmq" | "pyzmq"
const pairs: readonly (readonly [from: Kind, to: Kind])[] = flags.libzmq
  ? [
      ["sluice", "sluice"],
      ["libzmq", "sluice"],
      ["sluice", "libzmq"],
      ["libzmq", "libzmq"],
      ["pyzmq", "pyzmq"],
    ]
  : [["sluice", "sluice"]]

const python = flags.libzmq ? await libzmqPython() : ""
const library = flags.libzmq ? bundledLibrary(python) : ""

/** The libzmq that pyzmq's package brings. */
function bundledLibrary(of: string): string {
  const lib = join(of, "../../lib")
  const folder = join(lib, readdirSync(lib).find((name) => name.startsWith("python"))!, "site-packages/pyzmq.libs")
  return join(folder, readdirSync(folder).find((name) => name.startsWith("libzmq"))!)
}

function start(kind: Kind, role: string, address: string, bytes: number) {
  const command =
    kind === "pyzmq"
      ? [python, "-B", join(import.meta.dir, "peers/zmtp/peer.py")]
      : [process.execPath, "--no-install", join(import.meta.dir, "support/zmtp-peer.ts"), kind]
  const child = Bun.spawn([...command, role, address, `${bytes}`, `${seconds}`, library], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = linesOf(child.stdout)
  return {
    async told() {
      const { value, done } = await lines.next()
      if (done) throw new Error(`${kind} ${role} ended early`)
      return JSON.parse(value)
    },
    async ended() {
      if ((await child.exited) !== 0) throw new Error(`${kind} ${role} ended with ${child.exitCode}`)
    },
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = ""
  for await (const chunk of stream) {
    text += Buffer.from(chunk).toString()
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n")) {
      yield text.slice(0, at)
      text = text.slice(at + 1)
    }
  }
}

/** Messages a second, and CPU microseconds a message of both ends. */
interface Flow {
  readonly rate: number
  readonly senderMicros: number
  readonly receiverMicros: number
}

async function flow([from, to]: readonly [Kind, Kind], address: string, bytes: number): Promise<Flow> {
  const receiver = start(to, "receive", address, bytes)
  const sender = start(from, "send", (await receiver.told()).address, bytes)
  const [sent, received]: { count: number; seconds: number; cpu: number }[] = await Promise.all([
    sender.told(),
    receiver.told(),
  ])
  await Promise.all([sender.ended(), receiver.ended()])
  if (sent!.count !== received!.count) throw new Error(`${sent!.count} sent, ${received!.count} received`)
  return {
    rate: received!.count / received!.seconds,
    senderMicros: (sent!.cpu / sent!.count) * 1e6,
    receiverMicros: (received!.cpu / received!.count) * 1e6,
  }
}

async function roundTrips(
  [from, to]: readonly [Kind, Kind],
  address: string,
): Promise<readonly [p50: number, p99: number]> {
  const echo = start(to, "echo", address, askBytes)
  const ask = start(from, "ask", (await echo.told()).address, askBytes)
  const { micros }: { micros: number[] } = await ask.told()
  await Promise.all([ask.ended(), echo.ended()])
  micros.sort((a, b) => a - b)
  return [micros[Math.floor(micros.length / 2)]!, micros[Math.floor(micros.length * 0.99)]!]
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"))
const transports = { ipc: `ipc://${folder}/bench.sock`, tcp: "tcp://127.0.0.1:0" }

console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores; Bun ${Bun.version}; medians of ${repeats} runs of ${seconds} s; ` +
    `CPU: µs a message of ${sizes[1]} B, sender + receiver; round trip of ${askBytes} B`,
)
const columns = ["100 B msg/s", "1 KB msg/s", "64 KB GB/s", "CPU", "round trip p50 µs", "p99 µs"]
console.log(`| transport | from → to | ${columns.join(" | ")} |`)
console.log(`| --- | --- | ${columns.map(() => "---:").join(" | ")} |`)
try {
  for (const [transport, address] of Object.entries(transports)) {
    // Repeats go round the pairs, so that a busy minute of the machine does not fall on one of them.
    const flows = new Map(pairs.map((pair) => [pair, sizes.map(() => [] as Flow[])]))
    const trips = new Map(pairs.map((pair) => [pair, [] as (readonly [number, number])[]]))
    for (let round = 0; round < repeats; round++) {
      for (const pair of pairs) {
        for (const [i, bytes] of sizes.entries()) flows.get(pair)![i]!.push(await flow(pair, address, bytes))
        trips.get(pair)!.push(await roundTrips(pair, address))
      }
    }
    for (const pair of pairs) {
      const rates = flows.get(pair)!.map((each) => median(each.map(({ rate }) => rate)))
      const middle = flows.get(pair)![1]!
      const cells = [
        Math.round(rates[0]!).toLocaleString("en"),
        Math.round(rates[1]!).toLocaleString("en"),
        ((rates[2]! * sizes[2]) / 1e9).toFixed(2),
        `${median(middle.map((each) => each.senderMicros)).toFixed(2)} + ${median(middle.map((each) => each.receiverMicros)).toFixed(2)}`,
        median(trips.get(pair)!.map(([p50]) => p50)).toFixed(1),
        median(trips.get(pair)!.map(([, p99]) => p99)).toFixed(1),
      ]
      console.log(`| ${transport} | ${pair.join(" → ")} | ${cells.join(" | ")} |`)
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
