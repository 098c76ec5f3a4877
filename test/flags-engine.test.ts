import { describe, expect, test } from "bun:test"
import { type Config, defaultConfig, type EngineCommand } from "../src/config"
import { type Environment, parseFlags } from "../src/flags"
import { err, ok } from "../src/result"

const here = "/usr/bin/vllm"

interface Setting {
  readonly env?: Environment
  /** Text of c.yaml. */
  readonly yaml?: string
  /** Whether a vllm is on the PATH. */
  readonly vllm?: boolean
}

async function parse(argv: readonly string[], { env = {}, yaml, vllm = false }: Setting) {
  const readFile = (path: string) => (path === "c.yaml" && yaml !== undefined ? ok(yaml) : err("does not exist"))
  return parseFlags(["serve", ...argv], env, readFile, (name) => (vllm && name === "vllm" ? here : null))
}

/** Engine, command and warnings that `serve` with these words gives, or the error line. */
async function plan(argv: readonly string[], setting: Setting = {}) {
  const parsed = await parse(argv, setting)
  if (!parsed.ok) return parsed.error.message
  if (parsed.value.kind !== "serve") return parsed.value.kind
  const { config, warnings } = parsed.value
  return { engine: config.engine, command: config.vllm.command, warnings }
}

/** The part of the configuration about vLLM, with these words. */
async function vllm(argv: readonly string[], setting: Setting = {}) {
  const parsed = await parse(argv, setting)
  if (!parsed.ok) throw new Error(parsed.error.message)
  if (parsed.value.kind !== "serve") throw new Error(parsed.value.kind)
  return parsed.value.config.vllm
}

interface Plan {
  readonly engine: Config["engine"]
  readonly command: EngineCommand | null
  readonly warnings: readonly string[]
}

const simulated: Plan = { engine: "simulator", command: null, warnings: [] }
const elsewhere: Plan = { engine: "vllm", command: null, warnings: [] }
const started = (words: readonly string[], engines = 1): Plan => ({
  engine: "vllm",
  command: { words, engines },
  warnings: [],
})

describe("--engine auto", () => {
  test("is the simulator without a model, whatever is on the PATH", async () => {
    expect(await plan([], { vllm: true })).toEqual(simulated)
    expect(await plan(["--engine", "auto"], { vllm: true })).toEqual(simulated)
  })

  test("starts a vllm that is on the PATH for a model", async () => {
    expect(await plan(["acme/tiny"], { vllm: true })).toEqual(started([here, "serve", "acme/tiny"]))
  })

  test("simulates no model's answers unasked: a model alone needs a vllm on the PATH", async () => {
    expect(await plan(["acme/tiny"])).toBe(
      "no vllm on the PATH to compute the answers of acme/tiny: name the command with --engine-command, wait for " +
        "engines started elsewhere with --engine vllm, or have answers simulated with --engine simulator",
    )
    expect(await plan(["acme/tiny", "--engine", "simulator"])).toEqual(simulated)
  })

  test("waits for an engine where a flag of the engine or of the link to it is given", async () => {
    expect(await plan(["m", "--data-parallel-rpc-port", "0"])).toEqual(elsewhere)
    expect(await plan(["m", "--data-parallel-size-local", "0"], { vllm: true })).toEqual(elsewhere)
    expect(await plan(["m", "--engine-restart", "never"])).toEqual(elsewhere)
    expect(await plan(["m", "--dtype", "half", "-tp", "2", "--", "--new"])).toEqual({
      ...elsewhere,
      warnings: ["for the command line of the engine, and none is started here: --dtype, -tp, what stands after --"],
    })
  })

  test("refuses such flags without a model, since they would do nothing", async () => {
    expect(await plan(["--data-parallel-size", "2"])).toBe("--data-parallel-size needs a model")
    expect(await plan(["--dtype", "half"])).toBe("--dtype needs a model")
    expect(await plan(["--engine-command", "vllm serve m"])).toBe("--engine-command needs a model")
    expect(await plan(["--", "--x"])).toBe("what stands after -- needs a model")
  })
})

describe("a named engine", () => {
  test("that is the simulator says which flags it leaves alone", async () => {
    expect(await plan(["m", "--engine", "simulator"], { vllm: true })).toEqual(simulated)
    const words = ["m", "--engine=simulator", "-dp", "2", "--enforce-eager", "--max-model-len", "1k", "--", "--x"]
    expect(await plan(words, { vllm: true })).toEqual({
      ...simulated,
      warnings: ["without effect on the simulator: -dp, --enforce-eager, what stands after --"],
    })
  })

  test("that is vllm is started from the PATH, or waited for", async () => {
    expect(await plan(["m", "--engine", "vllm"], { vllm: true })).toEqual(started([here, "serve", "m"]))
    expect(await plan(["m", "--engine", "vllm"])).toEqual(elsewhere)
    expect(await plan(["--engine", "vllm"], { vllm: true })).toBe("--engine vllm needs a model")
  })
})

