import type { Json } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import { type BodyClaim, longBodyBytesMin } from "./body-budget"
import { GrowingBytes } from "./growing-bytes"
import { type JsonFailure, parseJsonText } from "./json-text"
import { TimeLimit } from "./time-limit"

/** Why a body gave no value. `message` is for the client, except for `client_gone`, whom nobody hears. */
export type BodyFailure =
  | { readonly kind: "not_json_content_type"; readonly message: string }
  | { readonly kind: "body_too_large"; readonly message: string; readonly bodyBytesMax: number }
  | { readonly kind: "body_not_utf8"; readonly message: string }
  | { readonly kind: "body_too_slow"; readonly message: string }
  /** Bodies of other requests take all the room that there is (body-budget.ts). */
  | { readonly kind: "bodies_too_many"; readonly message: string }
  | { readonly kind: "client_gone"; readonly message: string }
  | JsonFailure

/** Bounds on a body (config.ts, Limits). */
export interface BodyLimits {
  readonly bodyBytesMax: number
  readonly jsonDepthMax: number
  /** From the headers to the last byte. */
  readonly bodySecondsMax: number
}

/** A byte order mark in front is dropped, as the Python front end's JSON reader does. */
const strictUtf8 = new TextDecoder("utf-8", { fatal: true })

/**
 * Reads a request's JSON body exactly (json-text.ts). Only `application/json` is taken, with any parameters (CHAT
 * 8); bytes are counted while they come, so a body without a length is bounded too. The server's own limit must be
 * higher than `bodyBytesMax`: it breaks the connection instead of answering.
 */
export async function readJsonBody(
  request: Request,
  limits: BodyLimits,
  claim: BodyClaim,
): Promise<Result<Json, BodyFailure>> {
  const bytes = await readBodyBytes(request, limits, claim)
  return bytes.ok ? parseBody(decodeStrictly(bytes.value), limits) : bytes
}

/** The bytes of a body that says it is JSON. What `claim` holds of them afterwards is the caller's to release. */
export async function readBodyBytes(
  request: Request,
  limits: BodyLimits,
  claim: BodyClaim,
): Promise<Result<Uint8Array, BodyFailure>> {
  if (!isJson(request.headers.get("content-type"))) {
    return err({ kind: "not_json_content_type", message: "only the content type application/json is taken" })
  }
  return await inTime(new BodyReading(request, limits.bodyBytesMax, claim), limits.bodySecondsMax)
}

/** A body's text, null = it was no UTF-8, as its value. */
export function parseBody(text: string | null, limits: BodyLimits): Result<Json, BodyFailure> {
  if (text === null) return err({ kind: "body_not_utf8", message: "the body is not valid UTF-8" })
  if (text === "") return err({ kind: "body_not_json", message: "the body is empty; a JSON object is expected" })
  return parseJsonText(text, limits.jsonDepthMax)
}

function isJson(contentType: string | null): boolean {
  if (contentType === null) return false
  const end = contentType.indexOf(";")
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase() === "application/json"
}

/** By their seconds: a process has one or two. */
const timeLimits = new Map<number, TimeLimit>()

/** A client that sends a byte now and then keeps its connection alive, but not for ever. */
async function inTime(reading: BodyReading, secondsMax: number): Promise<Result<Uint8Array, BodyFailure>> {
  let limit = timeLimits.get(secondsMax)
  if (limit === undefined) {
    limit = new TimeLimit(secondsMax * 1_000)
    timeLimits.set(secondsMax, limit)
  }
  const read = await limit.within(reading.bytes())
  if (read !== null) return read
  reading.stop()
  return err({ kind: "body_too_slow", message: `the body did not come within ${secondsMax} seconds` })
}

/** One body on its way in. */
class BodyReading {
  private readonly request: Request
  private readonly bytesMax: number
  private readonly claim: BodyClaim
  private reader: ReadableStreamDefaultReader<Uint8Array> | null = null
  private isStopped = false

  constructor(request: Request, bodyBytesMax: number, claim: BodyClaim) {
    this.request = request
    // What could never fit beside nothing is too large, and not worth another try.
    this.bytesMax = Math.min(bodyBytesMax, Math.max(claim.bytesMax, longBodyBytesMin - 1))
    this.claim = claim
  }

  /** All of it. A body that is refused, or comes too late, is read no further. */
  async bytes(): Promise<Result<Uint8Array, BodyFailure>> {
    const header = this.request.headers.get("content-length")
    const length = header === null ? null : Number(header)
    const fault = length === null ? null : this.fault(length)
    if (fault !== null) return err(fault)
    try {
      // The server holds a client to its content-length, so only bodies without one need counting. A look at `body`
      // alone makes a stream of it, which most do not need.
      if (length !== null && length < longBodyBytesMin) return ok(await this.request.bytes())
      if (this.request.body === null) return ok(await this.request.bytes())
      this.reader = this.request.body.getReader()
      return await this.gather(this.reader, new GrowingBytes(length, this.bytesMax))
    } catch (cause) {
      return err(gone(String(cause)))
    }
  }

  /** Nobody waits for the rest. */
  stop(): void {
    this.isStopped = true
    // A client that went as well is no news here.
    this.reader?.cancel().catch(() => {})
  }

  private async gather(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    gathered: GrowingBytes,
  ): Promise<Result<Uint8Array, BodyFailure>> {
    for (;;) {
      const { done, value } = await reader.read()
      if (done || this.isStopped) break
      const fault = this.fault(gathered.capacityFor(value.length))
      if (fault !== null) {
        this.stop()
        return err(fault)
      }
      gathered.push(value)
    }
    return gathered.isWhole ? ok(gathered.take()) : err(gone("it ended early"))
  }

  /** Why there is no room for so many bytes. */
  private fault(bytes: number): BodyFailure | null {
    if (bytes > this.bytesMax) return tooLarge(this.bytesMax)
    if (this.claim.raise(bytes)) return null
    return { kind: "bodies_too_many", message: "Other requests' bodies leave no room for this one; please try again." }
  }
}

function gone(reason: string): BodyFailure {
  return { kind: "client_gone", message: `the body did not come in whole: ${reason}` }
}

/** A body of more bytes than are taken. */
export function tooLarge(bodyBytesMax: number): BodyFailure {
  return { kind: "body_too_large", message: `the body is larger than ${bodyBytesMax} bytes`, bodyBytesMax }
}

/** UTF-8 as text; null for anything else. */
export function decodeStrictly(bytes: Uint8Array): string | null {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return null
  }
}
