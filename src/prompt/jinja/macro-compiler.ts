import { compileExpression } from "./expression-compiler"
import { Frame, type Held, missing } from "./frame"
import { Macro, type MacroArguments, type MacroSignature } from "./macro"
import { TemplateError } from "./run"
import { Activation, freeNames, type Place } from "./scope"
import { entering } from "./scope-entry"
import type { Standing } from "./standing"
import type { ParameterNode, Statement } from "./syntax"

/** What makes a macro; the body of a `call` block has no name. */
export interface MacroParts {
  readonly name: string | null
  readonly parameters: readonly ParameterNode[]
  readonly body: readonly Statement[]
}

/** A function with parameters: a macro, or the body of a `call` block. */
export function compileMacro(
  node: MacroParts,
  at: Standing,
  capture: (statements: readonly Statement[], at: Standing) => (frame: Frame) => string,
): (frame: Frame) => Macro {
  const activation = new Activation(at.scope.activation)
  const scope = at.scope.inner(activation)
  scope.takes(node.parameters)
  scope.runs(node.body)
  const names = node.parameters.map((parameter) => parameter.name)
  const free = freeNames(node.body, ["caller", "kwargs", "varargs"])
  const explicit = node.parameters.find((parameter) => parameter.name === "caller")
  if (free.has("caller") && explicit !== undefined && explicit.fallback === null) {
    throw new TemplateError('the special "caller" argument must be omitted or be given a default')
  }
  const special = (name: string): Place | null => (free.has(name) && !names.includes(name) ? scope.declare(name) : null)
  const places = { caller: special("caller"), kwargs: special("kwargs"), varargs: special("varargs") }
  const standing = { scope, soft: false, top: false, inLoop: false }
  const parameters = node.parameters.map(({ name, fallback }) => ({
    // Every parameter was declared above.
    index: scope.find(name)!.index,
    fallback: fallback === null ? () => undefined : compileExpression(fallback, standing),
  }))
  const enter = entering(scope)
  const body = capture(node.body, standing)
  const signature: MacroSignature = {
    name: node.name,
    parameters: names,
    takesCaller: free.has("caller"),
    takesNamed: places.kwargs !== null,
    takesRest: places.varargs !== null,
  }
  const fill = (frame: Frame, given: MacroArguments): void => {
    const hold = (place: Place | null, held: Held): void => {
      if (place !== null) frame.held[place.index] = held
    }
    hold(places.caller, given.caller)
    hold(places.kwargs, given.named)
    hold(places.varargs, given.rest)
    parameters.forEach(({ index }, i) => {
      frame.held[index] = given.parameters[i]
    })
  }
  return (outer) =>
    new Macro(signature, (given, run) => {
      const frame = new Frame(activation.places, outer, outer.context, run)
      fill(frame, given)
      enter(frame)
      for (const { index, fallback } of parameters) {
        if (frame.held[index] === missing) frame.held[index] = fallback(frame)
      }
      return body(frame)
    })
}
