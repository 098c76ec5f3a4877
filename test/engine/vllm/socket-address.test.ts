import { describe, expect, test } from "bun:test"
import { hostOf, isWildcard, meetingPoint, portOf, tcpAddress } from "../../../src/engine/vllm/socket-address"
import type { ZmtpPeer } from "../../../src/engine/zmtp/peer"

test("addresses are written and read back, IPv6 in brackets", () => {
  const all = [
    ["127.0.0.1", "tcp://127.0.0.1:80"],
    ["::1", "tcp://[::1]:80"],
    ["gpu-7.example", "tcp://gpu-7.example:80"],
  ] as const
  for (const [host, address] of all) {
    expect([tcpAddress(host, 80), hostOf(address), portOf(address)]).toEqual([address, host, 80])
  }
  expect([hostOf("[::ffff:10.0.0.1]:5"), hostOf("[fe80::1]:65535"), hostOf("10.0.0.1:5")]).toEqual([
    "10.0.0.1",
    "fe80::1",
    "10.0.0.1",
  ])
  expect(["0.0.0.0", "::", "*", "127.0.0.1", "::1", "host"].map(isWildcard)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ])
})

describe("engines that step together meet", () => {
  // Only the two ends of the connection are looked at.
  const peer = (remote: string, local: string): ZmtpPeer => ({ remote, local }) as ZmtpPeer

  test("at free ports of this machine, all different", () => {
    for (const [remote, local] of [
      ["127.0.0.1:5", "127.0.0.1:6"],
      ["10.0.0.1:5", "10.0.0.1:6"],
      ["[::1]:5", "[::1]:6"],
    ] as const) {
      const met = meetingPoint(peer(remote, local), 4)
      const ports = [met.data_parallel_master_port, ...(met._data_parallel_master_port_list as number[])]
      expect(met).toMatchObject({ data_parallel_master_ip: hostOf(remote), data_parallel_size: 4 })
      expect([ports.length, new Set(ports).size]).toEqual([5, 5])
      expect(ports.every((port) => Number(port) > 0 && Number(port) < 65_536)).toBe(true)
    }
  })

  test("on another machine where vLLM does by default", () => {
    expect(meetingPoint(peer("10.0.0.2:5", "10.0.0.1:6"), 2)).toEqual({
      data_parallel_master_ip: "10.0.0.2",
      data_parallel_master_port: 29_500,
      _data_parallel_master_port_list: [29_501, 29_502, 29_503, 29_504],
      data_parallel_size: 2,
    })
  })
})
