import { parseArgs } from "node:util"

/** How large a run of bench/serve.ts is. */
export interface BenchOptions {
  readonly repeats: number
  readonly connections: readonly number[]
  readonly apis: readonly ("chat" | "responses")[]
  /** Requests of one run. */
  readonly requests: number
  /** Tokens of one reply, its end token included. */
  readonly tokens: number
  /** Time of one engine step; 0 = as fast as it goes. */
  readonly stepMs: number
  /** Program that plays vLLM's engine in a process of its own; null = the simulator inside the server. */
  readonly mockEngine: string | null
  /** vLLM's Rust front end, measured in turns with ours; null = none. */
  readonly vllmRs: string | null
}

/** Reads the command line; throws on what it does not know. `--check` is a run of a few seconds. */
export function optionsOf(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      check: { type: "boolean", default: false },
      repeats: { type: "string" },
      connections: { type: "string" },
      api: { type: "string" },
      requests: { type: "string" },
      tokens: { type: "string" },
      "step-ms": { type: "string" },
      engine: { type: "string", default: "simulator" },
      "mock-engine": { type: "string", default: "../shared/engine/mock-engine/mock-engine" },
      "vllm-rs": { type: "string" },
    },
  })
  const usual = values.check
    ? { repeats: 1, connections: [4, 16], requests: 16, tokens: 64 }
    : { repeats: 3, connections: [64, 256], requests: 1_024, tokens: 256 }
  const apis = (["chat", "responses"] as const).filter((api) => values.api === undefined || values.api === api)
  if (apis.length === 0) throw new Error(`--api is chat or responses, not ${values.api}`)
  if (values.engine !== "simulator" && values.engine !== "mock") {
    throw new Error(`--engine is simulator or mock, not ${values.engine}`)
  }
  const vllmRs = values["vllm-rs"] ?? null
  if (vllmRs !== null && values.engine !== "mock") throw new Error("--vllm-rs needs --engine mock: it has no engine")
  return {
    mockEngine: values.engine === "mock" ? values["mock-engine"] : null,
    vllmRs,
    repeats: number("repeats", values.repeats, usual.repeats),
    connections: values.connections?.split(",").map((count) => number("connections", count, 0)) ?? usual.connections,
    apis,
    requests: number("requests", values.requests, usual.requests),
    tokens: number("tokens", values.tokens, usual.tokens),
    stepMs: number("step-ms", values["step-ms"], 0),
  }
}

function number(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  if (!/^\d+(?:\.\d+)?$/.test(text)) throw new Error(`--${name}: not a number: ${text}`)
  return Number(text)
}
