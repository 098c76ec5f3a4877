/**
 * Splits text by any pattern of a tokenizer file, for families without a scanner of their own: a backtracking matcher
 * with the reference's order of choices, over Unicode classes probed from the reference, with a budget of steps.
 */
import { err, ok, type Result } from "../result"
import { CharSet } from "./char-set"
import { type ClassTable, type Edge, parseRegex, type RegexNode, type RegexRefusal } from "./regex-syntax"

/** The matcher gave up: the text needs more steps than any text should. */
export interface SplitFailure {
  readonly kind: "split_budget"
  readonly message: string
}

/** Steps a text may take: this many, and so many more for each UTF-16 unit of it. */
const stepsMin = 100_000
const stepsPerUnit = 256
/** Nested repeats of groups use the stack; a text that needs more depth is refused like one that needs more steps. */
const depthMax = 4000

/** Matches at one position and goes on with what follows: the end, or -1. */
type Step = (at: number) => number

class BudgetSpent extends Error {}

/** A compiled pattern. Not re-entrant: one text at a time, like everything here. */
export class SplitRegex {
  private text = ""
  private stepsLeft = 0
  private depth = 0
  private readonly start: Step
  /** The stacks of the loops, emptied before each text, since a spent budget leaves them as they were. */
  private readonly stacks: number[][] = []

  private readonly word: CharSet

  private constructor(node: RegexNode, word: CharSet) {
    this.word = word
    this.start = this.compile(node, (at) => at)
  }

  /** Compiles a pattern, or says what in it is not supported. */
  static create(
    pattern: string,
    classes: ClassTable,
    dollar: "text_end" | "line_end" = "line_end",
  ): Result<SplitRegex, RegexRefusal> {
    const node = parseRegex(pattern, classes, dollar)
    if (!node.ok) return node
    if (mayBeEmpty(node.value)) {
      // Where nothing matches, a split would still cut: no known file does that.
      return err({
        kind: "regex_unsupported",
        message: `the pattern ${JSON.stringify(pattern)} matches nothing at all`,
      })
    }
    return ok(new SplitRegex(node.value, new CharSet(classes("Word") ?? [])))
  }

  /**
   * Finds all matches, leftmost first. Appends `start, end` pairs (UTF-16 units) to `out`. Source of the order: the
   * first option that leads to a match wins, as in all backtracking engines.
   */
  matches(text: string, out: number[]): Result<null, SplitFailure> {
    this.text = text
    this.stepsLeft = stepsMin + stepsPerUnit * text.length
    this.depth = 0
    for (const stack of this.stacks) stack.length = 0
    try {
      let at = 0
      while (at < text.length) {
        const end = this.start(at)
        if (end > at) {
          out.push(at, end)
          at = end
        } else {
          at += unitsAt(text, at)
        }
      }
      return ok(null)
    } catch (cause) {
      if (!(cause instanceof BudgetSpent)) throw cause
      return err({ kind: "split_budget", message: "the text takes too many steps to split by this model's pattern" })
    } finally {
      this.text = ""
    }
  }

  private spend(steps: number): void {
    this.stepsLeft -= steps
    if (this.stepsLeft < 0) throw new BudgetSpent()
  }

  private compile(node: RegexNode, next: Step): Step {
    switch (node.kind) {
      case "set": {
        const set = new CharSet(node.ranges)
        return (at) => {
          const end = this.one(set, at)
          return end < 0 ? -1 : next(end)
        }
      }
      case "sequence":
        return node.parts.reduceRight((following, part) => this.compile(part, following), next)
      case "choice": {
        const options = node.options.map((option) => this.compile(option, next))
        return (at) => {
          for (const option of options) {
            this.spend(1)
            const end = option(at)
            if (end >= 0) return end
          }
          return -1
        }
      }
      case "look":
        return this.compileLook(node.part, node.ahead, node.negative, next)
      case "atomic": {
        const inner = this.compile(node.part, (at) => at)
        return (at) => {
          const end = inner(at)
          return end < 0 ? -1 : next(end)
        }
      }
      case "edge":
        return (at) => (this.isEdge(node.of, at) ? next(at) : -1)
      case "repeat":
        if (node.mode === "possessive") {
          const greedy: RegexNode = { ...node, mode: "greedy" }
          return this.compile({ kind: "atomic", part: greedy }, next)
        }
        return node.part.kind === "set"
          ? this.compileRun(new CharSet(node.part.ranges), node.min, node.max, node.mode === "lazy", next)
          : this.compileLoop(node.part, node.min, node.max, node.mode === "lazy", next)
    }
  }

