import type { Config } from "../config"
import type { Engine } from "../ir/engine"
import type { ServedWindow } from "../ir/served-window"
import { ok, type Result } from "../result"
import type { Clock } from "./clock"
import { HttpEngine } from "./http/client"
import { Simulator } from "./simulator"
import { VllmEngine, type VllmPorts } from "./vllm/client"
import { HostedEngine } from "./vllm/hosted-engine"

/** What engines need from the root (`engine` must not import `tokenizer`). */
export interface EnginePorts {
  /** Special tokens spelled out in the text become their ids; nothing else is added. */
  encode(text: string): Uint32Array
  /** Special tokens come out spelled. */
  decode(tokenIds: Uint32Array): string
  readonly vocabSize: number
  /** Of the served model; engines whose own is smaller limit it. */
  readonly window: ServedWindow
  /** Of the served model: as the operator wrote it, and its folder. */
  readonly modelNames: readonly string[]
  readonly isMixtureOfExperts: boolean
  /** Modalities of which requests may bring what processors made of them; empty = none. */
  readonly featureModalities: readonly string[]
  log(line: string): void
  readonly clock?: Clock
}

/** An engine link whose sockets cannot be opened; `message` is one line for the operator. */
export interface EngineFailure {
  readonly kind: string
  readonly message: string
}

/** An engine, and where its processes dial in. */
export interface OpenEngine {
  readonly engine: Engine
  /** `tcp://HOST:PORT`; null for an engine of this process. */
  readonly address: string | null
  /** Whether its processes, where others started them, find the next process of this server by themselves. */
  readonly isOutlived: boolean
}

/** The engine that the configuration names. One that lives in another process may still have to come. */
export function openEngine(config: Config, ports: EnginePorts): Result<OpenEngine, EngineFailure> {
  const { queuedRequestsMax } = config.limits
  const { encode, decode, vocabSize, clock } = ports
  switch (config.engine) {
    case "simulator":
      return ok({
        engine: new Simulator(config.simulator, { encode, decode, vocabSize, queuedRequestsMax, clock }),
        address: null,
        isOutlived: false,
      })
    case "http":
      return ok({
        engine: new HttpEngine(config.http, { queuedRequestsMax, log: ports.log }),
        address: null,
        isOutlived: false,
      })
    case "vllm": {
      const { command } = config.vllm
      const vllmPorts: VllmPorts = {
        contextTokensMax: ports.window.modelTokens,
        window: (tokens) => ports.window.limit(tokens),
        vocabSize,
        modelNames: ports.modelNames,
        isMixtureOfExperts: ports.isMixtureOfExperts,
        queuedRequestsMax,
        featureModalities: ports.featureModalities,
        encode,
        log: ports.log,
        now: () => performance.now(),
      }
      const engine =
        command === null ? VllmEngine.open(config.vllm, vllmPorts) : HostedEngine.open(config.vllm, command, vllmPorts)
      if (!engine.ok) return engine
      const { address, isOutlived } = engine.value
      return ok({ engine: engine.value, address, isOutlived })
    }
  }
}
