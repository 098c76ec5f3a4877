/** Starts the real server as its own process on a free port, for tests that speak HTTP to it. */
import { join } from "node:path"

/** A server process that is ready. `await using` ends it. */
export interface ServedProcess extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly url: string
  readonly pid: number
  /** All that came on standard output and standard error so far. */
  output(): string
  /** Resolves when the output holds `words`; rejects if the process ends before. */
  printed(words: string | RegExp): Promise<void>
  /** SIGTERM, or another signal, and the exit status once it has ended. */
  stop(signal?: NodeJS.Signals): Promise<number>
  /** The exit status, whenever it ends. */
  readonly exited: Promise<number>
}

/** How the process is started when not as `bun src/main.ts serve`. */
export interface ServeOptions {
  /** Command and arguments up to the flags. */
  readonly command?: readonly string[]
  /** On top of the test's own environment. */
  readonly env?: { readonly [name: string]: string }
}

/** The repository's folder. */
export const repository = join(import.meta.dir, "../..")

/**
 * Starts `serve --port 0 …flags` and waits for the ready line. The test's own hub and vLLM variables are left out.
 * Rejects with the output if the process ends first.
 */
export async function serve(flags: readonly string[] = [], options: ServeOptions = {}): Promise<ServedProcess> {
  const command = options.command ?? [process.execPath, "--no-install", "src/main.ts", "serve"]
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:VLLM|HF|TRANSFORMERS)_/.test(name))
  const child = Bun.spawn([...command, "--port", "0", ...flags], {
    cwd: repository,
    env: { ...Object.fromEntries(inherited), ...options.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const output = new Output()
  const ended = Promise.all([output.read(child.stdout), output.read(child.stderr), child.exited])
  const exited = ended.then(([, , status]) => status)
  void exited.then((status) => output.end(status))

  const ready = /^listening on (\S+)$/m
  await output.waitFor(ready)
  const served: ServedProcess = {
    url: ready.exec(output.text)![1]!,
    pid: child.pid,
    output: () => output.text,
    printed: (words) => output.waitFor(words),
    exited,
    stop: (signal = "SIGTERM") => {
      child.kill(signal)
      return exited
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL")
      await child.exited
    },
  }
  return served
}

/** Collected output, and those who wait for a part of it. */
class Output {
  text = ""
  private ended = false
  private waiting: { words: string | RegExp; found: () => void; lost: (error: Error) => void }[] = []

  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      this.text += decoder.decode(chunk, { stream: true })
      this.wake()
    }
  }

  waitFor(words: string | RegExp): Promise<void> {
    return new Promise((found, lost) => {
      this.waiting.push({ words, found, lost })
      this.wake()
      if (this.ended) this.end(0)
    })
  }

  end(status: number): void {
    this.ended = true
    for (const { words, lost } of this.waiting.splice(0)) {
      lost(new Error(`the server ended with status ${status} before it said ${words}:\n${this.text}`))
    }
  }

  private wake(): void {
    const holds = (words: string | RegExp) =>
      typeof words === "string" ? this.text.includes(words) : words.test(this.text)
    const still = this.waiting.filter(({ words }) => !holds(words))
    const done = this.waiting.filter(({ words }) => holds(words))
    this.waiting = still
    for (const { found } of done) found()
  }
}
