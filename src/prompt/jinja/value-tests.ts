/** Jinja's tests. */
import { operate } from "./arithmetic"
import { type Comparison, contains, equal, ordered } from "./equality"
import type { Test } from "./filter"
import { isLower, isUpper } from "./letter-case"
import { text } from "./repr"
import { type Run, TemplateError } from "./run"
import { bind } from "./signature"
import {
  Callable,
  Dictionary,
  Float,
  isInteger,
  isNumber,
  isText,
  iterate,
  Lazy,
  Markup,
  Range,
  Special,
  Tuple,
  typeName,
  type Value,
} from "./value"

function bare(name: string, test: (value: Value, run: Run) => boolean): [string, Test] {
  return [
    name,
    (value, given, run) => {
      if (given.positional.length + given.named.size > 0) bind(name, [], given)
      return test(value, run)
    },
  ]
}

function against(
  name: string,
  test: (value: Value, other: Value, run: Run) => boolean,
  other = "/other",
): [string, Test] {
  return [name, (value, given, run) => test(value, bind(name, [[other]], given)[0], run)]
}

function comparison(operator: Comparison, ...names: readonly string[]): [string, Test][] {
  return [operator, ...names].map((name) =>
    against(name, (value, other, run) => {
      if (value === undefined || other === undefined) throw new TemplateError("a value is undefined")
      return ordered(operator, value, other, run)
    }),
  )
}

function remainder(value: Value, by: Value, run: Run): Value {
  if (value === undefined || by === undefined) throw new TemplateError("a value is undefined")
  return operate("%", value, by, run)
}

function isIterable(value: Value, run: Run): boolean {
  try {
    iterate(value, run)
    return true
  } catch {
    return false
  }
}

/** Has a length and can be indexed, in Python's eyes. */
function isSequence(value: Value): boolean {
  if (value === undefined || isText(value) || Array.isArray(value)) return true
  return value instanceof Tuple || value instanceof Dictionary || value instanceof Range
}

function isSame(value: Value, other: Value): boolean {
  // Each look at an undefined name makes another one.
  if (value === undefined) return false
  if (value instanceof Float && other instanceof Float) return Object.is(value.value, other.value)
  return value === other
}

/** What is looked up in a table of names: whatever could be a key. */
function nameIn(value: Value, run: Run): string {
  if (Array.isArray(value) || value instanceof Dictionary)
    throw new TemplateError(`unhashable type: '${typeName(value)}'`)
  return text(value, run)
}

const equalNames = ["==", "eq", "equalto"]
const unequalNames = ["!=", "ne"]

/** Their table; `isFilter` tells whether a filter has that name. */
export function testTable(isFilter: (name: string) => boolean): ReadonlyMap<string, Test> {
  const table: Map<string, Test> = new Map([
    bare("boolean", (value) => typeof value === "boolean"),
    bare(
      "callable",
      (value) =>
        value instanceof Callable ||
        (value instanceof Special && value.call !== Special.prototype.call) ||
        value === undefined,
    ),
    bare("defined", (value) => value !== undefined),
    against("divisibleby", (value, by, run) => equal(remainder(value, by, run), 0, run), "num"),
    bare("escaped", (value) => value instanceof Markup),
    bare("even", (value, run) => equal(remainder(value, 2, run), 0, run)),
    bare("false", (value) => value === false),
    bare("filter", (value, run) => isFilter(nameIn(value, run))),
    bare("float", (value) => value instanceof Float),
    against("in", (value, container, run) => contains(container, value, run), "seq"),
    bare("integer", isInteger),
    bare("iterable", (value, run) => value instanceof Lazy || isIterable(value, run)),
    bare("lower", (value, run) => isLower(text(value, run))),
    bare("mapping", (value) => value instanceof Dictionary),
    bare("none", (value) => value === null),
    bare("number", isNumber),
    bare("odd", (value, run) => equal(remainder(value, 2, run), 1, run)),
    against("sameas", isSame, "other"),
    bare("sequence", isSequence),
    bare("string", isText),
    bare("test", (value, run) => table.has(nameIn(value, run))),
    bare("true", (value) => value === true),
    bare("undefined", (value) => value === undefined),
    bare("upper", (value, run) => isUpper(text(value, run))),
    ...equalNames.map((name) => against(name, equal)),
    ...unequalNames.map((name) => against(name, (value, other, run) => !equal(value, other, run))),
    ...comparison("<", "lt", "lessthan"),
    ...comparison("<=", "le"),
    ...comparison(">", "gt", "greaterthan"),
    ...comparison(">=", "ge"),
  ])
  return table
}
