import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { spellBytes } from "../src/tokenizer/byte-level"
import { startFakeHub } from "./support/fake-hub"
import { hasEnded, isRunning } from "./support/process-table"
import { repository, type ServedProcess, serve } from "./support/serve"

// Each case starts processes, some of them one after the other.
setDefaultTimeout(30_000)

const node = Bun.which("node")
const npm = Bun.which("npm")
const bun = realpathSync(process.execPath)

/** A command run to its end; one that serves instead of ending is stopped. */
async function run(command: readonly string[], cwd = repository) {
  const child = Bun.spawn([...command], { cwd, timeout: 15_000, stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  const [out, error, status] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited])
  return { status, out, error }
}

function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return new Response(stream).text()
}

const main = [process.execPath, "--no-install", "src/main.ts"]

/** True while something accepts connections at the address. */
async function answers(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    () => true,
    () => false,
  )
}

/** A chat stream of `tokens` tokens, `stepMs` apart, whose first bytes have come. */
async function openStream(server: ServedProcess, tokens: number, stepMs: number) {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      messages: [{ role: "user", content: "Hello" }],
      stream: true,
      vllm_xargs: { sim_text: "word ".repeat(tokens).trim(), sim_step_ms: stepMs },
    }),
  })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  const first = await reader.read()
  return {
    status: response.status,
    /** All that comes until the stream ends; what came before a break when it breaks. */
    async rest(): Promise<string> {
      let text = first.value ?? ""
      try {
        for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
      } catch {}
      return text
    },
  }
}

/** A vocabulary of bytes and one special token. */
const tokenizerJson = JSON.stringify({
  version: "1.0",
  added_tokens: [{ id: 256, content: "<|end|>", special: true, normalized: false }],
  normalizer: null,
  post_processor: null,
  pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
  decoder: { type: "ByteLevel" },
  model: {
    type: "BPE",
    vocab: Object.fromEntries(Array.from({ length: 256 }, (_, byte) => [spellBytes(Uint8Array.of(byte)), byte])),
    merges: [],
  },
})

