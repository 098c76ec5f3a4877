import type { VllmConfig } from "../../config"

/** Where an engine dials its first contact. */
export interface HandshakeAddress {
  /** Host name or address, without brackets. */
  readonly host: string
  readonly port: number
}

/**
 * The flags with which `vllm serve` starts `engines` headless engines from rank `startRank` on, that dial `at`
 * (ENGINE_PROTOCOL §1, "Starting the engine").
 */
export function engineArguments(
  vllm: VllmConfig,
  at: HandshakeAddress,
  engines: number,
  startRank = 0,
): readonly string[] {
  const later = startRank === 0 ? [] : ["--data-parallel-start-rank", `${startRank}`]
  return [
    "--headless",
    "--data-parallel-size",
    `${vllm.dataParallelSize}`,
    "--data-parallel-size-local",
    `${engines}`,
    ...later,
    "--data-parallel-address",
    at.host,
    "--data-parallel-rpc-port",
    `${at.port}`,
  ]
}
