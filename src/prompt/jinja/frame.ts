import { type Run, TemplateError } from "./run"
import { isText, plainText, typeName, type Value } from "./value"

/** What stands in a place whose name has no value: not even Jinja's undefined, which can be handed on. */
export const missing: unique symbol = Symbol("missing")

/** What a place holds. */
export type Held = Value | typeof missing

/** Values by name, from outside. */
export interface Variables {
  get(name: string): Value
  has(name: string): boolean
}

/** The template's variables: those of the request, the globals behind them, and what the top level sets. */
export class Context {
  private readonly variables: Variables
  private readonly outer: Context | ReadonlyMap<string, Value>
  /** Null until the top level sets something. */
  private exported: Map<string, Value> | null = null

  constructor(variables: Variables, outer: Context | ReadonlyMap<string, Value>) {
    this.variables = variables
    this.outer = outer
  }

  /** The value of a name, or `missing`. */
  resolve(name: string): Held {
    if (this.exported?.has(name) === true) return this.exported.get(name)
    const value = this.variables.get(name)
    if (value !== undefined || this.variables.has(name)) return value
    if (this.outer instanceof Context) return this.outer.resolve(name)
    const global = this.outer.get(name)
    return global === undefined ? missing : global
  }

  /** Keeps what the top level sets, for blocks. */
  export(name: string, value: Value): void {
    this.exported ??= new Map()
    this.exported.set(name, value)
  }
}

/** The values of one activation while it runs. */
export class Frame {
  readonly held: Held[]
  readonly parent: Frame | null
  readonly context: Context
  readonly run: Run

  constructor(places: number, parent: Frame | null, context: Context, run: Run) {
    this.held = new Array<Held>(places).fill(missing)
    this.parent = parent
    this.context = context
    this.run = run
  }
}

/** Where the text of a block gathers. */
export class Output {
  private text = ""
  /** The kind of the first value that came as it is and was no text. */
  private foreign: string | null = null
  private readonly run: Run

  constructor(run: Run) {
    this.run = run
  }

  print(part: string): void {
    this.run.step()
    this.text += part
    this.run.checkText(this.text.length)
  }

  /** What filter and call blocks give is not turned into a text: joining it with the rest fails, if it comes to that. */
  printUnchanged(value: Value): void {
    if (isText(value)) this.print(plainText(value))
    else this.foreign ??= typeName(value)
  }

  /** All of it. */
  joined(): string {
    if (this.foreign === null) return this.text
    throw new TemplateError(`sequence item: expected str instance, ${this.foreign} found`)
  }
}

/** How a statement ended: whether the loop around it goes on. */
export type Flow = 0 | 1 | 2
/** The next statement follows. */
export const goOn: Flow = 0
/** The loop ends. */
export const breakOut: Flow = 1
/** The loop's next round follows. */
export const nextRound: Flow = 2

/** A compiled expression. */
export type Evaluate = (frame: Frame) => Value
/** A compiled statement. */
export type Execute = (frame: Frame, out: Output) => Flow
