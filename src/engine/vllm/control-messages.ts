/** Bodies of the messages beside ADD (ENGINE_PROTOCOL 2, 3, 10 and 12). Each is bytes of its own, the caller's. */
import type { Json } from "../../ir/conversation"
import { MessagePackWriter } from "./message-pack-writer"

/** The type frame of a message to the engine. */
export const MessageType = { add: 0, abort: 1, startWave: 2, utility: 3, executorFailed: 4 } as const
/** One of the values of `MessageType`. */
export type MessageType = (typeof MessageType)[keyof typeof MessageType]

/** What an engine is told when it says HELLO. */
export interface InitAddresses {
  /** Entry i belongs to the front-end process with client index i. */
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** null without a coordinator. */
  readonly coordinatorInput: string | null
  readonly coordinatorOutput: string | null
  readonly frontendStatsPublish: string | null
}

/** Writes control bodies. Meant to be kept: its buffer is reused. */
export class ControlEncoder {
  private readonly writer = new MessagePackWriter()

  /** ABORT: ids under which the engine knows the sequences. Unknown ones do no harm. */
  abort(engineRequestIds: readonly string[]): Uint8Array {
    const { writer } = this
    writer.reset()
    writer.array(engineRequestIds.length)
    for (const id of engineRequestIds) writer.string(id)
    return writer.finish()
  }

  /** UTILITY: calls a method of the engine object; the answer carries `callId`, a whole number within ±2^53. */
  utility(clientIndex: number, callId: number, method: string, args: readonly Json[]): Uint8Array {
    const { writer } = this
    writer.reset()
    writer.array(4)
    writer.int(clientIndex)
    writer.int(callId)
    writer.string(method)
    writer.json([...args])
    return writer.finish()
  }

  /** START_DP_WAVE: `excludedEngine` started the wave itself; null = none did. */
  startWave(wave: number, excludedEngine: number | null): Uint8Array {
    const { writer } = this
    writer.reset()
    writer.array(2)
    writer.int(wave)
    if (excludedEngine === null) writer.nil()
    else writer.int(excludedEngine)
    return writer.finish()
  }

  /** INIT. `parallelConfig` is set on the engine's configuration as it stands; empty for one engine. */
  init(addresses: InitAddresses, parallelConfig: { readonly [key: string]: Json }): Uint8Array {
    const { writer } = this
    writer.reset()
    writer.json({
      addresses: {
        inputs: [...addresses.inputs],
        outputs: [...addresses.outputs],
        coordinator_input: addresses.coordinatorInput,
        coordinator_output: addresses.coordinatorOutput,
        frontend_stats_publish_address: addresses.frontendStatsPublish,
      },
      parallel_config: { ...parallelConfig },
    })
    return writer.finish()
  }

  /** Any value, for what has no method here: a coordinator's counts, say. */
  value(value: Json): Uint8Array {
    const { writer } = this
    writer.reset()
    writer.json(value)
    return writer.finish()
  }
}
