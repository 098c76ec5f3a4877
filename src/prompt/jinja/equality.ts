/** Python's `==`, order and `in`. */
import { type Run, TemplateError } from "./run"
import {
  Dictionary,
  Float,
  isNumber,
  isText,
  iterate,
  Lazy,
  type NumberValue,
  plainText,
  Range,
  sizeOf,
  Tuple,
  typeName,
  type Value,
  View,
} from "./value"

/** Python's `==`. */
export function equal(a: Value, b: Value, run: Run): boolean {
  if (typeof a === "string" && typeof b === "string") {
    if (a.length === b.length) run.work(a.length)
    return a === b
  }
  if (a === b) return true
  if (isNumber(a)) return isNumber(b) && compareNumbers(a, b) === 0
  if (isText(a)) {
    if (!isText(b)) return false
    run.work(Math.min(sizeOf(a), sizeOf(b)))
    return plainText(a) === plainText(b)
  }
  // Lists that share their parts can be far larger than they look: the rest counts as work.
  run.step()
  if (Array.isArray(a)) return Array.isArray(b) && equalItems(a, b, run)
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(a.items, b.items, run)
  if (a instanceof Dictionary) return b instanceof Dictionary && equalEntries(a, b, run)
  if (a instanceof Range) return b instanceof Range && equalItems(a.spelledOut(), b.spelledOut(), run)
  if (!(a instanceof View) || !(b instanceof View) || a.size !== b.size) return false
  // Views of keys and of pairs compare as sets; views of values only with themselves.
  if (a.kind === "values" || b.kind === "values") return false
  const [left, right] = [a.spelledOut(), b.spelledOut()]
  return left.every((item) => {
    run.work(right.length)
    return right.some((other) => equal(item, other, run))
  })
}

function equalItems(a: readonly Value[], b: readonly Value[], run: Run): boolean {
  if (a.length !== b.length) return false
  run.work(a.length)
  return a.every((item, i) => equal(item, b[i], run))
}

function equalEntries(a: Dictionary, b: Dictionary, run: Run): boolean {
  if (a.size !== b.size) return false
  return a.entries().every(([key, value]) => b.has(key) && equal(value, b.get(key), run))
}

/** Below, at or above zero; NaN when one of them is. A big integer and a float compare exactly. */
function compareNumbers(a: NumberValue, b: NumberValue): number {
  const left = a instanceof Float ? a.value : typeof a === "boolean" ? Number(a) : a
  const right = b instanceof Float ? b.value : typeof b === "boolean" ? Number(b) : b
  return left < right ? -1 : left > right ? 1 : Number.isNaN(left) || Number.isNaN(right) ? Number.NaN : 0
}

/** Python's four comparisons by order. */
export type Comparison = "<" | "<=" | ">" | ">="

/** `a < b` and its like; kinds that have no order are an error in Python's words. */
export function ordered(operator: Comparison, a: Value, b: Value, run: Run): boolean {
  const order = compare(a, b, run, operator)
  if (operator === "<") return order < 0
  if (operator === ">") return order > 0
  return operator === "<=" ? order <= 0 : order >= 0
}

/** The order of two values in sign, NaN where one is no number at all. */
export function compare(a: Value, b: Value, run: Run, operator: Comparison = "<"): number {
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b)
  if (isText(a) && isText(b)) {
    run.work(Math.min(sizeOf(a), sizeOf(b)))
    return compareTexts(plainText(a), plainText(b))
  }
  const lists = Array.isArray(a) && Array.isArray(b) ? ([a, b] as const) : null
  const tuples = a instanceof Tuple && b instanceof Tuple ? ([a.items, b.items] as const) : null
  const [left, right] = lists ?? tuples ?? []
  if (left === undefined || right === undefined) {
    throw new TemplateError(`'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`)
  }
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (!equal(left[i], right[i], run)) return compare(left[i], right[i], run, operator)
  }
  return left.length - right.length
}

/** Python's order of texts: by code point, not by UTF-16 unit. */
export function compareTexts(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length)
  for (let i = 0; i < shorter; i++) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left === right) continue
    // Surrogates stand for code points above all other units.
    const leftHigh = left >= 0xd800 && left <= 0xdfff
    const rightHigh = right >= 0xd800 && right <= 0xdfff
    if (leftHigh !== rightHigh) return leftHigh ? 1 : -1
    return left - right
  }
  return a.length - b.length
}

/** Python's `in`. */
export function contains(container: Value, item: Value, run: Run): boolean {
  if (isText(container)) {
    if (isText(item)) {
      run.search(plainText(container), plainText(item))
      return plainText(container).includes(plainText(item))
    }
    throw new TemplateError(`'in <string>' requires string as left operand, not ${typeName(item)}`)
  }
  if (container instanceof Dictionary) return container.has(item)
  if (container instanceof View && container.kind === "keys") return container.hasKey(item)
  if (container instanceof Range && !isNumber(item)) return false
  // A generator is read up to the item and no further.
  const items = iterated(container, run)
  if (!(items instanceof Lazy)) {
    run.work(items.length)
    return items.some((each) => equal(each, item, run))
  }
  for (let next = items.items.next(); next.done !== true; next = items.items.next()) {
    run.step()
    if (equal(next.value, item, run)) return true
  }
  return false
}

function iterated(container: Value, run: Run): readonly Value[] | Lazy {
  try {
    return iterate(container, run)
  } catch {
    throw new TemplateError(`argument of type '${typeName(container)}' is not iterable`)
  }
}
