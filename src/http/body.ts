import type { Json } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import { type JsonFailure, parseJsonText } from "./json-text"
import { TimeLimit } from "./time-limit"

/** Why a body gave no value. `message` is for the client, except for `client_gone`, whom nobody hears. */
export type BodyFailure =
  | { readonly kind: "not_json_content_type"; readonly message: string }
  | { readonly kind: "body_too_large"; readonly message: string; readonly bodyBytesMax: number }
  | { readonly kind: "body_not_utf8"; readonly message: string }
  | { readonly kind: "body_too_slow"; readonly message: string }
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
export async function readJsonBody(request: Request, limits: BodyLimits): Promise<Result<Json, BodyFailure>> {
  const bytes = await readBodyBytes(request, limits)
  return bytes.ok ? parseBody(decodeStrictly(bytes.value), limits) : bytes
}

/** The bytes of a body that says it is JSON. */
export async function readBodyBytes(request: Request, limits: BodyLimits): Promise<Result<Uint8Array, BodyFailure>> {
  if (!isJson(request.headers.get("content-type"))) {
    return err({ kind: "not_json_content_type", message: "only the content type application/json is taken" })
  }
  return await inTime(readBytes(request, limits.bodyBytesMax), limits.bodySecondsMax)
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
async function inTime(
  reading: Promise<Result<Uint8Array, BodyFailure>>,
  secondsMax: number,
): Promise<Result<Uint8Array, BodyFailure>> {
  let limit = timeLimits.get(secondsMax)
  if (limit === undefined) {
    limit = new TimeLimit(secondsMax * 1_000)
    timeLimits.set(secondsMax, limit)
  }
  const read = await limit.within(reading)
  if (read !== null) return read
  return err({ kind: "body_too_slow", message: `the body did not come within ${secondsMax} seconds` })
}

async function readBytes(request: Request, bodyBytesMax: number): Promise<Result<Uint8Array, BodyFailure>> {
  const length = request.headers.get("content-length")
  if (length !== null && Number(length) > bodyBytesMax) return err(tooLarge(bodyBytesMax))
  try {
    // The server holds a client to its content-length, so only bodies without one need counting. A look at `body` alone
    // makes a stream of it, which most do not need.
    if (length !== null && Number(length) < filledBytesMin) return ok(await request.bytes())
    if (request.body === null) return ok(await request.bytes())
    if (length === null) return await countBytes(request.body, bodyBytesMax)
    return ok(await fillBytes(request.body, Number(length)))
  } catch (cause) {
    return err({ kind: "client_gone", message: `the body did not come in whole: ${String(cause)}` })
  }
}

/** From here on the runtime's own way, which gathers chunks and then joins them, costs memory that counts. */
const filledBytesMin = 4 * 1024 * 1024

/** Beside a long body its chunks look small to the collector, which would let all of them lie about till the end. */
const collectEveryBytes = 16 * 1024 * 1024

/** A body of known length, each chunk copied to its place as it comes. */
async function fillBytes(body: ReadableStream<Uint8Array>, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  let at = 0
  for await (const chunk of body) {
    bytes.set(chunk, at)
    const before = at
    at += chunk.length
    if (Math.floor(at / collectEveryBytes) > Math.floor(before / collectEveryBytes)) Bun.gc(false)
  }
  return at === length ? bytes : bytes.subarray(0, at)
}

async function countBytes(
  body: ReadableStream<Uint8Array>,
  bodyBytesMax: number,
): Promise<Result<Uint8Array, BodyFailure>> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    if (length > bodyBytesMax) return err(tooLarge(bodyBytesMax))
    chunks.push(chunk)
  }
  if (chunks.length === 1) return ok(chunks[0]!)
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return ok(bytes)
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
