import { expect, test } from "bun:test"
import { LifeSigns } from "../../../src/engine/vllm/life-signs"
import type { ZmtpPeer } from "../../../src/engine/zmtp/peer"

/** A connection that can only be asked. */
function peerThat(takesPing: boolean): ZmtpPeer {
  // Nothing else of a peer is used.
  return { ping: () => takesPing } as unknown as ZmtpPeer
}

test("whoever asked the same connection gets the same answer, and other connections are not meant", async () => {
  const lives = new LifeSigns()
  const [one, other] = [peerThat(true), peerThat(true)]
  const answers = [lives.ask(one, 60_000), lives.ask(one, 60_000)]
  const otherAnswer = lives.ask(other, 60_000)
  expect([lives.asks(one), lives.asks(other)]).toEqual([true, true])
  lives.came(one)
  lives.came(one)
  expect(await Promise.all(answers)).toEqual([true, true])
  expect([lives.asks(one), lives.asks(other)]).toEqual([false, true])
  lives.closed(other)
  expect(await otherAnswer).toBe(false)
  lives.came(other)
})

test("no answer in time, and a connection that takes no PING, are no signs of life", async () => {
  const lives = new LifeSigns()
  expect(await lives.ask(peerThat(false), 60_000)).toBe(false)
  const silent = peerThat(true)
  expect(await lives.ask(silent, 5)).toBe(false)
  expect(lives.asks(silent)).toBe(false)
})