  private compileLook(part: RegexNode, ahead: boolean, negative: boolean, next: Step): Step {
    if (ahead) {
      const inner = this.compile(part, (at) => at)
      return (at) => (inner(at) >= 0 !== negative ? next(at) : -1)
    }
    if (part.kind !== "set") throw new Error("lookbehinds hold one character")
    const set = new CharSet(part.ranges)
    return (at) => {
      const before = at === 0 ? -1 : codeBefore(this.text, at)
      return (before >= 0 && set.has(before)) !== negative ? next(at) : -1
    }
  }

  /** A repeat of one character: counted forwards, given back one at a time. No recursion, however long the run. */
  private compileRun(set: CharSet, min: number, max: number, lazy: boolean, next: Step): Step {
    return (at) => {
      let count = 0
      let end = at
      if (lazy) {
        for (;;) {
          if (count >= min) {
            const found = next(end)
            if (found >= 0) return found
          }
          if (count === max) return -1
          end = this.one(set, end)
          if (end < 0) return -1
          count += 1
        }
      }
      while (count < max) {
        const after = this.one(set, end)
        if (after < 0) break
        end = after
        count += 1
      }
      while (count >= min) {
        this.spend(1)
        const found = next(end)
        if (found >= 0) return found
        if (count === 0) return -1
        end -= end >= 2 && codeBefore(this.text, end) > 0xffff ? 2 : 1
        count -= 1
      }
      return -1
    }
  }

  /** A repeat of anything longer: one level of recursion for each round. */
  private compileLoop(part: RegexNode, min: number, max: number, lazy: boolean, next: Step): Step {
    const counts: number[] = []
    const starts: number[] = []
    this.stacks.push(counts, starts)
    const round = (at: number): number => {
      const count = counts[counts.length - 1]!
      this.spend(1)
      if (lazy && count >= min) {
        const found = leave(at)
        if (found >= 0) return found
      }
      if (count < max) {
        this.depth += 1
        if (this.depth > depthMax) throw new BudgetSpent()
        counts.push(count + 1)
        starts.push(at)
        const found = body(at)
        starts.pop()
        counts.pop()
        this.depth -= 1
        if (found >= 0) return found
      }
      return !lazy && count >= min ? leave(at) : -1
    }
    // What follows may enter this same loop again, so the count is put aside while it runs.
    const leave = (at: number): number => {
      const count = counts.pop()!
      const found = next(at)
      counts.push(count)
      return found
    }
    const body = this.compile(part, (at) => {
      // A round that took nothing would repeat for ever.
      if (at === starts[starts.length - 1]) return -1
      const start = starts.pop()!
      const found = round(at)
      starts.push(start)
      return found
    })
    return (at) => {
      counts.push(0)
      const found = round(at)
      counts.pop()
      return found
    }
  }

  /** The end of one character of the set at `at`, or -1. */
  private one(set: CharSet, at: number): number {
    const { text } = this
    if (at >= text.length) return -1
    this.spend(1)
    const unit = text.charCodeAt(at)
    if (unit < 0xd800 || unit > 0xdbff) return set.has(unit) ? at + 1 : -1
    const code = text.codePointAt(at)!
    return set.has(code) ? at + (code > 0xffff ? 2 : 1) : -1
  }

  private isEdge(edge: Edge, at: number): boolean {
    if (edge === "word" || edge === "inside") {
      const before = at > 0 && this.word.has(codeBefore(this.text, at))
      const behind = at < this.text.length && this.word.has(this.text.codePointAt(at)!)
      return (before !== behind) === (edge === "word")
    }
    if (edge === "text_start") return at === 0
    if (edge === "text_end") return at === this.text.length
    // Oniguruma's line start is not behind a line break that ends the text.
    if (edge === "line_start") return at === 0 || (at < this.text.length && this.text.charCodeAt(at - 1) === 10)
    return at === this.text.length || this.text.charCodeAt(at) === 10
  }
}

function unitsAt(text: string, at: number): number {
  return text.codePointAt(at)! > 0xffff ? 2 : 1
}

function codeBefore(text: string, at: number): number {
  const unit = text.charCodeAt(at - 1)
  if (unit < 0xdc00 || unit > 0xdfff || at < 2) return unit
  const code = text.codePointAt(at - 2)!
  return code > 0xffff ? code : unit
}

function mayBeEmpty(node: RegexNode): boolean {
  if (node.kind === "set") return false
  if (node.kind === "sequence") return node.parts.every(mayBeEmpty)
  if (node.kind === "choice") return node.options.some(mayBeEmpty)
  if (node.kind === "repeat") return node.min === 0 || mayBeEmpty(node.part)
  return node.kind === "atomic" ? mayBeEmpty(node.part) : true
}
