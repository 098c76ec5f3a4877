import type { ZmtpHandler, ZmtpPeer } from "../../../src/engine/zmtp/peer"

/** Keeps what a listener or dialer told, and copies of all frames as they were during the call. */
export class RecordingHandler implements ZmtpHandler {
  /** One line an event, in order; messages are `message` and the lengths of their frames. */
  readonly events: string[] = []
  readonly peers: ZmtpPeer[] = []
  readonly messages: Uint8Array[][] = []
  /** The very frames, to see whether they stay as they were. */
  readonly held: Uint8Array[][] = []
  readonly faults: string[] = []
  /** `bufferedBytes` at each `drained`; no events, since the kernel decides how many there are. */
  readonly drainedBytes: number[] = []
  /** Called inside each message, after it was kept. */
  onMessage: (peer: ZmtpPeer, frames: readonly Uint8Array[]) => void = () => {}
  onReady: (peer: ZmtpPeer) => void = () => {}
  onClosed: (peer: ZmtpPeer) => void = () => {}
  private waiting: { readonly condition: () => boolean; readonly resolve: () => void }[] = []

  /** Resolves as soon as the condition holds; looks again after every event. */
  until(condition: () => boolean): Promise<void> {
    if (condition()) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push({ condition, resolve }))
  }

  /** Waits for one peer to be ready; gives the last one that is. */
  async peer(): Promise<ZmtpPeer> {
    await this.until(() => this.peers.length > 0)
    return this.peers.at(-1)!
  }

  ready(peer: ZmtpPeer): void {
    this.peers.push(peer)
    this.tell(`ready ${peer.socketType} ${Buffer.from(peer.identity).toString("hex")}`.trimEnd())
    this.onReady(peer)
  }

  message(peer: ZmtpPeer, frames: readonly Uint8Array[]): void {
    this.messages.push(frames.map((frame) => frame.slice()))
    this.held.push([...frames])
    this.tell(`message ${frames.map((frame) => frame.length).join(" ")}`)
    this.onMessage(peer, frames)
  }

  closed(peer: ZmtpPeer, reason: string): void {
    this.tell(`closed: ${reason}`)
    this.onClosed(peer)
  }

  subscribed(_peer: ZmtpPeer, topic: Uint8Array, on: boolean): void {
    this.tell(`${on ? "subscribed" : "cancelled"} ${Buffer.from(topic).toString()}`.trimEnd())
  }

  pong(_peer: ZmtpPeer, context: Uint8Array): void {
    this.tell(`pong ${Buffer.from(context).toString()}`)
  }

  drained(peer: ZmtpPeer): void {
    this.drainedBytes.push(peer.bufferedBytes)
    this.look()
  }

  fault(reason: string): void {
    this.faults.push(reason)
    this.tell(`fault: ${reason.replace(/^(127\.0\.0\.1:\d+|ipc:\/\/\S+): /, "")}`)
  }

  private tell(event: string): void {
    this.events.push(event)
    this.look()
  }

  private look(): void {
    const held = this.waiting.filter(({ condition }) => condition())
    this.waiting = this.waiting.filter((each) => !held.includes(each))
    for (const { resolve } of held) resolve()
  }
}
