import type { VllmConfig } from "../../config"
import { ok, type Result } from "../../result"
import type { ZmtpFailure } from "../zmtp/peer"
import { type DataSocketPorts, DataSockets } from "./data-sockets"

const flag = "--engine-data-port says where, two ports for each engine"

/** Where the engines of a server open their data connections, by rank. */
export class DataPlaces {
  private readonly config: VllmConfig
  /** null = nowhere yet. */
  private readonly byRank: (DataSockets | null)[]

  constructor(config: VllmConfig) {
    this.config = config
    this.byRank = new Array<DataSockets | null>(config.dataParallelSize).fill(null)
  }

  /** Whether all engines that are started elsewhere find the next process of this server at the same ports. */
  get areStable(): boolean {
    return this.byRank.slice(this.startedHere).every((sockets) => sockets?.isStable === true)
  }

  /** The sockets of a rank; null = it has none yet. */
  of(rank: number): DataSockets | null {
    return this.byRank[rank] ?? null
  }

  /**
   * Binds the stable ports of engines that may outlive this process. Not of those that are started here: they end with it.
   * Why they cannot be bound, where they were asked for; null = they are, or free ports will do.
   */
  bind(ports: DataSocketPorts, log: (line: string) => void): string | null {
    const { dataPort, rpcPort, dataParallelSize, address: host } = this.config
    const first = dataPort ?? (rpcPort === 0 ? 0 : rpcPort + 1)
    if (first === 0) return null
    for (let rank = this.startedHere; rank < dataParallelSize; rank++) {
      const sockets = DataSockets.open({ rank, host, port: first + 2 * rank }, ports)
      if (sockets.ok) {
        this.byRank[rank] = sockets.value
        continue
      }
      const { message } = sockets.error
      if (dataPort !== null) return `cannot listen for data of engine ${rank} on ${message}; ${flag}`
      log(`engine ${rank} gets free ports and will not outlive this process: ${message}; ${flag}`)
    }
    return null
  }

  /** The sockets for a new engine of a rank: the stable ones, or free ones of its own. */
  forEngine(rank: number, ports: DataSocketPorts): Result<DataSockets, ZmtpFailure> {
    const before = this.of(rank)
    if (before?.isStable === true) return ok(before)
    before?.close()
    const fresh = DataSockets.open({ rank, host: this.config.address, port: 0 }, ports)
    this.byRank[rank] = fresh.ok ? fresh.value : null
    return fresh
  }

  /** Closes all of them. */
  close(): void {
    for (const sockets of this.byRank) sockets?.close()
  }

  private get startedHere(): number {
    return this.config.command?.engines ?? 0
  }
}
