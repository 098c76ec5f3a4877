import { describe, expect, test } from "bun:test"
import { formatAddress, parseAddress } from "../../../src/engine/zmtp/address"

const tcp = (hostname: string, port: number) => ({ kind: "tcp", hostname, port })
const ipc = (path: string) => ({ kind: "ipc", path })
const longPath = `/${"p".repeat(106)}`

describe("an address", () => {
  const good: readonly (readonly [address: string, parsed: object, formatted: string])[] = [
    ["tcp://127.0.0.1:5555", tcp("127.0.0.1", 5555), "tcp://127.0.0.1:5555"],
    ["tcp://example.test:65535", tcp("example.test", 65_535), "tcp://example.test:65535"],
    ["tcp://127.0.0.1:0", tcp("127.0.0.1", 0), "tcp://127.0.0.1:0"],
    ["tcp://127.0.0.1:*", tcp("127.0.0.1", 0), "tcp://127.0.0.1:0"],
    ["tcp://*:5555", tcp("0.0.0.0", 5555), "tcp://0.0.0.0:5555"],
    ["tcp://[::1]:5555", tcp("::1", 5555), "tcp://[::1]:5555"],
    ["ipc:///run/engine.sock", ipc("/run/engine.sock"), "ipc:///run/engine.sock"],
    ["ipc://relative.sock", ipc("relative.sock"), "ipc://relative.sock"],
    ["ipc://@name", ipc("\0name"), "ipc://@name"],
    [`ipc://${longPath}`, ipc(longPath), `ipc://${longPath}`],
  ]
  for (const [address, parsed, formatted] of good) {
    test(`${address.slice(0, 40)} is read, and written as others dial it`, () => {
      const result = parseAddress(address, "listen")
      if (!result.ok) throw new Error(result.error.message)
      expect<object>(result.value).toEqual(parsed)
      expect(formatAddress(result.value)).toBe(formatted)
    })
  }

  const notHostPort = "tcp:// is followed by host:port, an IPv6 address in brackets"
  const bad: readonly (readonly [use: "listen" | "dial", address: string, why: string])[] = [
    ["listen", "", "an address begins with tcp:// or ipc://"],
    ["listen", "127.0.0.1:5555", "an address begins with tcp:// or ipc://"],
    ["listen", "inproc://x", "an address begins with tcp:// or ipc://"],
    ["listen", "tcp://", notHostPort],
    ["listen", "tcp://:5555", notHostPort],
    ["listen", "tcp://127.0.0.1", notHostPort],
    ["listen", "tcp://::1:5555", notHostPort],
    ["listen", "tcp://host:-1", notHostPort],
    ["listen", "tcp://host:5555/path", notHostPort],
    ["listen", "tcp://host:123456", notHostPort],
    ["listen", "tcp://host:65536", "a port is at most 65535"],
    ["listen", "ipc://", "the path is missing"],
    ["listen", "ipc://@", "the path is missing"],
    ["listen", "ipc:///a\0b", "a NUL in an address"],
    ["listen", `ipc://${longPath}p`, "a socket's path has at most 107 bytes"],
    ["dial", "tcp://127.0.0.1:0", "a port to dial is needed"],
    ["dial", "tcp://127.0.0.1:*", "a port to dial is needed"],
    ["dial", "tcp://*:5555", "a host to dial is needed"],
  ]
  for (const [use, address, why] of bad) {
    test(`${JSON.stringify(address.slice(0, 40))} to ${use} is refused: ${why}`, () => {
      expect(parseAddress(address, use)).toEqual({
        ok: false,
        error: { kind: "zmtp_address", message: `${JSON.stringify(address)}: ${why}` },
      })
    })
  }
})
