import type { Config } from "../config"
import type { Engine } from "../ir/engine"
import { Simulator, type SimulatorPorts } from "./simulator"
import type { SimulatorClock } from "./simulator-clock"

/** What engines need from the served vocabulary, given by the root (`engine` must not import `tokenizer`). */
export interface EnginePorts {
  /** Special tokens spelled out in the text become their ids; nothing else is added. */
  encode(text: string): Uint32Array
  /** Special tokens come out spelled. */
  decode(tokenIds: Uint32Array): string
  readonly vocabSize: number
  readonly clock?: SimulatorClock
}

/** The engine that the configuration names. */
export function openEngine(config: Config, ports: EnginePorts): Engine {
  const simulatorPorts: SimulatorPorts = {
    encode: (text) => ports.encode(text),
    decode: (tokenIds) => ports.decode(tokenIds),
    vocabSize: ports.vocabSize,
    queuedRequestsMax: config.limits.queuedRequestsMax,
    clock: ports.clock,
  }
  switch (config.engine) {
    case "simulator":
      return new Simulator(config.simulator, simulatorPorts)
  }
}