describe("the server process", () => {
  test("is ready soon, says how to ask it, and answers what it says", async () => {
    const before = performance.now()
    await using server = await serve()
    expect(performance.now() - before).toBeLessThan(20_000) // 0.7 s on a quiet machine
    const asked = /^try: (curl .*)$/m.exec(server.output())![1]!
    expect(await answers(server.url)).toBe(true)
    if (Bun.which("curl") === null) return
    const reply = JSON.parse((await run(["sh", "-c", `${asked} --silent`])).out)
    expect(reply).toMatchObject({ object: "chat.completion", choices: [{ message: { role: "assistant" } }] })
  })

  test.each(["SIGTERM", "SIGINT"] as const)("ends with 0 after %s when nothing runs", async (signal) => {
    await using server = await serve()
    expect(await server.stop(signal)).toBe(0)
    expect(await answers(server.url)).toBe(false)
  })

  test("lets a running stream finish within --shutdown-timeout", async () => {
    await using server = await serve(["--shutdown-timeout", "30"])
    const stream = await openStream(server, 20, 20)
    expect(stream.status).toBe(200)
    const exited = server.stop()
    expect(await stream.rest()).toEndWith("data: [DONE]\n\n")
    expect(await exited).toBe(0)
  })

  test("ends at once on a second signal", async () => {
    await using server = await serve(["--shutdown-timeout", "600"])
    const stream = await openStream(server, 10_000, 1000)
    const exited = server.stop("SIGTERM")
    await server.printed("no new connections; running requests")
    server.stop("SIGINT")
    expect(await exited).toBe(130)
    expect(await stream.rest()).not.toContain("[DONE]")
  })

  test("says in one line what keeps it from starting, and ends with 1 or 2", async () => {
    await using server = await serve()
    const { port } = new URL(server.url)
    const taken = await run([...main, "serve", "--port", port])
    expect(taken).toMatchObject({ status: 1, out: "" })
    expect(taken.error).toMatch(/^sluice: cannot listen on 127\.0\.0\.1:\d+: [^\n]+\n$/)
    expect(await run([...main, "serve", "--prot", "1"])).toEqual({
      status: 2,
      out: "",
      error: "sluice: unknown flag --prot: did you mean --port?\n",
    })
    const missing = await run([...main, "serve", "./nowhere", "--engine", "simulator"])
    expect(missing).toMatchObject({ status: 1, out: "" })
    expect(missing.error).toEndWith("sluice: ./nowhere is neither a folder nor a name of the form org/name\n")
    const parser = await run([...main, "serve", "--reasoning-parser", "nobody"])
    expect(parser).toMatchObject({ status: 2, out: "" })
    expect(parser.error).toStartWith("sluice: unknown reasoning parser nobody")
  })

  test("serves a model from the hub, says what it fetches, and later does without the hub", async () => {
    const home = mkdtempSync(join(tmpdir(), "main-hub-"))
    // Without a vllm that the machine may have.
    const env: Record<string, string> = { HF_HOME: home, PATH: "/nowhere" }
    {
      using hub = startFakeHub({
        "config.json": { text: '{"model_type":"tiny","max_position_embeddings":600}' },
        "tokenizer.json": { text: tokenizerJson, large: true },
        "tokenizer_config.json": { text: '{"eos_token":"<|end|>"}' },
        "chat_template.jinja": { text: "{% for message in messages %}{{ message.content }}\n{% endfor %}" },
      })
      env.HF_ENDPOINT = hub.endpoint
      await using server = await serve(["acme/tiny", "--engine", "simulator"], { env })
      expect(server.output()).toContain("acme/tiny: fetching tokenizer.json, ")
      expect(server.output()).toContain("answers are simulated, no model computes them")
      expect(server.output()).toContain(", window 600 tokens\n")
      const models = await (await fetch(`${server.url}/v1/models`)).json()
      expect(models).toMatchObject({ data: [{ id: "acme/tiny", max_model_len: 600 }] })
      expect(await server.stop()).toBe(0)
    }
    env.HF_HUB_OFFLINE = "1"
    await using server = await serve(["acme/tiny", "--engine", "simulator"], { env })
    expect(server.output()).not.toContain("warning")
    const stream = await openStream(server, 3, 1)
    expect(await stream.rest()).toEndWith("data: [DONE]\n\n")
    rmSync(home, { recursive: true })
  })

  describe("that starts an engine", () => {
    let folder = ""
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "main-engine-"))
      writeFileSync(join(folder, "config.json"), '{"model_type":"tiny","max_position_embeddings":600}')
      writeFileSync(join(folder, "tokenizer.json"), tokenizerJson)
      const script = '#!/bin/sh\necho "up $$ with $SECRET: $@"\nexec sleep 1000\n'
      writeFileSync(join(folder, "vllm"), script, { mode: 0o755 })
    })
    afterAll(() => rmSync(folder, { recursive: true, force: true }))

    test("finds vllm on the PATH, hands flags and environment on, and shows its lines", async () => {
      const env = { PATH: `${folder}:${process.env.PATH}`, SECRET: "x" }
      await using server = await serve([folder, "-tp", "2", "--data-parallel-rpc-port", "0", "--", "--new"], {
        env,
      })
      await server.printed(/\[engine\] up \d+ .*\n/)
      const words = /\[engine\] up \d+ (.*) (\d+)\n/.exec(server.output())!
      expect(Number(words[2])).toBeGreaterThan(0)
      expect(words[1]).toBe(
        `with x: serve ${folder} --tensor-parallel-size=2 --new --headless --data-parallel-size 1 --data-parallel-size-local 1 --data-parallel-address 127.0.0.1 --data-parallel-rpc-port`,
      )
      expect(server.output()).toContain("engine vllm: 1 engine started here")
    })

    test.each([
      ["SIGTERM", 0],
      ["SIGKILL", 137],
    ] as const)("takes it along on %s", async (signal, status) => {
      const command = `${join(folder, "vllm")} serve`
      await using server = await serve([folder, "--data-parallel-rpc-port", "0", "--engine-command", command])
      await server.printed(/\[engine\] up \d+ .*\n/)
      const pid = Number(/\[engine\] up (\d+)/.exec(server.output())![1])
      expect(isRunning(pid)).toBe(true)
      expect((await fetch(`${server.url}/health`)).status).toBe(503)
      expect(await server.stop(signal)).toBe(status)
      await hasEnded(pid)
    })

    test("answers 503 when it is started again no more", async () => {
      const flags = ["--data-parallel-rpc-port", "0", "--engine-command", "false", "--engine-restart-limit", "0"]
      await using server = await serve([folder, ...flags])
      await server.printed("engine: ended with status 1; not starting it again: --engine-restart-limit is 0")
      expect((await fetch(`${server.url}/health`)).status).toBe(503)
      expect(await server.stop()).toBe(0)
    })
  })

  test("reads its files itself: a config file that is not UTF-8, a folder, one too many", async () => {
    const folder = mkdtempSync(join(tmpdir(), "main-files-"))
    const file = join(folder, "c.yaml")
    writeFileSync(file, Buffer.from([0xff]))
    const problem = async (path: string) => (await run([...main, "serve", "--config", path])).error
    expect(await problem(file)).toBe(`sluice: --config ${file}: is not UTF-8\n`)
    expect(await problem(folder)).toBe(`sluice: --config ${folder}: is not a file\n`)
    expect(await problem(join(file, "x"))).toBe(`sluice: --config ${join(file, "x")}: does not exist\n`)
    rmSync(folder, { recursive: true })
  })
})

