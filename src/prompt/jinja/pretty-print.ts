import { compare, compareTexts } from "./equality"
import { repr } from "./repr"
import type { Run } from "./run"
import { Dictionary, Tuple, typeName, type Value } from "./value"
import { splitLines } from "./whitespace"

/** Columns that Python's `pprint` fills. */
const width = 80

/** Python's `pprint.pformat`: keys in order, one line where it fits, else an item a line; long texts in parts. */
export function prettyPrinted(value: Value, run: Run): string {
  return new PrettyPrinter(run).print(value, 0, 0, 1)
}

class PrettyPrinter {
  private readonly run: Run

  constructor(run: Run) {
    this.run = run
  }

  /** `indent` columns stand before the value, and `allowance` behind it; `level` 1 is the value printed itself. */
  print(value: Value, indent: number, allowance: number, level: number): string {
    this.run.step()
    const line = this.oneLine(value)
    if (line.length <= width - indent - allowance) return line
    if (value instanceof Dictionary && value.size > 0) {
      const parts = this.sorted(value).map(([key, item], i, all) => {
        const before = `${this.oneLine(key)}: `
        const behind = i === all.length - 1 ? allowance + 1 : 1
        return before + this.print(item, indent + 1 + before.length, behind, level + 1)
      })
      return `{${parts.join(`,\n${" ".repeat(indent + 1)}`)}}`
    }
    if (Array.isArray(value)) return `[${this.items(value, indent, allowance + 1, level)}]`
    if (typeof value === "string" && value !== "") return this.brokenText(value, indent, allowance, level)
    if (!(value instanceof Tuple)) return line
    const comma = value.items.length === 1 ? "," : ""
    return `(${this.items(value.items, indent, allowance + 1 + comma.length, level)}${comma})`
  }

  private items(items: readonly Value[], indent: number, allowance: number, level: number): string {
    const parts = items.map((item, i) =>
      this.print(item, indent + 1, i === items.length - 1 ? allowance : 1, level + 1),
    )
    return parts.join(`,\n${" ".repeat(indent + 1)}`)
  }

  /** A text too long for its line, as literals below each other: a line each, long lines cut behind blanks. */
  private brokenText(value: string, outerIndent: number, outerAllowance: number, level: number): string {
    const alone = level === 1 ? 1 : 0
    const [indent, allowance] = [outerIndent + alone, outerAllowance + alone]
    const lines = splitLines(value, true)
    const literals = lines.flatMap((line, i) => {
      const whole = repr(line, this.run)
      const room = width - indent
      const last = i === lines.length - 1
      if (whole.length <= (last ? room - allowance : room)) return [whole]
      return this.words(line, room, last ? allowance : 0)
    })
    if (literals.length === 1) return literals[0]!
    const joined = literals.join(`\n${" ".repeat(indent)}`)
    return level === 1 ? `(${joined})` : joined
  }

  private words(line: string, room: number, allowance: number): string[] {
    // Blanks go with the word before them; those in front stand alone.
    const parts = line.match(/\S*\s+|\S+/gu) ?? []
    const literals: string[] = []
    let current = ""
    parts.forEach((part, i) => {
      this.run.step()
      const longer = current + part
      const most = i === parts.length - 1 ? room - allowance : room
      if (repr(longer, this.run).length <= most) current = longer
      else {
        if (current !== "") literals.push(repr(current, this.run))
        current = part
      }
    })
    if (current !== "") literals.push(repr(current, this.run))
    return literals
  }

  private oneLine(value: Value): string {
    const line = this.spelled(value)
    // Parts are spelled again on each level around them.
    this.run.build(line.length)
    return line
  }

  private spelled(value: Value): string {
    this.run.step()
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
