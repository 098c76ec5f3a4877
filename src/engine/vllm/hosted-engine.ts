import type { VllmConfig } from "../../config"
import type { Engine, EngineError, EngineReceiver, EngineSequence, EngineStatus } from "../../ir/engine"
import type { GenerateRequest } from "../../ir/generate-request"
import { ok, type Result } from "../../result"
import { engineArguments } from "../process/engine-arguments"
import { EngineProcess } from "../process/engine-process"
import { VllmEngine, type VllmPorts } from "./client"
import type { EnginePoolFailure } from "./engine-pool"
import { hostOf, isWildcard, portOf } from "./socket-address"

/** How the program that starts engines is run. */
export interface HostedCommand {
  readonly words: readonly string[]
  readonly engines: number
}

/** A process whose engine is lost has this long to end by itself, with its own last words and status. */
const lastWordsMs = 2_000

/** vLLM engines on this machine whose process is ours: started with the server, again after a failure, and ended with it. */
export class HostedEngine implements Engine {
  readonly name = "vllm"
  private readonly config: VllmConfig
  private readonly link: VllmEngine
  private readonly process: EngineProcess
  private closed = false
  private readonly engines: number
  private overdue: Timer | null = null
  /** Ranks of the present run that have not registered yet. */
  private readonly missing = new Set<number>()
  /** By rank: engines that are lost while their process still runs. */
  private readonly mourned = new Map<number, Timer>()

  private constructor(config: VllmConfig, command: HostedCommand, link: VllmEngine, log: (line: string) => void) {
    this.config = config
    this.link = link
    this.engines = command.engines
    const host = isWildcard(config.address) ? "127.0.0.1" : hostOf(link.address)
    const at = { host, port: portOf(link.address) }
    this.process = new EngineProcess({
      command: [...command.words, ...engineArguments(config, at, command.engines)],
      restart: config.restart,
      stopTimeoutMs: config.stopTimeoutMs,
      log,
      ended: (_exit, after) => {
        this.cancelAll()
        if (after.kind === "restart") this.expectReady(after.delayMs)
      },
    })
  }

  /** Binds the link's sockets, then starts the command. */
  static open(config: VllmConfig, command: HostedCommand, ports: VllmPorts): Result<HostedEngine, EnginePoolFailure> {
    let hosted: HostedEngine | null = null
    const link = VllmEngine.open(config, {
      ...ports,
      ready: (rank) => {
        hosted?.registered(rank)
        ports.ready?.(rank)
      },
      lost: (rank, reason) => {
        // Engines beyond those that run here are somebody else's.
        if (rank < command.engines) hosted?.mourn(rank, reason)
        ports.lost?.(rank, reason)
      },
    })
    if (!link.ok) return link
    hosted = new HostedEngine(config, command, link.value, (line) => ports.log(line))
    hosted.process.start()
    hosted.expectReady(0)
    return ok(hosted)
  }

  /** The handshake address that engines dial. */
  get address(): string {
    return this.link.address
  }

  /** As for `VllmEngine`, of those that are started elsewhere. */
  get isOutlived(): boolean {
    return this.link.isOutlived
  }

  submit(request: GenerateRequest, receiver: EngineReceiver): Result<EngineSequence, EngineError> {
    return this.link.submit(request, receiver)
  }

  status(): EngineStatus {
    return this.link.status()
  }

  async close(): Promise<void> {
    this.closed = true
    this.cancelAll()
    await this.link.close()
    await this.process.stop(this.config.stopTimeoutMs)
  }

  /** When one of the engines has not registered in time, they are started again. */
  private expectReady(afterMs: number): void {
    const { startupTimeoutSeconds } = this.config
    for (let rank = 0; rank < this.engines; rank++) this.missing.add(rank)
    if (startupTimeoutSeconds === null) return
    this.overdue = setTimeout(
      () => this.process.restart(`it did not register within ${startupTimeoutSeconds} s`),
      afterMs + startupTimeoutSeconds * 1_000,
    )
  }

  private registered(rank: number): void {
    this.forgive(rank)
    this.missing.delete(rank)
    if (this.missing.size === 0) this.cancelOverdue()
  }

  /** A process that neither ends nor brings its engine back is started again. */
  private mourn(rank: number, reason: string): void {
    this.forgive(rank)
    // It may have ended before its connections were seen to close.
    if (this.closed || this.process.group === null) return
    this.mourned.set(
      rank,
      setTimeout(() => this.process.restart(reason), lastWordsMs),
    )
  }

  private forgive(rank: number): void {
    clearTimeout(this.mourned.get(rank))
    this.mourned.delete(rank)
  }

  private cancelAll(): void {
    this.cancelOverdue()
    for (const rank of [...this.mourned.keys()]) this.forgive(rank)
  }

  private cancelOverdue(): void {
    if (this.overdue !== null) clearTimeout(this.overdue)
    this.overdue = null
  }
}
