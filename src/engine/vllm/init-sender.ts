import type { VllmConfig } from "../../config"
import type { Json } from "../../ir/conversation"
import { ControlEncoder } from "./control-messages"
import type { Coordinator } from "./coordinator"
import type { DataPlaces } from "./data-places"
import type { EngineLink } from "./engine-link"
import { hostOf, isWildcard, meetingPoint, portOf, tcpAddress } from "./socket-address"

/** What INIT tells of, and who hears of engines that it does not reach. */
export interface InitPorts {
  readonly places: DataPlaces
  /** By data-parallel rank; null = never came. */
  readonly links: readonly (EngineLink | null)[]
  /** Of engines that step together; null otherwise. */
  coordinator(): Coordinator | null
  lose(link: EngineLink, reason: string): void
}

/**
 * Answers engines that said HELLO: INIT says where their data sockets are (ENGINE_PROTOCOL 2). A group that steps together
 * meets on the machine of rank 0, so that one comes first, and the others wait for it.
 */
export class InitSender {
  private readonly config: VllmConfig
  private readonly ports: InitPorts
  private readonly control = new ControlEncoder()
  private readonly waiting = new Set<EngineLink>()
  /** What INIT tells a group that steps together. */
  private group: { readonly [key: string]: Json } = {}

  constructor(config: VllmConfig, ports: InitPorts) {
    this.config = config
    this.ports = ports
  }

  /** The engine gets its INIT, at once or behind that of rank 0. */
  add(link: EngineLink): void {
    this.waiting.add(link)
    if (this.ports.coordinator() !== null) {
      const first = this.ports.links[0] ?? null
      if (first === null || first.state === "gone") return
      if (this.waiting.has(first) && first.greeting !== null) {
        this.group = meetingPoint(first.greeting, this.config.dataParallelSize)
      }
    }
    for (const each of this.waiting) this.send(each)
  }

  /** The engine is gone. */
  remove(link: EngineLink): void {
    this.waiting.delete(link)
  }

  private send(link: EngineLink): void {
    this.waiting.delete(link)
    const { greeting } = link
    const data = this.ports.places.of(link.rank)?.addresses
    if (greeting === null || data === undefined) return
    const { address, dataAddress } = this.config
    const host = dataAddress ?? (isWildcard(address) ? hostOf(greeting.local) : address)
    const advertised = (bound: string): string => tcpAddress(host, portOf(bound))
    const coordinator = this.ports.coordinator()?.addresses ?? null
    const body = this.control.init(
      {
        inputs: [advertised(data.input)],
        outputs: [advertised(data.output)],
        coordinatorInput: coordinator === null ? null : advertised(coordinator.input),
        coordinatorOutput: coordinator === null ? null : advertised(coordinator.output),
        frontendStatsPublish: null,
      },
      this.group,
    )
    if (!greeting.send([body])) this.ports.lose(link, "its handshake connection takes nothing")
  }
}