describe("vllm serve", () => {
  const serve = async (...words: string[]) => {
    const planned = await plan(["m", ...words], { vllm: true })
    return typeof planned === "string" ? planned : planned.command?.words.slice(3)
  }

  test("gets the flags that only an engine knows, as one word where one value belongs to them", async () => {
    expect(
      await serve(
        "--dtype",
        "half",
        "--gpu_memory_utilization=0.5",
        "--cudagraph-capture-sizes",
        "1",
        "2",
        "--seed=-1",
      ),
    ).toEqual(["--dtype=half", "--gpu-memory-utilization=0.5", "--cudagraph-capture-sizes", "1", "2", "--seed=-1"])
  })

  test("gets switches on or off; one that has no opposite is left out", async () => {
    expect(await serve("--enforce-eager", "--no-enable-prefix-caching", "--enable-lora", "false")).toEqual([
      "--enforce-eager",
      "--no-enable-prefix-caching",
      "--no-enable-lora",
    ])
    expect(await serve("--disable-log-stats")).toEqual(["--disable-log-stats"])
    expect(await serve("--disable-log-stats", "false")).toEqual([])
  })

  test("gets short spellings by their names", async () => {
    expect(await serve("-tp", "2", "-pp=3", "-ep", "-q", "fp8", "-O3")).toEqual([
      "--tensor-parallel-size=2",
      "--pipeline-parallel-size=3",
      "--enable-expert-parallel",
      "--quantization=fp8",
      "--optimization-level=3",
    ])
    expect(await serve("-O", "2")).toEqual(["--optimization-level=2"])
    expect(await serve("-O=1")).toEqual(["--optimization-level=1"])
    expect(await serve("-O4")).toBe("unknown flag -O4")
  })

  test("gets keys behind a dot as they are spelled", async () => {
    expect(await serve("--compilation_config.cudagraph_mode", "NONE", "-cc.mode=3")).toEqual([
      "--compilation-config.cudagraph_mode=NONE",
      "--compilation-config.mode=3",
    ])
    expect(await serve("--max-model-len.x", "1")).toBe("unknown flag --max-model-len.x: did you mean --max-model-len?")
  })

  test("gets what Sluice was told and the engine needs as well", async () => {
    expect(
      await serve(
        "--max-model-len",
        "-1",
        "--revision=r",
        "--tokenizer",
        "t",
        "--download-dir",
        "/d",
        "--max-logprobs=5",
      ),
    ).toEqual(["--max-model-len=-1", "--revision=r", "--tokenizer=t", "--download-dir=/d", "--max-logprobs=5"])
    expect(await serve("--reasoning-parser", "qwen3")).toEqual(["--reasoning-parser=qwen3"])
    expect(await serve("--reasoning-parser", "auto")).toEqual([])
    expect(await serve("--reasoning-parser", "none", "--port", "1", "--served-model-name", "x")).toEqual([])
  })

  test("gets all of the structured outputs, and Sluice its back end", async () => {
    const json = '{"backend":"xgrammar","disable_any_whitespace":true}'
    expect(await serve("--structured-outputs-config", json)).toEqual([`--structured-outputs-config=${json}`])
    const dotted = ["--structured-outputs-config.backend", "guidance", "--structured-outputs-config.x_y", "1"]
    expect(await serve(...dotted)).toEqual([
      "--structured-outputs-config.backend=guidance",
      "--structured-outputs-config.x_y=1",
    ])
    expect((await vllm(["m", "--structured-outputs-config", json])).structuredOutputsBackend).toBe("xgrammar")
    expect((await vllm(["m", "--structured-outputs-config", "{}"])).structuredOutputsBackend).toBe("auto")
    expect((await vllm(["m", ...dotted])).structuredOutputsBackend).toBe("guidance")
    expect(await serve("--structured-outputs-config.backend", "x")).toBe(
      '--structured-outputs-config.backend "x": expected one of auto, xgrammar, guidance, outlines, lm-format-enforcer',
    )
  })

  test("gets the what stands after -- as they are", async () => {
    expect(await serve("--dtype", "half", "--", "--new-flag", "a b", "--help")).toEqual([
      "--dtype=half",
      "--new-flag",
      "a b",
      "--help",
    ])
  })

  test("gets flags from the config file, under those of the command line", async () => {
    const yaml = "model: m\ndtype: half\nenforce-eager: true\nenable_prefix_caching: false\nlogits-processors: [a, b]\n"
    const planned = await plan(["--config", "c.yaml", "--dtype", "auto"], { vllm: true, yaml })
    const words = ["--dtype=auto", "--enforce-eager", "--no-enable-prefix-caching", "--logits-processors", "a", "b"]
    expect(planned).toEqual(started([here, "serve", "m", ...words]))
  })

  test("is started for adapters only with LoRA enabled", async () => {
    expect(await serve("--lora-modules", "a=/a")).toBe("--lora-modules needs --enable-lora")
    expect(await serve("--lora-modules", "a=/a", "--enable-lora")).toEqual(["--enable-lora"])
    expect(await serve("--lora-modules", "a=/a", "--", "--enable-lora")).toEqual(["--enable-lora"])
  })
})

