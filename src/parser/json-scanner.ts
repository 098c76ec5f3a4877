const State = {
  before: 0,
  container: 1,
  string: 2,
  escape: 3,
  outerString: 4,
  outerEscape: 5,
  scalar: 6,
  done: 7,
} as const
type State = (typeof State)[keyof typeof State]

/** Units that JSON counts as white space. */
export function isJsonSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09
}

/**
 * Finds where one JSON value ends, unit by unit, without checking it: strings, escapes and brackets are followed, all
 * else is taken as it comes (trailing commas too). The value itself is not kept.
 */
export class JsonScanner {
  private state: State = State.before
  private depth = 0

  reset(): void {
    this.state = State.before
    this.depth = 0
  }

  /** True where markers are only characters of a text. */
  get inString(): boolean {
    return this.state >= State.string && this.state <= State.outerEscape
  }

  get done(): boolean {
    return this.state === State.done
  }

  /**
   * Hot (bench/fold.ts): reads `text[start, end)`; gives where the value ended (then `done`), or `end`. The first unit
   * of a value must not be white space. A bare number or word ends before the unit that follows it.
   */
  scan(text: string, start: number, end: number): number {
    let i = start
    while (i < end) {
      const unit = text.charCodeAt(i)
      switch (this.state) {
        case State.before:
          this.state = firstState(unit)
          if (this.state === State.container) this.depth = 1
          break
        case State.container:
          if (unit === 0x22) this.state = State.string
          else if (unit === 0x7b || unit === 0x5b) this.depth += 1
          else if (unit === 0x7d || unit === 0x5d) {
            this.depth -= 1
            if (this.depth === 0) return this.finish(i + 1)
          }
          break
        case State.string:
          if (unit === 0x5c) this.state = State.escape
          else if (unit === 0x22) this.state = State.container
          break
        case State.escape:
          this.state = State.string
          break
        case State.outerString:
          if (unit === 0x5c) this.state = State.outerEscape
          else if (unit === 0x22) return this.finish(i + 1)
          break
        case State.outerEscape:
          this.state = State.outerString
          break
        case State.scalar:
          if (unit === 0x2c || unit === 0x7d || unit === 0x5d || isJsonSpace(unit)) return this.finish(i)
          break
        default:
          return i
      }
      i += 1
    }
    return end
  }

  private finish(at: number): number {
    this.state = State.done
    return at
  }
}

function firstState(unit: number): State {
  if (unit === 0x7b || unit === 0x5b) return State.container
  return unit === 0x22 ? State.outerString : State.scalar
}
