import type { Json } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import { findSyntaxFault } from "./json-syntax"

/** A text that is not JSON, or not JSON that this server takes. */
export type JsonFailure =
  | { readonly kind: "body_not_json"; readonly message: string }
  | { readonly kind: "body_too_deep"; readonly message: string; readonly jsonDepthMax: number }

/** Integers beyond 2^53 in one text; no request has a use for more. */
export const exactIntegersMax = 65_536
/** Digits from which an integer may be beyond 2^53. */
const exactDigits = 16
/** Values in lists and objects of one text: a limit on memory, since 100 MB of `0,` become gigabytes of values. */
export const jsonValuesMax = 4_000_000

/**
 * JSON text to values, exactly: integers beyond 2^53 become `bigint`, numbers that are no finite double are refused,
 * and nesting is checked before the parser sees it. Duplicate keys: the last wins. `__proto__` is a key like others.
 *
 * Ordinary texts cost one scan beside `JSON.parse` (about 1.3 µs for 1 KB). A reviver sees the sources of numbers too,
 * but one long number hidden in 10 MB of zeros then costs 1.9 s instead of 0.15; so the long integers are put in
 * quotes before parsing, and found again after.
 */
export function parseJsonText(text: string, jsonDepthMax: number): Result<Json, JsonFailure> {
  const scan = scanJson(text, jsonDepthMax)
  if (scan.failure !== null) return err(scan.failure)
  if (scan.exact.length === 0) return parseOrExplain(text, text)
  // A client cannot know the mark, so no string of its own is taken for a number.
  const mark = `${crypto.randomUUID()}:`
  const parsed = parseOrExplain(quoteIntegers(text, scan.exact, mark), text)
  return parsed.ok ? ok(restoreIntegers(parsed.value, mark)) : parsed
}

function parseOrExplain(text: string, original: string): Result<Json, JsonFailure> {
  try {
    // JSON.parse gives exactly what Json describes.
    return ok(JSON.parse(text) as Json)
  } catch (cause) {
    const fault = findSyntaxFault(original)
    if (fault === null) return notJson(cause instanceof Error ? cause.message : String(cause))
    const place = `line ${fault.line} column ${fault.column} (char ${fault.offset})`
    return notJson(`the body is not valid JSON: expected ${fault.expected} at ${place}`)
  }
}

function notJson(message: string): Result<never, JsonFailure> {
  return err({ kind: "body_not_json", message })
}

interface Scan {
  readonly failure: JsonFailure | null
  /** Start and end of each integer that `number` may not hold exactly, one after the other. */
  readonly exact: readonly number[]
}

const nothingExact: readonly number[] = []

/** Reads structure and numbers, and skips strings. Does not check syntax: the parser does that. */
function scanJson(text: string, jsonDepthMax: number): Scan {
  let depth = 0
  let values = 0
  let exact: number[] | null = null
  const { length } = text
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      i = stringEnd(text, i)
    } else if (code === 0x2c) {
      values += 1
      if (values > jsonValuesMax) return { failure: tooManyValues(), exact: nothingExact }
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1
      if (depth > jsonDepthMax) return { failure: tooDeep(jsonDepthMax), exact: nothingExact }
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1
    } else if (code === 0x2d || isDigit(code)) {
      const end = numberEnd(text, i)
      if (end - i >= exactDigits || hasLongExponent(text, i, end)) {
        const number = text.slice(i, end)
        if (!isFiniteNumber(number)) return { failure: outOfRange(i), exact: nothingExact }
        if (needsExactness(number) && !isKey(text, end)) {
          exact ??= []
          if (exact.length >= 2 * exactIntegersMax) return { failure: tooManyExact(), exact: nothingExact }
          exact.push(i, end)
        }
      }
      i = end - 1
    }
  }
  return { failure: null, exact: exact ?? nothingExact }
}

/** The closing quote of the string that opens at `start`, or the end of the text. */
function stringEnd(text: string, start: number): number {
  let end = start
  for (;;) {
    end = text.indexOf('"', end + 1)
    if (end === -1) return text.length
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes += 1
    if (backslashes % 2 === 0) return end
  }
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** Behind the last character that may belong to a number. */
function numberEnd(text: string, start: number): number {
  let end = start + 1
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end)
    if (!isDigit(code) && code !== 0x2e && code !== 0x2d && code !== 0x2b && (code | 0x20) !== 0x65) break
  }
  return end
}

/** True when three or more characters stand behind an `e`: such a number may be beyond 1e308. */
function hasLongExponent(text: string, start: number, end: number): boolean {
  for (let i = start; i < end - 3; i++) if ((text.charCodeAt(i) | 0x20) === 0x65) return true
  return false
}

/** Numbers the parser would refuse count as finite: it shall say what is wrong with them. */
function isFiniteNumber(number: string): boolean {
  const value = Number(number)
  return Number.isNaN(value) || Number.isFinite(value)
}

/** Only what is an integer by JSON's grammar: quoting anything else could make a broken text valid. */
function needsExactness(number: string): boolean {
  return number.length >= exactDigits && /^-?[1-9]\d*$/.test(number) && !Number.isSafeInteger(Number(number))
}

/** A number where a key should stand is an error, which quotes would hide. */
function isKey(text: string, end: number): boolean {
  let i = end
  while (i < text.length && text.charCodeAt(i) <= 0x20) i += 1
  return text.charCodeAt(i) === 0x3a
}

function quoteIntegers(text: string, exact: readonly number[], mark: string): string {
  let quoted = ""
  let from = 0
  for (let i = 0; i < exact.length; i += 2) {
    quoted += `${text.slice(from, exact[i])}"${mark}${text.slice(exact[i], exact[i + 1])}"`
    from = exact[i + 1]!
  }
  return quoted + text.slice(from)
}

/** Replaces marked strings in place. Recursion is as deep as the nesting that the scan let through. */
function restoreIntegers(value: Json, mark: string): Json {
  if (typeof value === "string") return value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i]!
      if (typeof item === "string" || typeof item === "object") value[i] = restoreIntegers(item, mark)
    }
    return value
  }
  for (const key of Object.keys(value)) {
    const item = value[key]!
    if (typeof item !== "string" && typeof item !== "object") continue
    const restored = restoreIntegers(item, mark)
    if (restored === item) continue
    // Assigning would call the setter of `__proto__`.
    Object.defineProperty(value, key, { value: restored, writable: true, enumerable: true, configurable: true })
  }
  return value
}

function tooDeep(jsonDepthMax: number): JsonFailure {
  const message = `the body nests arrays and objects more than ${jsonDepthMax} deep`
  return { kind: "body_too_deep", message, jsonDepthMax }
}

function outOfRange(offset: number): JsonFailure {
  return { kind: "body_not_json", message: `the body holds a number out of range at char ${offset}` }
}

function tooManyValues(): JsonFailure {
  return { kind: "body_not_json", message: `the body holds more than ${jsonValuesMax} values` }
}

function tooManyExact(): JsonFailure {
  return { kind: "body_not_json", message: `the body holds more than ${exactIntegersMax} integers beyond 2^53` }
}
