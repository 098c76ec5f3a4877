import type { Json } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import { isIndexKey, readExactJson, stringEnd } from "./json-exact"
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
 * What values cannot say (14.0, the order of keys like "2") is noted on them (ir/json-spelling.ts).
 *
 * Ordinary texts cost one scan beside `JSON.parse` (about 1.3 µs for 1 KB). Those with something to keep are checked by
 * the parser and then read again (json-exact.ts). A reviver sees the sources of numbers too, but one long number hidden
 * in 10 MB of zeros then costs 1.9 s.
 */
export function parseJsonText(text: string, jsonDepthMax: number): Result<Json, JsonFailure> {
  const scan = scanJson(text, jsonDepthMax)
  if (scan.failure !== null) return err(scan.failure)
  const parsed = parseOrExplain(text)
  return parsed.ok && scan.needsExactness ? ok(readExactJson(text)) : parsed
}

function parseOrExplain(text: string): Result<Json, JsonFailure> {
  try {
    // JSON.parse gives exactly what Json describes.
    return ok(JSON.parse(text) as Json)
  } catch (cause) {
    const fault = findSyntaxFault(text)
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
  /** Whether values alone would lose something. */
  readonly needsExactness: boolean
}

function refused(failure: JsonFailure): Scan {
  return { failure, needsExactness: false }
}

/** Reads structure and numbers, and skips strings. Does not check syntax: the parser does that. */
function scanJson(text: string, jsonDepthMax: number): Scan {
  let depth = 0
  let values = 0
  let longIntegers = 0
  let needsExactness = false
  const { length } = text
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      const end = stringEnd(text, i)
      if (!needsExactness && isDigit(text.charCodeAt(i + 1))) needsExactness = isIndexKey(text.slice(i + 1, end))
      i = end
    } else if (code === 0x2c) {
      values += 1
      if (values > jsonValuesMax) return refused(tooManyValues())
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1
      if (depth > jsonDepthMax) return refused(tooDeep(jsonDepthMax))
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1
    } else if (code === 0x2d || isDigit(code)) {
      const end = numberEnd(text, i)
      if (end - i >= exactDigits || hasLongExponent(text, i, end)) {
        const number = text.slice(i, end)
        if (!isFiniteNumber(number)) return refused(outOfRange(i))
        if (isLongInteger(number)) {
          needsExactness = true
          longIntegers += 1
          if (longIntegers > exactIntegersMax) return refused(tooManyExact())
        }
      }
      needsExactness ||= isSpelledFloat(text, i, end)
      i = end - 1
    }
  }
  return { failure: null, needsExactness }
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

function isLongInteger(number: string): boolean {
  return number.length >= exactDigits && /^-?[1-9]\d*$/.test(number) && !Number.isSafeInteger(Number(number))
}

/** True for what may be an integer written as a float: nothing but zeros behind the point, or an exponent. */
function isSpelledFloat(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i)
    if ((code | 0x20) === 0x65) return true
    if (code !== 0x2e) continue
    let last = i + 1
    while (text.charCodeAt(last) === 0x30) last += 1
    return last === end || (text.charCodeAt(last) | 0x20) === 0x65 || hasExponent(text, last, end)
  }
  return false
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if ((text.charCodeAt(i) | 0x20) === 0x65) return true
  return false
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
