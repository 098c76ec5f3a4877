/** The first 64 bytes of a connection: signature, version, security mechanism. Source: RFC 37, "version negotiation". */
import { err, ok, type Result } from "../../result"

/** Length of a greeting. */
export const greetingBytes = 64

const versionAt = 10
const mechanismAt = 12
const mechanismBytes = 20
const ownMechanism = "NULL"

/** Our greeting: ZMTP 3.1, mechanism NULL. A new array. */
export function packGreeting(): Uint8Array {
  const greeting = new Uint8Array(greetingBytes)
  greeting[0] = 0xff
  greeting[9] = 0x7f
  greeting[versionAt] = 3
  greeting[versionAt + 1] = 1
  greeting.set(Buffer.from(ownMechanism, "latin1"), mechanismAt)
  return greeting
}

/**
 * Reads the first `received` bytes of a greeting as far as they go, so that a peer that speaks something else is seen
 * before it has sent 64 bytes. Gives the minor version to speak (0 or 1) once all are there, null before. Newer peers
 * speak our version; older ones are an error, as is any mechanism but NULL.
 */
export function unpackGreeting(bytes: Uint8Array, received: number): Result<number | null, string> {
  if (received > 0 && bytes[0] !== 0xff) return err("the peer does not speak ZMTP 3: its signature is wrong")
  if (received > 9 && bytes[9] !== 0x7f) return err("the peer does not speak ZMTP 3: its signature is wrong")
  const major = bytes[versionAt]!
  if (received > versionAt && major < 3) return err(`the peer speaks ZMTP major version ${major}, 3 is needed`)
  if (received < greetingBytes) return ok(null)
  const field = bytes.subarray(mechanismAt, mechanismAt + mechanismBytes)
  const mechanism = Buffer.from(field).toString("latin1").replace(/\0*$/, "")
  if (mechanism !== ownMechanism) {
    return err(`the peer wants the security mechanism ${JSON.stringify(mechanism)}, only ${ownMechanism} is spoken`)
  }
  return ok(major > 3 || bytes[versionAt + 1]! >= 1 ? 1 : 0)
}
