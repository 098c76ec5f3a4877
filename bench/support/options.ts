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
  /** `simulator`: inside the server. `mock`: a program that plays vLLM's engine in a process of its own. */
  readonly engine: "simulator" | "mock"
  /** That program's path; null = the one of ../shared/engine/mock-engine is built. */
  readonly mockEngine: string | null
  /** Front ends of vLLM's, by what they are called here, measured in turns with ours. */
  readonly peers: readonly { readonly name: string; readonly path: string }[]
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
      "mock-engine": { type: "string" },
      "vllm-rs": { type: "string" },
      vllm: { type: "string" },
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
  const peers = (["vllm-rs", "vllm"] as const).flatMap((name) => {
    const path = values[name]
    return path === undefined ? [] : [{ name, path }]
  })
  if (peers.length > 0 && values.engine !== "mock") throw new Error("peers need --engine mock: they have no engine")
  return {
    engine: values.engine,
    mockEngine: values["mock-engine"] ?? null,
    peers,
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
