/** Addresses as ZeroMQ writes them: `tcp://host:port`, `ipc:///path`, `ipc://@abstract`. */
import { err, ok, type Result } from "../../result"
import type { ZmtpFailure } from "./peer"

/** Where to listen or dial. `path` begins with NUL for a name in Linux's abstract namespace. */
export type ZmtpAddress =
  | { readonly kind: "tcp"; readonly hostname: string; readonly port: number }
  | { readonly kind: "ipc"; readonly path: string }

/** Bytes of a socket's path, without the NUL behind it. Source: unix(7). */
const pathBytesMax = 107

/**
 * Reads an address. To listen, the host may be `*` (every IPv4 address) and the port `0` or `*` (any that is free); to
 * dial, both must say where to.
 */
export function parseAddress(address: string, use: "listen" | "dial"): Result<ZmtpAddress, ZmtpFailure> {
  const fail = (why: string) => err({ kind: "zmtp_address" as const, message: `${JSON.stringify(address)}: ${why}` })
  const { scheme, rest } = /^(?<scheme>tcp|ipc):\/\/(?<rest>.*)$/s.exec(address)?.groups ?? {}
  if (rest === undefined) return fail("an address begins with tcp:// or ipc://")
  if (rest.includes("\0")) return fail("a NUL in an address")
  if (scheme === "ipc") {
    if (rest === "" || rest === "@") return fail("the path is missing")
    if (Buffer.byteLength(rest) > pathBytesMax) return fail(`a socket's path has at most ${pathBytesMax} bytes`)
    return ok({ kind: "ipc", path: rest.startsWith("@") ? `\0${rest.slice(1)}` : rest })
  }
  const { bracketed, plain, number } =
    /^(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^:/[\]]+)):(?<number>\d{1,5}|\*)$/.exec(rest)?.groups ?? {}
  const host = bracketed ?? plain
  if (host === undefined) return fail("tcp:// is followed by host:port, an IPv6 address in brackets")
  const port = number === "*" ? 0 : Number(number)
  if (port > 65_535) return fail("a port is at most 65535")
  if (use === "dial" && port === 0) return fail("a port to dial is needed")
  if (use === "dial" && host === "*") return fail("a host to dial is needed")
  return ok({ kind: "tcp", hostname: host === "*" ? "0.0.0.0" : host, port })
}

/** Writes an address as others dial it. */
export function formatAddress(address: ZmtpAddress): string {
  if (address.kind === "ipc") return `ipc://${address.path.replace(/^\0/, "@")}`
  return `tcp://${address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname}:${address.port}`
}
