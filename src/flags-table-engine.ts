/**
 * Flags of the engine and of the link to it. Names are vLLM's where vLLM has the flag; the rest begin with `engine-`.
 * Flags that only an engine knows stand in `flags-vllm.ts`: they are handed on to an engine that we start.
 */
import { type LoraModule, structuredOutputsBackends } from "./config"
import { build, type Flag, link, one, remote } from "./flags-fields"
import {
  addressValue,
  choiceValue,
  commandValue,
  durationValue,
  integerValue,
  loraModulesValue,
  structuredOutputsValue,
  textValue,
  type ValueKind,
} from "./flags-values"
import { err, ok } from "./result"

/** Engine ids are 16-bit ranks (ENGINE_PROTOCOL §1). */
const dataParallelSizeMax = 65_535

const urlsValue: ValueKind<readonly string[]> = {
  sample: "URL,URL",
  read: (text) => {
    const urls = text.split(",").map((each) => each.trim().replace(/\/+$/, ""))
    const good = urls.every((url) => /^https?:$/.test(URL.parse(url)?.protocol ?? "") && !/[?#]/.test(url))
    return good ? ok([...new Set(urls)]) : err("http or https addresses, with commas between")
  },
}

const loraModules: Flag = {
  name: "lora-modules",
  group: "engine",
  arity: "many",
  sample: `${loraModulesValue.sample} …`,
  help: "Adapters that requests may name as their model.",
  defaultText: "none",
  env: [],
  short: "",
  forEngine: "no",
  apply: (draft, texts) => {
    const modules: LoraModule[] = []
    for (const text of texts) {
      const read = loraModulesValue.read(text)
      if (!read.ok) return err({ text, expected: read.error })
      for (const module of read.value) {
        if (modules.some((other) => other.name === module.name)) {
          return err({ text, expected: "each adapter's name once" })
        }
        modules.push(module)
      }
    }
    draft.vllm.loraModules = modules
    return ok(null)
  },
}

/** All of them, in the order of the help text. */
export const engineFlagTable: readonly Flag[] = [
  one(
    "engine",
    "engine",
    choiceValue("auto", "simulator", "vllm", "http"),
    "engineChoice",
    "Who computes tokens; auto: vllm for a MODEL with a flag of this group or a vllm on the PATH.",
  ),
  remote("engine-url", urlsValue, "urls", "Services with POST /inference/v1/generate (--engine http).", {
    unset: "none",
  }),
  remote("engine-api-key", textValue("KEY"), "apiKey", "Key that those services want.", {
    unset: "none",
    env: ["SLUICE_ENGINE_API_KEY"],
  }),
  remote("engine-health-interval-ms", durationValue(1), "healthIntervalMs", "Between looks at their /health.", {
    unit: "milliseconds",
  }),
  one(
    "engine",
    "engine-command",
    commandValue,
    "engineCommandWords",
    "Starts engines; --headless and the flags of the link are added, and no shell runs it.",
    { unset: "vllm serve" },
  ),
  link("data-parallel-size", integerValue(1, dataParallelSizeMax), "dataParallelSize", "Engines in all.", {
    short: "dp",
  }),
  one(
    "engine",
    "data-parallel-size-local",
    integerValue(0, dataParallelSizeMax),
    "dataParallelSizeLocal",
    "Engines that are started here; 0 = all are started elsewhere.",
    { short: "dpl", unset: "all, where there is a command for it" },
  ),
  link("data-parallel-address", addressValue, "address", "Where Sluice waits for engines, and they dial it.", {
    short: "dpa",
  }),
  link(
    "data-parallel-rpc-port",
    integerValue(0, 65_535),
    "rpcPort",
    "Port for their first contact; 0 = any free one.",
    {
      short: "dpp",
    },
  ),
  link(
    "engine-data-port",
    integerValue(0, 65_535),
    "dataPort",
    "First port for data, two for each engine; 0 = free ones.",
    { unset: "the one behind the rpc port" },
  ),
  link(
    "engine-data-address",
    addressValue,
    "dataAddress",
    "What engines dial for data, where a name of Sluice's outlives its address.",
    { unset: "where they reached it" },
  ),
  one(
    "engine",
    "engine-records",
    textValue("DIR|off"),
    "engineRecordsChoice",
    "Keeps what engines are that outlive this process.",
    { unset: "~/.cache/sluice/engines" },
  ),
  link(
    "data-parallel-coordinator",
    choiceValue("auto", "on", "off"),
    "coordinator",
    "Coordinate data parallel; auto: for mixture-of-experts models.",
  ),
  build(
    "engine",
    "structured-outputs-config",
    structuredOutputsValue,
    "Grammar back end, and more for the engine; also --structured-outputs-config.KEY VALUE.",
    {},
    { forEngine: "too" },
    (draft, backend) => {
      if (backend !== null) draft.vllm.structuredOutputsBackend = backend
    },
  ),
  link(
    "structured-outputs-config.backend",
    choiceValue(...structuredOutputsBackends),
    "structuredOutputsBackend",
    "The grammar back end alone.",
    { forEngine: "too" },
  ),
  loraModules,
  build(
    "engine",
    "engine-startup-timeout",
    durationValue(1000),
    "From an engine's start to its registration; 0 = no limit.",
    0,
    { unit: "seconds" },
    (draft, seconds) => {
      draft.vllm.startupTimeoutSeconds = seconds === 0 ? null : seconds
    },
  ),
  link(
    "engine-hang-timeout-ms",
    durationValue(1),
    "hangTimeoutMs",
    "An engine that gives neither output nor answer is taken for hung; 0 = never.",
    { unit: "milliseconds" },
  ),
  link(
    "engine-utility-timeout-ms",
    durationValue(1),
    "utilityTimeoutMs",
    "For the answer to the call that shows that an engine works, before it gets requests.",
    {
      unit: "milliseconds",
    },
  ),
  link("engine-stop-timeout-ms", durationValue(1), "stopTimeoutMs", "From SIGTERM to SIGKILL for an engine of ours.", {
    unit: "milliseconds",
  }),
  build(
    "engine",
    "engine-restart",
    choiceValue("never", "on-failure", "always"),
    "When an engine of ours that ended is started again.",
    "on-failure",
    {},
    (draft, policy) => {
      draft.vllm.restart.policy = policy
    },
  ),
  build(
    "engine",
    "engine-restart-limit",
    integerValue(0, 1_000_000),
    "Starts again in a row, with growing waits; ten minutes of work begin a new row.",
    5,
    {},
    (draft, restarts) => {
      draft.vllm.restart.restartsMax = restarts
    },
  ),
]
