import { describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Config } from "../src/config"
import { main, type StopSignal, type System } from "../src/main"
import type { ModelProfile } from "../src/model/profile"
import { err, ok } from "../src/result"

/** A process around `main` whose server, clock and signals the test moves by hand. */
class FakeSystem implements System {
  readonly lines: string[] = []
  readonly exits: number[] = []
  readonly started: { config: Config; profile: ModelProfile }[] = []
  stops = 0
  time = 0
  /** Answers every start instead of a server. */
  failure: { readonly kind: string; readonly message: string } | null = null
  readonly argv: readonly string[]
  readonly env: System["env"]
  private listener: (signal: StopSignal) => void = () => {}
  private drain = Promise.withResolvers<void>()
  private ready = Promise.withResolvers<void>()

  constructor(argv: readonly string[], env: System["env"] = {}) {
    this.argv = argv
    this.env = env
  }

  readonly readFile: System["readFile"] = () => err("does not exist")
  /** Paths of what is on the PATH. */
  programs: { readonly [name: string]: string } = {}
  readonly findProgram: System["findProgram"] = (name) => this.programs[name] ?? null
  out(line: string): void {
    this.lines.push(line)
    if (line.startsWith("listening on")) this.ready.resolve()
  }
  error(line: string): void {
    this.lines.push(`! ${line}`)
  }
  onSignal(listener: (signal: StopSignal) => void): void {
    this.listener = listener
  }
  exit(status: number): void {
    this.exits.push(status)
  }
  now(): number {
    return this.time
  }
  readonly startServer: System["startServer"] = async (config, profile) => {
    this.started.push({ config, profile })
    if (this.failure !== null) return err(this.failure)
    return ok({
      url: "http://127.0.0.1:4321",
      reasoningParser: "qwen3",
      toolCallParser: "hermes",
      engineAddress: `tcp://${config.vllm.address}:${config.vllm.rpcPort === 0 ? 7777 : config.vllm.rpcPort}`,
      enginesOutlive: config.vllm.rpcPort !== 0,
      drained: this.drain.promise,
      stop: () => void this.stops++,
    })
  }

  listening(): Promise<void> {
    return this.ready.promise
  }
  signal(signal: StopSignal): void {
    this.listener(signal)
  }
  drained(): void {
    this.drain.resolve()
  }
}

describe("serve", () => {
  test("says what it serves, that it simulates, and how to ask it", async () => {
    const system = new FakeSystem(["serve", "--port", "0"])
    const status = main(system)
    await system.listening()
    const { profile, config } = system.started[0]!
    expect(config.port).toBe(0)
    expect(system.lines).toEqual([
      `serving ${profile.name} (built-in profile), window ${profile.contextTokensMax} tokens`,
      "parsers: qwen3 for reasoning, hermes for tool calls",
      "engine simulator: answers are simulated, no model computes them",
      "scale-out routes are off: --enable-scale-out turns them on",
      `try: curl http://127.0.0.1:4321/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"${profile.name}","messages":[{"role":"user","content":"Hello"}]}'`,
      "listening on http://127.0.0.1:4321",
    ])
    system.drained()
    expect(await status).toBe(0)
  })

  test("of a folder names it, and computes with it only by a real engine", async () => {
    const folder = mkdtempSync(join(tmpdir(), "main-test-"))
    writeFileSync(join(folder, "config.json"), '{"max_position_embeddings":512}')
    writeFileSync(join(folder, "tokenizer.json"), '{"model":{"vocab":{}}}')
    const lines = async (...words: string[]) => {
      const system = new FakeSystem(["serve", folder, "--engine", "simulator", ...words], { VLLM_SERVER_DEV_MODE: "1" })
      system.drained()
      expect(await main(system)).toBe(0)
      return system.lines
    }
    const keys = ["--api-key", "secret", "--served-model-name", "it's", "--root-path", "/p", "--uds", "/tmp/s"]
    expect(await lines(...keys)).toEqual([
      "! warning: VLLM_SERVER_DEV_MODE is not supported yet",
      `serving it's (${folder}), window 512 tokens`,
      "parsers: qwen3 for reasoning, hermes for tool calls",
      "engine simulator: answers are simulated, no model computes them",
      "scale-out routes are off: --enable-scale-out turns them on",
      `try: curl --unix-socket /tmp/s http://localhost/p/v1/completions -H 'Content-Type: application/json' -H "Authorization: Bearer $VLLM_API_KEY" -d '{"model":"it'\\''s","prompt":"Hello","max_tokens":32}'`,
      "listening on http://127.0.0.1:4321",
    ])
    expect((await lines())[1]).toBe(`serving ${folder} (${folder}), window 512 tokens`)
    rmSync(folder, { recursive: true })
  })

  test("by vLLM says which engines it waits for and how to start them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "main-test-"))
    writeFileSync(join(folder, "config.json"), '{"max_position_embeddings":512}')
    writeFileSync(join(folder, "tokenizer.json"), '{"model":{"vocab":{}}}')
    const lines = async (...words: string[]) => {
      const system = new FakeSystem(["serve", folder, "--engine", "vllm", ...words])
      system.programs = { vllm: "/usr/bin/vllm" }
      system.drained()
      expect(await main(system)).toBe(0)
      return system.lines.filter((line) => line.startsWith("engine"))
    }
    const link = (size: number, local: number) =>
      `--headless --data-parallel-size ${size} --data-parallel-size-local ${local}`
    expect(await lines("--data-parallel-size-local", "0")).toEqual([
      `engine vllm: waiting for 1 engine on tcp://127.0.0.1:29550; start: vllm serve ${folder} ${link(1, 1)} --data-parallel-address 127.0.0.1 --data-parallel-rpc-port 29550`,
      "engine vllm: an engine that served an earlier process of this server comes back by itself",
    ])
    expect(await lines()).toEqual([
      "engine vllm: 1 engine started here, ready when the model is loaded (tcp://127.0.0.1:29550)",
    ])
    const several = ["-dp", "3", "-dpl", "1", "-dpa", "::", "-dpp", "0"]
    expect(await lines(...several)).toEqual([
      "engine vllm: 1 engine started here, ready when the model is loaded (tcp://HOST:7777)",
      `engine vllm: waiting for 2 engines on tcp://HOST:7777; start: vllm serve ${folder} ${link(3, 2)} --data-parallel-start-rank 1 --data-parallel-address HOST --data-parallel-rpc-port 7777`,
      "engine vllm: an engine that served an earlier process of this server must be started again",
    ])
    rmSync(folder, { recursive: true })
  })

  test("gives the flags' window and sampling defaults to the built-in profile", async () => {
    const words = ["--max-model-len", "1k", "--override-generation-config", '{"temperature":0.5}']
    const system = new FakeSystem(["serve", ...words])
    system.drained()
    await main(system)
    expect(system.started[0]!.profile).toMatchObject({ contextTokensMax: 1000, samplingDefaults: { temperature: 0.5 } })
  })
})

