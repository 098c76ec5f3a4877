import { describe, expect, test } from "bun:test"
import type { EngineRestart } from "../../../src/config"
import { RestartRow } from "../../../src/engine/process/restart-row"

const config: EngineRestart = {
  policy: "on-failure",
  delayMs: 1_000,
  delayMsMax: 6_000,
  restartsMax: 5,
  stableMs: 60_000,
}
const failure = { status: 1, signal: null }
const success = { status: 0, signal: null }
const killed = { status: null, signal: "SIGKILL" }

describe("starts again in a row", () => {
  test("wait twice as long each time up to the longest wait, and then there is none", () => {
    const row = new RestartRow(config)
    const waits = Array.from({ length: 6 }, () => row.next(failure, 100, false))
    expect(waits).toEqual([
      { kind: "restart", delayMs: 1_000, restart: 1 },
      { kind: "restart", delayMs: 2_000, restart: 2 },
      { kind: "restart", delayMs: 4_000, restart: 3 },
      { kind: "restart", delayMs: 6_000, restart: 4 },
      { kind: "restart", delayMs: 6_000, restart: 5 },
      { kind: "gave_up", why: "--engine-restart-limit is 5" },
    ])
  })

  test("begin anew after a run that was long enough", () => {
    const row = new RestartRow({ ...config, restartsMax: 1 })
    const runs = [59_999, 60_000, 59_999].map((ranMs) => row.next(failure, ranMs, false))
    expect(runs).toEqual([
      { kind: "restart", delayMs: 1_000, restart: 1 },
      { kind: "restart", delayMs: 1_000, restart: 1 },
      { kind: "gave_up", why: "--engine-restart-limit is 1" },
    ])
  })
})

describe("the policy", () => {
  const kinds = (policy: EngineRestart["policy"]) =>
    [failure, killed, success, { status: null, signal: null }].map(
      (exit) => new RestartRow({ ...config, policy }).next(exit, 1, false).kind,
    )

  test("on-failure leaves a success alone, unless we ended the process to have it started again", () => {
    expect(kinds("on-failure")).toEqual(["restart", "restart", "gave_up", "restart"])
    expect(new RestartRow(config).next(success, 1, true).kind).toBe("restart")
  })

  test("always starts again after everything, never after nothing", () => {
    expect(kinds("always")).toEqual(["restart", "restart", "restart", "restart"])
    expect(kinds("never")).toEqual(["gave_up", "gave_up", "gave_up", "gave_up"])
    expect(new RestartRow({ ...config, policy: "never" }).next(success, 1, true)).toEqual({
      kind: "gave_up",
      why: "--engine-restart is never",
    })
  })
})
