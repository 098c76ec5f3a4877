import { equal } from "./equality"
import { type Run, TemplateError } from "./run"
import { bind } from "./signature"
import { type Arguments, Callable, Lazy, Special, Tuple, type Value } from "./value"

/** Renders the body of a recursive loop over other items, one level deeper. */
export type Recurse = (items: Value, depth0: number) => string

function refuseNamed(name: string, given: Arguments): void {
  const [unknown] = given.named.keys()
  if (unknown !== undefined) {
    throw new TemplateError(`LoopContext.${name}() got an unexpected keyword argument '${unknown}'`)
  }
}

/** What `loop` tells inside a `for`, and the loop's way through its items. */
export class Loop extends Special {
  readonly typeName = "LoopContext"
  current: Value = undefined
  private index0 = -1
  private before: Value = undefined
  private items: readonly Value[] | Lazy
  /** For iterators: the item that was looked at too early, or null. */
  private ahead: { readonly value: Value } | null = null
  private known = -1
  private last: Tuple | null = null
  private readonly depth0: number
  private readonly recurse: Recurse | null
  private readonly run: Run

  constructor(items: readonly Value[] | Lazy, depth0: number, recurse: Recurse | null, run: Run) {
    super()
    this.items = items
    this.depth0 = depth0
    this.recurse = recurse
    this.run = run
  }

  /** Goes to the next item; false when there is none. */
  next(): boolean {
    const { items } = this
    let value: Value
    if (!(items instanceof Lazy)) {
      if (this.index0 + 1 >= items.length) return false
      value = items[this.index0 + 1]
    } else if (this.ahead !== null) {
      value = this.ahead.value
      this.ahead = null
    } else {
      const read = items.items.next()
      if (read.done === true) return false
      value = read.value
    }
    this.index0 += 1
    this.before = this.current
    this.current = value
    return true
  }

  override attribute(name: string): Value {
    switch (name) {
      case "index0":
        return this.index0
      case "index":
        return this.index0 + 1
      case "revindex0":
        return this.count() - this.index0 - 1
      case "revindex":
        return this.count() - this.index0
      case "first":
        return this.index0 === 0
      case "last":
        return this.peek() === null
      case "length":
        return this.count()
      case "previtem":
        return this.index0 === 0 ? undefined : this.before
      case "nextitem":
        return this.peek()?.value
      case "depth":
        return this.depth0 + 1
      case "depth0":
        return this.depth0
      case "cycle":
        return new Callable("bound method LoopContext.cycle", (given) => this.cycle(given))
      case "changed":
        return new Callable("bound method LoopContext.changed", (given) => this.changed(given))
      default:
        return undefined
    }
  }

  override repr(): string {
    return `<LoopContext ${this.index0 + 1}/${this.count()}>`
  }

  /** Python's `len`: of an iterator it is known only when that was read to its end. */
  override get size(): number {
    return this.count()
  }

  override call(given: Arguments): Value {
    if (this.recurse !== null) {
      const [items] = bind("loop", [["/iterable"]], given)
      return this.recurse(items, this.depth0 + 1)
    }
    throw new TemplateError("The loop must have the 'recursive' marker to be called recursively.")
  }

  private peek(): { readonly value: Value } | null {
    const { items } = this
    if (!(items instanceof Lazy)) {
      return this.index0 + 1 < items.length ? { value: items[this.index0 + 1] } : null
    }
    if (this.ahead === null) {
      const read = items.items.next()
      if (read.done !== true) this.ahead = { value: read.value }
    }
    return this.ahead
  }

  /** An iterator tells its length only by being read to its end. */
  private count(): number {
    const { items } = this
    if (!(items instanceof Lazy)) return items.length
    if (this.known < 0) {
      const rest: Value[] = []
      for (const item of items) {
        this.run.step()
        rest.push(item)
      }
      this.known = rest.length + this.index0 + 1 + (this.ahead === null ? 0 : 1)
      this.items = new Lazy("list_iterator", rest.values())
    }
    return this.known
  }

  private cycle(given: Arguments): Value {
    refuseNamed("cycle", given)
    if (given.positional.length === 0) throw new TemplateError("no items for cycling given")
    return given.positional[this.index0 % given.positional.length]
  }

  private changed(given: Arguments): boolean {
    refuseNamed("changed", given)
    const values = new Tuple(given.positional)
    if (this.last !== null && equal(this.last, values, this.run)) return false
    this.last = values
    return true
  }
}
