import { describe, expect, test } from "bun:test"
import { ControlEncoder } from "../../../src/engine/vllm/control-messages"
import { readWire, type WireValue } from "../../support/wire-value"

const encoder = new ControlEncoder()
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

/** Values without their types. */
function plain(value: WireValue): unknown {
  if (value.type === "nil") return null
  if (value.type === "array") return value.value.map(plain)
  if (value.type !== "map") return value.value
  return Object.fromEntries(value.value.map(([key, each]) => [plain(key), plain(each)]))
}

describe("bodies beside ADD", () => {
  test("ABORT names sequences, as recorded", () => {
    expect(hex(encoder.abort(["ab-1"]))).toBe("91a461622d31")
    expect(plain(readWire(encoder.abort(Array(40).fill("x"))))).toEqual(Array(40).fill("x"))
  })

  test("UTILITY calls a method, as recorded", () => {
    expect(hex(encoder.utility(0, 1, "is_sleeping", []))).toBe("940001ab69735f736c656570696e6790")
    const call = encoder.utility(3, 2 ** 40, "add_lora", [["name", 1, "/path"], null, true, 0.5])
    expect(plain(readWire(call))).toEqual([3n, 2n ** 40n, "add_lora", [["name", 1n, "/path"], null, true, 0.5]])
  })

  test("START_DP_WAVE names the wave and who is left out", () => {
    expect(hex(encoder.startWave(5, null))).toBe("9205c0")
    expect(hex(encoder.startWave(300, 1))).toBe("92cd012c01")
  })

  test("INIT tells the addresses, as recorded", () => {
    const recorded =
      "82a961646472657373657385a6696e7075747391b57463703a2f2f3132372e302e302e313a3339333839a76f75747075747391b5" +
      "7463703a2f2f3132372e302e302e313a3336313537b1636f6f7264696e61746f725f696e707574c0b2636f6f7264696e61746f72" +
      "5f6f7574707574c0be66726f6e74656e645f73746174735f7075626c6973685f61646472657373c0af706172616c6c656c5f636f" +
      "6e66696780"
    const addresses = {
      inputs: ["tcp://127.0.0.1:39389"],
      outputs: ["tcp://127.0.0.1:36157"],
      coordinatorInput: null,
      coordinatorOutput: null,
      frontendStatsPublish: null,
    }
    expect(hex(encoder.init(addresses, {}))).toBe(recorded)
    const coordinated = { ...addresses, coordinatorInput: "tcp://a:1", coordinatorOutput: "tcp://a:2" }
    expect(plain(readWire(encoder.init(coordinated, { data_parallel_size: 2 })))).toEqual({
      addresses: {
        inputs: ["tcp://127.0.0.1:39389"],
        outputs: ["tcp://127.0.0.1:36157"],
        coordinator_input: "tcp://a:1",
        coordinator_output: "tcp://a:2",
        frontend_stats_publish_address: null,
      },
      parallel_config: { data_parallel_size: 2n },
    })
  })

  test("any value, for a coordinator's counts", () => {
    expect(plain(readWire(encoder.value([[[1, 2, 0.5]], 3, true])))).toEqual([[[1n, 2n, 0.5]], 3n, true])
  })
})
