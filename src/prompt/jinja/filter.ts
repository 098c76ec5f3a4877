import { itemOf } from "./attribute"
import type { Run } from "./run"
import { bind, type Parameter } from "./signature"
import { type Arguments, isText, plainText, type Value } from "./value"

/** A filter: the value before the bar and the arguments behind the name. */
export type Filter = (value: Value, given: Arguments, run: Run) => Value

/** A test: the value before `is` and the arguments behind the name. */
export type Test = (value: Value, given: Arguments, run: Run) => boolean

/** Filters and tests by name, for the filters that take the name of another. They throw for unknown names. */
export interface Names {
  readonly filter: (name: string) => Filter
  readonly test: (name: string) => Test
}

/** A filter with parameters, as an entry of a table. */
export function filterEntry(
  name: string,
  parameters: readonly Parameter[],
  apply: (value: Value, args: readonly Value[], run: Run) => Value,
): [string, Filter] {
  return [name, (value, given, run) => apply(value, bind(name, parameters, given), run)]
}

/** Reads a path such as `function.name` or `0` from a value, part by part; `fallback` null = none. */
export function pathReader(path: Value, run: Run, fallback: Value = null): (value: Value) => Value {
  const parts = pathParts(path)
  return (value) => {
    let current = value
    for (const part of parts) {
      current = itemOf(current, part, run)
      if (current === undefined && fallback !== null) current = fallback
    }
    return current
  }
}

function pathParts(path: Value): Value[] {
  if (path === null) return []
  if (!isText(path)) return [path]
  return plainText(path)
    .split(".")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part))
}

/** Texts in lower case, everything else as it is. */
export function ignoreCase(value: Value): Value {
  return isText(value) ? plainText(value).toLowerCase() : value
}