describe("a start that fails", () => {
  const run = async (argv: readonly string[], failure: FakeSystem["failure"] = null) => {
    const system = new FakeSystem(argv, { HF_HUB_OFFLINE: "1", HF_HOME: "/no/such/folder" })
    system.failure = failure
    const status = await main(system)
    return {
      status,
      lines: system.lines.filter((line) => !line.startsWith("! warning")),
      starts: system.started.length,
    }
  }

  test("ends with 2 for a bad command line", async () => {
    expect(await run(["serve", "--port", "x"])).toEqual({
      status: 2,
      lines: ['! sluice: --port "x": expected a whole number 0–65535'],
      starts: 0,
    })
    expect(await run(["rende"])).toEqual({
      status: 2,
      lines: ['! sluice: unknown command "rende": expected serve or render; sluice --help lists the flags'],
      starts: 0,
    })
  })

  test("ends with 1 for a model that is missing, and with 2 for a flag that it cannot follow", async () => {
    expect(await run(["serve", "./nowhere", "--engine", "simulator"])).toEqual({
      status: 1,
      lines: ["! sluice: ./nowhere is neither a folder nor a name of the form org/name"],
      starts: 0,
    })
    expect(await run(["serve", "acme/tiny", "--engine", "simulator"])).toEqual({
      status: 1,
      lines: [
        "! sluice: revision main of acme/tiny is not in /no/such/folder/hub, and offline mode is set (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)",
      ],
      starts: 0,
    })
    expect(await run(["serve", "acme/tiny"])).toMatchObject({ status: 2, starts: 0 })
    const tooLarge = await run(["serve", "--max-model-len", "1t"])
    expect(tooLarge).toMatchObject({ status: 2, starts: 0 })
  })

  test("ends with 1 for a server that does not come up, with 2 if a parser name is why", async () => {
    expect(await run(["serve"], { kind: "cannot_listen", message: "port 8000 is taken" })).toEqual({
      status: 1,
      lines: ["! sluice: port 8000 is taken"],
      starts: 1,
    })
    expect((await run(["serve"], { kind: "parser_unknown", message: "unknown parser" })).status).toBe(2)
  })

  test("prints help and version and ends with 0", async () => {
    expect(await run(["--version"])).toEqual({ status: 0, lines: ["0.1.0"], starts: 0 })
    const { status, lines } = await run(["serve", "--help"])
    expect({ status, first: lines[0]!.split("\n")[0] }).toEqual({
      status: 0,
      first: "sluice: an OpenAI-compatible HTTP front end for inference engines",
    })
  })
})

describe("a signal", () => {
  test("begins the drain, and the end of the drain ends the process with 0", async () => {
    const system = new FakeSystem(["serve"])
    const status = main(system)
    await system.listening()
    system.signal("SIGTERM")
    expect({ stops: system.stops, exits: system.exits, last: system.lines.at(-1) }).toEqual({
      stops: 1,
      exits: [],
      last: "SIGTERM: no new connections; running requests are being ended",
    })
    system.drained()
    expect(await status).toBe(0)
  })

  test("that comes again at once is a copy of the first; later, or another one, it ends the process at once", async () => {
    for (const [second, after, exits] of [
      ["SIGINT", 249, []],
      ["SIGINT", 250, [130]],
      ["SIGTERM", 0, [143]],
    ] as const) {
      const system = new FakeSystem(["serve"])
      const status = main(system)
      await system.listening()
      system.signal("SIGINT")
      system.time += after
      system.signal(second)
      expect({ stops: system.stops, exits: system.exits }).toEqual({ stops: 1, exits: [...exits] })
      system.drained()
      await status
    }
  })

  test("before the server is up ends the process at once", async () => {
    const system = new FakeSystem(["serve"])
    const status = main(system)
    system.signal("SIGTERM")
    expect(system.exits).toEqual([143])
    system.drained()
    await status
  })
})
