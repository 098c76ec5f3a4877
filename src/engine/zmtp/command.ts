/**
 * Commands: frames that talk about the connection. A body is the name's length, the name, and what the command
 * carries. Source: RFC 37, "commands" and "the NULL security mechanism"; RFC 2.3 of its heartbeats.
 */
import { err, ok, type Result } from "../../result"

/** A command as it came: its name and the bytes behind it, a view into the frame. */
export interface Command {
  readonly name: string
  readonly rest: Uint8Array
}

/** What READY says. Names of properties that we do not know are skipped. */
export interface ReadyProperties {
  readonly socketType: string
  readonly identity: Uint8Array
}

/** Longest context of PING and PONG. */
export const pingContextBytesMax = 16
/** Longest identity. */
export const identityBytesMax = 255

const none = new Uint8Array(0)

/** A command's body, in a new array. Names are ASCII. */
export function packCommand(name: string, ...parts: readonly Uint8Array[]): Uint8Array {
  let length = 1 + name.length
  for (const part of parts) length += part.length
  const body = new Uint8Array(length)
  body[0] = name.length
  body.set(Buffer.from(name, "latin1"), 1)
  let at = 1 + name.length
  for (const part of parts) {
    body.set(part, at)
    at += part.length
  }
  return body
}

/** Splits a command's body. */
export function unpackCommand(body: Uint8Array): Result<Command, string> {
  const nameEnd = 1 + (body[0] ?? 0)
  if (nameEnd < 2 || nameEnd > body.length) return err("a command without a name")
  return ok({ name: ascii(body.subarray(1, nameEnd)), rest: body.subarray(nameEnd) })
}

/** READY with our type. The identity is left out when it is null: only DEALER and ROUTER have one. */
export function packReady(socketType: string, identity: Uint8Array | null): Uint8Array {
  const properties = [property("Socket-Type", Buffer.from(socketType, "latin1"))]
  if (identity !== null) properties.push(property("Identity", identity))
  return packCommand("READY", ...properties)
}

function property(name: string, value: Uint8Array): Uint8Array {
  const packed = new Uint8Array(1 + name.length + 4 + value.length)
  packed[0] = name.length
  packed.set(Buffer.from(name, "latin1"), 1)
  new DataView(packed.buffer).setUint32(1 + name.length, value.length)
  packed.set(value, 1 + name.length + 4)
  return packed
}

/** Reads what stands behind READY. Property names are compared without case, as the RFC asks. */
export function unpackReady(rest: Uint8Array): Result<ReadyProperties, string> {
  const view = new DataView(rest.buffer, rest.byteOffset, rest.length)
  let socketType: string | null = null
  let identity = none
  let at = 0
  while (at < rest.length) {
    const valueLengthAt = at + 1 + rest[at]!
    if (valueLengthAt === at + 1 || valueLengthAt + 4 > rest.length) return err("READY: a property is cut off")
    const name = ascii(rest.subarray(at + 1, valueLengthAt)).toLowerCase()
    const valueAt = valueLengthAt + 4
    const end = valueAt + view.getUint32(valueLengthAt)
    if (end > rest.length) return err("READY: a property is cut off")
    if (name === "socket-type") socketType = ascii(rest.subarray(valueAt, end))
    if (name === "identity") identity = rest.slice(valueAt, end)
    at = end
  }
  if (socketType === null) return err("READY: no Socket-Type")
  if (identity.length > identityBytesMax) return err("READY: the identity is longer than 255 bytes")
  return ok({ socketType, identity })
}

/** ERROR with a reason of at most 255 bytes; a longer one is cut. */
export function packError(reason: string): Uint8Array {
  const text = Buffer.from(reason, "latin1").subarray(0, 255)
  return packCommand("ERROR", Uint8Array.of(text.length), text)
}

/** The reason that stands behind ERROR. */
export function unpackError(rest: Uint8Array): string {
  return ascii(rest.subarray(1, 1 + (rest[0] ?? 0)))
}

function ascii(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
}
