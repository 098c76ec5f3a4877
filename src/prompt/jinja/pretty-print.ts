import { compare, compareTexts } from "./equality"
import { repr } from "./repr"
import type { Run } from "./run"
import { Dictionary, Tuple, typeName, type Value } from "./value"

/** Columns that Python's `pprint` fills. */
const width = 80

/**
 * Python's `pprint.pformat`: keys in order, one line where it fits, else an item a line. Long texts are not broken,
 * which Python does.
 */
export function prettyPrinted(value: Value, run: Run): string {
  return new PrettyPrinter(run).print(value, 0, 0)
}

class PrettyPrinter {
  private readonly run: Run

  constructor(run: Run) {
    this.run = run
  }

  /** `indent` columns stand before the value, and `allowance` behind it. */
  print(value: Value, indent: number, allowance: number): string {
    const line = this.oneLine(value)
    if (line.length <= width - indent - allowance) return line
    if (value instanceof Dictionary && value.size > 0) {
      const parts = this.sorted(value).map(([key, item], i, all) => {
        const before = `${this.oneLine(key)}: `
        const behind = i === all.length - 1 ? allowance + 1 : 1
        return before + this.print(item, indent + 1 + before.length, behind)
      })
      return `{${parts.join(`,\n${" ".repeat(indent + 1)}`)}}`
    }
    if (Array.isArray(value)) return `[${this.items(value, indent, allowance + 1)}]`
    if (!(value instanceof Tuple)) return line
    const comma = value.items.length === 1 ? "," : ""
    return `(${this.items(value.items, indent, allowance + 1 + comma.length)}${comma})`
  }

  private items(items: readonly Value[], indent: number, allowance: number): string {
    const parts = items.map((item, i) => this.print(item, indent + 1, i === items.length - 1 ? allowance : 1))
    return parts.join(`,\n${" ".repeat(indent + 1)}`)
  }

  private oneLine(value: Value): string {
    if (value instanceof Dictionary) {
      const parts = this.sorted(value).map(([key, item]) => `${this.oneLine(key)}: ${this.oneLine(item)}`)
      return `{${parts.join(", ")}}`
    }
    if (Array.isArray(value)) return `[${value.map((item) => this.oneLine(item)).join(", ")}]`
    if (!(value instanceof Tuple)) return repr(value, this.run)
    const parts = value.items.map((item) => this.oneLine(item))
    return parts.length === 1 ? `(${parts[0]},)` : `(${parts.join(", ")})`
  }

  /** Keys that have no order among each other stand in the order of their types' names. */
  private sorted(value: Dictionary): [Value, Value][] {
    this.run.step()
    return value.entries().sort(([a], [b]) => {
      try {
        return compare(a, b, this.run)
      } catch {
        return compareTexts(typeName(a), typeName(b))
      }
    })
  }
}