describe.skipIf(npm === null)("npm run serve", () => {
  test("drains on SIGTERM to npm's own process and leaves nothing behind", async () => {
    await using server = await serve(["--shutdown-timeout", "30"], { command: [npm!, "run", "serve", "--"] })
    const stream = await openStream(server, 20, 20)
    const exited = server.stop("SIGTERM")
    expect(await stream.rest()).toEndWith("data: [DONE]\n\n")
    expect(await exited).toBe(0)
    expect(await answers(server.url)).toBe(false)
  })
})

describe.skipIf(node === null)("bin/sluice.js", () => {
  const launcher = join(repository, "bin/sluice.js")

  test("starts the server from Node, and SIGTERM to it drains and leaves nothing behind", async () => {
    await using server = await serve(["--shutdown-timeout", "30"], { command: [node!, launcher, "serve"] })
    const stream = await openStream(server, 20, 20)
    const exited = server.stop("SIGTERM")
    expect(await stream.rest()).toEndWith("data: [DONE]\n\n")
    expect(await exited).toBe(0)
    expect(await answers(server.url)).toBe(false)
  })

  test("hands back the exit status", async () => {
    expect(await run([node!, launcher, "serve", "--port", "x"], tmpdir())).toMatchObject({ status: 2 })
    expect(await run([node!, launcher, "--version"], tmpdir())).toEqual({ status: 0, out: "0.1.0\n", error: "" })
  })

  describe("in a package of its own", () => {
    let root = ""
    beforeAll(() => {
      root = realpathSync(mkdtempSync(join(tmpdir(), "launcher-")))
      mkdirSync(join(root, "src"))
      writeFileSync(join(root, "package.json"), '{"type":"module"}')
      writeFileSync(join(root, "bunfig.toml"), "")
      cpSync(launcher, join(root, "bin/sluice.js"))
      const say = `console.log(JSON.stringify({ args: process.argv.slice(2), secret: process.env.SECRET ?? null }))`
      writeFileSync(
        join(root, "src/main.ts"),
        `${say}\nif (process.argv[2] === "die") process.kill(process.pid, "SIGKILL")\n`,
      )
    })
    afterAll(() => rmSync(root, { recursive: true, force: true }))

    /** A package in node_modules with the real Bun, or with the stub that waits for a post-install. */
    function install(name: string, file: string, real: boolean): void {
      const folder = join(root, "node_modules", name)
      mkdirSync(join(folder, "bin"), { recursive: true })
      writeFileSync(join(folder, "package.json"), JSON.stringify({ name }))
      if (real) symlinkSync(bun, join(folder, "bin", file))
      else writeFileSync(join(folder, "bin", file), "#!/bin/sh\necho 'not installed yet'\nexit 1\n", { mode: 0o755 })
    }

    test("says so where no Bun is installed", async () => {
      install("bun", "bun.exe", false)
      expect(await run([node!, join(root, "bin/sluice.js")])).toEqual({
        status: 1,
        out: "",
        error: "sluice: Bun is not installed; run npm install in the package's folder\n",
      })
    })

    test("finds the platform's own package when Bun's post-install never ran", async () => {
      const processor = process.arch === "arm64" ? "aarch64" : process.arch
      install(`@oven/bun-${process.platform}-${processor}`, "bun", true)
      expect((await run([node!, join(root, "bin/sluice.js"), "a b", "--c"])).out).toBe(
        '{"args":["a b","--c"],"secret":null}\n',
      )
    })

    test("follows neither .env nor bunfig.toml of the folder it is started in, and a link to it works", async () => {
      const elsewhere = join(root, "elsewhere")
      mkdirSync(elsewhere)
      writeFileSync(join(elsewhere, ".env"), "SECRET=found\n")
      writeFileSync(join(elsewhere, "bunfig.toml"), 'preload = ["./missing.ts"]\n')
      symlinkSync(join(root, "bin/sluice.js"), join(elsewhere, "sluice"))
      expect(await run([node!, join(elsewhere, "sluice"), "x"], elsewhere)).toEqual({
        status: 0,
        out: '{"args":["x"],"secret":null}\n',
        error: "",
      })
    })

    test("turns a death by signal into its exit status", async () => {
      expect((await run([node!, join(root, "bin/sluice.js"), "die"])).status).toBe(137)
    })
  })
})
