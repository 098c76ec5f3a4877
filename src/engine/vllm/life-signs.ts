import type { ZmtpPeer } from "../zmtp/peer"

const noContext = new Uint8Array(0)
/** When this process itself stood still, the answer may be there already: it is read before the time counts as over. */
const lastChanceMs = 50

/** Asks connections whether anybody is at their other end. A PONG is a sign of the process, not of its engine loop. */
export class LifeSigns {
  private readonly waiting = new Map<ZmtpPeer, (lives: boolean) => void>()

  /** True when the peer answers within the time. */
  ask(peer: ZmtpPeer, withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      // Who asked before gets the same answer.
      const before = this.waiting.get(peer)
      let timer = setTimeout(() => {
        timer = setTimeout(() => this.settle(peer, false), lastChanceMs)
      }, withinMs)
      this.waiting.set(peer, (lives) => {
        clearTimeout(timer)
        before?.(lives)
        resolve(lives)
      })
      if (!peer.ping(noContext)) this.settle(peer, false)
    })
  }

  /** Whether a question to this peer is open. */
  asks(peer: ZmtpPeer): boolean {
    return this.waiting.has(peer)
  }

  /** The peer answered. */
  came(peer: ZmtpPeer): void {
    this.settle(peer, true)
  }

  /** The connection closed: it will not answer any more. */
  closed(peer: ZmtpPeer): void {
    this.settle(peer, false)
  }

  private settle(peer: ZmtpPeer, lives: boolean): void {
    const resolve = this.waiting.get(peer)
    this.waiting.delete(peer)
    resolve?.(lives)
  }
}