describe("--engine-command", () => {
  test("is cut into words as a shell would, and run as it stands", async () => {
    const words = ["m", "--max-model-len", "1k", "--engine-command", "env X='a b' vllm serve m", "--", "--new"]
    expect(await plan(words, { vllm: true })).toEqual(started(["env", "X=a b", "vllm", "serve", "m", "--new"]))
  })

  test("does not take the engine's flags from beside it", async () => {
    expect(await plan(["m", "--engine-command", "vllm serve m", "--dtype", "half"])).toBe(
      "--dtype belongs into --engine-command, which is run as it stands",
    )
  })

  test("may spell the link itself: that counts for Sluice too, and is added again when it runs", async () => {
    const command =
      "vllm serve m --headless --data_parallel_size=4 -dpl 2 --data-parallel-address 10.0.0.1 -dpp=5000 --dtype half"
    const read = await vllm(["m", "--engine-command", command, "-dp", "4"])
    expect(read).toEqual({
      ...defaultConfig.vllm,
      dataParallelSize: 4,
      address: "10.0.0.1",
      rpcPort: 5000,
      command: { words: ["vllm", "serve", "m", "--dtype", "half"], engines: 2 },
    })
    expect((await vllm(["m", "--", "-dp", "2"], { vllm: true })).command).toEqual({
      words: [here, "serve", "m"],
      engines: 2,
    })
  })

  test("must not say something else than Sluice's own flags, wherever those stand", async () => {
    const command = ["--engine-command", "vllm serve m --data-parallel-size 4"]
    expect(await plan(["m", "-dp", "2", ...command])).toBe(
      "-dp 2 and --data-parallel-size 4 on the engine's command line: they must be the same",
    )
    expect(await plan(["m", "--config", "c.yaml", ...command], { yaml: "data-parallel-size: 3" })).toBe(
      "--config c.yaml: data-parallel-size 3 and --data-parallel-size 4 on the engine's command line: they must be the same",
    )
    expect(await plan(["m", "--engine-command", "vllm -dpp x"])).toBe(
      '-dpp "x" on the engine\'s command line: expected a whole number 0–65535',
    )
    expect(await plan(["m", "--engine-command", "vllm -dpp"])).toBe(
      "-dpp at the end of the engine's command line needs a value",
    )
  })
})

describe("--data-parallel-size-local", () => {
  test("says how many engines are started here; without it all are", async () => {
    expect(await plan(["m", "-dp", "4"], { vllm: true })).toEqual(started([here, "serve", "m"], 4))
    expect(await plan(["m", "-dp", "4", "-dpl", "1"], { vllm: true })).toEqual(started([here, "serve", "m"], 1))
    expect(await plan(["m", "-dp", "4", "-dpl", "0"], { vllm: true })).toEqual(elsewhere)
  })

  test("must fit the rest", async () => {
    expect(await plan(["m", "--data-parallel-size-local", "2"], { vllm: true })).toBe(
      "--data-parallel-size-local 2 is more than --data-parallel-size 1",
    )
    expect(await plan(["m", "-dpl", "1"])).toBe(
      "--data-parallel-size-local 1: there is no vllm on the PATH to start, and no --engine-command",
    )
    expect(await plan(["m", "-dpl", "0", "--engine-command", "vllm serve m"])).toBe(
      "--engine-command starts engines, but --data-parallel-size-local 0 says that none is started here",
    )
  })
})

test("--engine-startup-timeout 0 is no limit", async () => {
  expect((await vllm(["m", "--engine-startup-timeout", "0"])).startupTimeoutSeconds).toBe(null)
})

describe("--engine http", () => {
  const url = "http://10.0.0.1:8000"

  test("needs services and no model, and is meant by --engine-url alone", async () => {
    const remote = { engine: "http" as const, command: null, warnings: [] }
    expect(await plan(["--engine", "http"])).toBe("--engine http needs --engine-url")
    expect(await plan(["--engine", "http", "--engine-url", url])).toEqual(remote)
    expect(await plan(["m", "--engine-url", `${url}/,${url}`], { vllm: true })).toEqual(remote)
    expect(await plan(["m", "--engine", "vllm", "--engine-url", url])).toBe("--engine-url is for --engine http")
  })

  test("warns of what steers other engines, and is not steered by its key alone", async () => {
    const { warnings } = (await plan(["m", "--engine-url", url, "-dp", "2", "--dtype", "half"])) as Plan
    expect(warnings).toEqual(["without effect on --engine http: -dp, --dtype"])
    const key = { env: { SLUICE_ENGINE_API_KEY: "k" } }
    expect(((await plan(["m"], { ...key, vllm: true })) as Plan).engine).toBe("vllm")
    expect(((await plan(["--engine", "simulator"], key)) as Plan).warnings).toEqual([
      "without effect on the simulator: SLUICE_ENGINE_API_KEY",
    ])
  })
})
