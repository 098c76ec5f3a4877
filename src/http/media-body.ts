/**
 * JSON bodies with long texts that are only passed on (media in data URLs, tensors in base64): those stay bytes, where the
 * reader of an ordinary body would copy each of them three times.
 */
import { isAscii } from "node:buffer"
import type { Json } from "../ir/conversation"
import { HeldTexts } from "../ir/held-texts"
import { err, ok, type Result } from "../result"
import { type BodyFailure, type BodyLimits, decodeStrictly, parseBody, readBodyBytes, tooLarge } from "./body"
import { type BodyClaim, longBodyBytesMin } from "./body-budget"

/** Bounds on a body with media (config.ts, Limits). `bodyBytesMax` is for what is not held. */
export interface MediaBodyLimits extends BodyLimits {
  readonly mediaBodyBytesMax: number
}

/** A body, and what of it is held. */
export interface MediaBody {
  readonly value: Json
  /** null = nothing. */
  readonly held: HeldTexts | null
}

/** Where a value stands in a body: keys and indices from the top. */
export type BodyPath = readonly (string | number)[]

/** Texts below this are never held. */
const heldBytesMin = 64 * 1024

/**
 * Reads a body as `readJsonBody` does; short ones are read whole. Long texts where `passesOn` says so are held; all others
 * are in the value, and count as the rest of the body does.
 */
export async function readMediaBody(
  request: Request,
  limits: MediaBodyLimits,
  claim: BodyClaim,
  passesOn: (path: BodyPath) => boolean,
): Promise<Result<MediaBody, BodyFailure>> {
  const { mediaBodyBytesMax, bodyBytesMax } = limits
  const raised = { ...limits, bodyBytesMax: Math.max(mediaBodyBytesMax, bodyBytesMax) }
  const bytes = await readBodyBytes(request, raised, claim)
  if (!bytes.ok) return bytes
  if (bytes.value.length < longBodyBytesMin) {
    const value = parseBody(decodeStrictly(bytes.value), limits)
    return value.ok ? ok({ value: value.value, held: null }) : value
  }
  const held = new HeldTexts()
  const rest = cutTexts(bytes.value, held)
  if (rest.bytes > bodyBytesMax) return err(tooLarge(bodyBytesMax))
  const value = parseBody(rest.text, limits)
  if (!value.ok) return value
  if (held.count === 0) return ok({ value: value.value, held: null })
  const restorer = new Restorer(held, passesOn, bodyBytesMax - rest.bytes)
  const whole = restorer.restore(value.value, [])
  if (restorer.bytesLeft < 0) return err(tooLarge(bodyBytesMax))
  return ok({ value: whole, held: restorer.left === 0 ? null : held })
}

/** The body's text with stand-ins for its long texts (null = it is no UTF-8), and the bytes that are left of it. */
function cutTexts(bytes: Uint8Array, held: HeldTexts): { readonly text: string | null; readonly bytes: number } {
  const pieces: string[] = []
  let rest = bytes.length
  let from = 0
  const take = (end: number): boolean => {
    const piece = decodeStrictly(bytes.subarray(from, end))
    if (piece === null) return false
    pieces.push(piece)
    from = end
    return true
  }
  for (let open = bytes.indexOf(0x22); open !== -1; ) {
    const close = closingQuote(bytes, open)
    const inside = bytes.subarray(open + 1, close)
    if (inside.length >= heldBytesMin && close < bytes.length && !isKey(bytes, close + 1) && isPlain(inside)) {
      if (!take(open + 1)) return { text: null, bytes: rest }
      pieces.push(held.hold(inside))
      rest -= inside.length
      from = close
    }
    open = bytes.indexOf(0x22, close + 1)
  }
  return { text: take(bytes.length) ? pieces.join("") : null, bytes: rest }
}

/** The quote that closes the string that opens at `open`, or the end. */
function closingQuote(bytes: Uint8Array, open: number): number {
  for (let end = bytes.indexOf(0x22, open + 1); end !== -1; end = bytes.indexOf(0x22, end + 1)) {
    let backslashes = 0
    while (bytes[end - 1 - backslashes] === 0x5c) backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return bytes.length
}

/** Whether a colon follows, after blanks. */
function isKey(bytes: Uint8Array, behind: number): boolean {
  let at = behind
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1
  return bytes[at] === 0x3a
}

/** Printable ASCII without backslashes: what it says in JSON is what it is. */
function isPlain(bytes: Uint8Array): boolean {
  if (bytes.indexOf(0x5c) !== -1 || !isAscii(bytes)) return false
  // Four bytes at once, all below 0x80: a byte below 0x20 borrows into the high bit.
  const head = (4 - (bytes.byteOffset % 4)) % 4
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >> 2)
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (((word - 0x20202020) & ~word & 0x80808080) !== 0) return false
  }
  for (let i = 0; i < head; i++) if (bytes[i]! < 0x20) return false
  for (let i = head + 4 * words.length; i < bytes.length; i++) if (bytes[i]! < 0x20) return false
  return true
}

/** Puts back what was held where it is not only passed on. Values are changed in place: notes on them stay. */
class Restorer {
  /** Of the limit on what is not held. */
  bytesLeft: number
  /** Stand-ins that stay. */
  left = 0
  private readonly held: HeldTexts
  private readonly passesOn: (path: BodyPath) => boolean

  constructor(held: HeldTexts, passesOn: (path: BodyPath) => boolean, bytesLeft: number) {
    this.held = held
    this.passesOn = passesOn
    this.bytesLeft = bytesLeft
  }

  restore(value: Json, path: (string | number)[]): Json {
    if (typeof value === "string") return this.text(value, path)
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) {
        path.push(i)
        value[i] = this.restore(value[i]!, path)
        path.pop()
      }
      return value
    }
    for (const [key, each] of Object.entries(value)) {
      path.push(key)
      const restored = this.restore(each, path)
      // Defined, not assigned: a key may be `__proto__`.
      if (restored !== each) Object.defineProperty(value, key, { value: restored })
      path.pop()
    }
    return value
  }

  private text(value: string, path: BodyPath): string {
    const bytes = this.held.bytesOf(value)
    if (bytes === null) return value
    if (this.passesOn(path)) {
      this.left += 1
      return value
    }
    this.bytesLeft -= bytes.length
    return this.bytesLeft < 0 ? value : this.held.restore(value)
  }
}
