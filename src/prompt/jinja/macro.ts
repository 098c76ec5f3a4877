import { type Held, missing } from "./frame"
import { type Run, TemplateError } from "./run"
import { type Arguments, Dictionary, Special, Tuple, type Value } from "./value"

/** What a macro takes. The three at the end tell whether its body asks for what callers may pass beside parameters. */
export interface MacroSignature {
  /** Null for a `call` block's. */
  readonly name: string | null
  readonly parameters: readonly string[]
  readonly takesCaller: boolean
  readonly takesNamed: boolean
  readonly takesRest: boolean
}

/** Arguments in their places: one for each parameter (`missing` where none was given), then what the body asks for. */
export interface MacroArguments {
  readonly parameters: readonly Held[]
  readonly caller: Held
  readonly named: Dictionary
  readonly rest: Tuple
}

/** No template can change them. */
const nothingNamed = new Dictionary()
const nothingMore = new Tuple([])

/** A macro or the body of a `call` block, with the values it was defined among. */
export class Macro extends Special {
  readonly typeName = "Macro"
  private readonly signature: MacroSignature
  private readonly render: (given: MacroArguments, run: Run) => string

  constructor(signature: MacroSignature, render: (given: MacroArguments, run: Run) => string) {
    super()
    this.signature = signature
    this.render = render
  }

  override attribute(name: string): Value {
    switch (name) {
      case "name":
        return this.signature.name
      case "arguments":
        return new Tuple(this.signature.parameters)
      case "catch_kwargs":
        return this.signature.takesNamed
      case "catch_varargs":
        return this.signature.takesRest
      case "caller":
        return this.signature.takesCaller
      default:
        return undefined
    }
  }

  override repr(): string {
    return this.signature.name === null ? "<Macro anonymous>" : `<Macro '${this.signature.name}'>`
  }

  override call(given: Arguments, run: Run): Value {
    run.enter()
    const rendered = this.render(this.place(given), run)
    run.leave()
    return rendered
  }

  private place(given: Arguments): MacroArguments {
    const { name, parameters, takesCaller, takesNamed, takesRest } = this.signature
    if (given.named.size === 0 && given.positional.length === parameters.length && !takesCaller) {
      return { parameters: given.positional, caller: missing, named: nothingNamed, rest: nothingMore }
    }
    const spare = new Map(given.named)
    const placed = parameters.map((parameter, i): Held => {
      if (i < given.positional.length) return given.positional[i]
      const held: Held = spare.has(parameter) ? spare.get(parameter) : missing
      spare.delete(parameter)
      return held
    })
    let caller: Held = missing
    if (takesCaller && !parameters.includes("caller")) {
      caller = spare.get("caller") ?? undefined
      spare.delete("caller")
    }
    const [unknown] = spare.keys()
    if (unknown !== undefined && !takesNamed) {
      throw new TemplateError(`macro '${name}' takes no keyword argument '${unknown}'`)
    }
    if (given.positional.length > parameters.length && !takesRest) {
      throw new TemplateError(`macro '${name}' takes not more than ${parameters.length} argument(s)`)
    }
    const named = new Dictionary()
    for (const [key, value] of spare) named.set(key, value)
    return { parameters: placed, caller, named, rest: new Tuple(given.positional.slice(parameters.length)) }
  }
}
