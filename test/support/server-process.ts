/**
 * The server as its users start it: a child process on a free port, ended by its process id. Nothing of src/ is
 * imported here, so what clients and benches see is what the command serves.
 */
import { join } from "node:path"

const root = join(import.meta.dir, "../..")
const readyLine = /listening on (http:\/\/\S+)/
/** A server that has not said it listens by then is broken. */
const readyMsMax = 20_000
/** A server that is still there by then after SIGTERM is broken as well, and is killed. */
const endMsMax = 10_000

/** A running server. */
export interface Server {
  /** `http://HOST:PORT`, without a slash at its end. */
  readonly origin: string
  /** The base URL that OpenAI clients want: origin and `/v1`. */
  readonly baseURL: string
  readonly pid: number
  /** Sends SIGTERM to the process and gives its exit code, or its signal's name. */
  end(): Promise<number | string>
}

/** Starts `sluice serve` on a free port with a simulator of 1 ms steps, plus the given flags. */
export function startServer(...flags: string[]): Promise<Server> {
  return startServerUnder([], ["--sim-step-ms", "1", "--sim-prefill-ms", "0", ...flags])
}

/** Starts `sluice serve` on a free port behind a command that replaces itself by it (`taskset -c 0`). */
export function startServerUnder(prefix: readonly string[], flags: readonly string[]): Promise<Server> {
  const command = [process.execPath, "--no-install", "src/main.ts", "serve", "--port", "0", "--tokenizer-cache", "off"]
  return startProcess([...prefix, ...command, ...flags])
}

/**
 * Starts a server by its command and waits for the line that says where it listens; where `origin` is given, nothing is
 * waited for. Throws with everything the process wrote when it ends first or says nothing in time.
 */
export async function startProcess(command: readonly string[], origin: string | null = null): Promise<Server> {
  const child = Bun.spawn([...command], {
    cwd: root,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  let written = ""
  const ready = Promise.withResolvers<string>()
  if (origin !== null) ready.resolve(origin)
  // Both pipes are read to their ends: a full pipe would stop the server.
  const reading = Promise.all(
    [child.stdout, child.stderr].map(async (pipe) => {
      const decoder = new TextDecoder()
      for await (const chunk of pipe) {
        written += decoder.decode(chunk, { stream: true })
        const found = readyLine.exec(written)
        if (found !== null) ready.resolve(found[1]!)
      }
    }),
  )
  const late = setTimeout(() => ready.reject(new Error(`not ready after ${readyMsMax} ms`)), readyMsMax)
  reading.then(() => ready.reject(new Error("ended before it was ready")), ready.reject)
  try {
    const listensAt = await ready.promise
    return { origin: listensAt, baseURL: `${listensAt}/v1`, pid: child.pid, end }
  } catch (reason) {
    child.kill("SIGKILL")
    throw new Error(`${String(reason)}; it wrote:\n${written}`)
  } finally {
    clearTimeout(late)
  }

  async function end(): Promise<number | string> {
    child.kill("SIGTERM")
    const killing = setTimeout(() => child.kill("SIGKILL"), endMsMax)
    await child.exited
    clearTimeout(killing)
    return child.signalCode ?? child.exitCode ?? -1
  }
}
