import { TemplateError } from "./run"
import type { Arguments, Value } from "./value"

/** One parameter: its name, and what it is when it is not given. Without the second it must be given. */
export type Parameter = readonly [name: string] | readonly [name: string, fallback: Value]

/**
 * Puts arguments in their places as Python does; too many, too few and unknown names are errors in its words. A name
 * that begins with `/` can be given by its place only.
 */
export function bind(callee: string, parameters: readonly Parameter[], given: Arguments): readonly Value[] {
  const { positional, named } = given
  if (positional.length > parameters.length) {
    throw new TemplateError(
      `${callee}() takes at most ${parameters.length} arguments but ${positional.length} were given`,
    )
  }
  if (named.size === 0 && positional.length === parameters.length) return positional
  const bound: Value[] = []
  let taken = 0
  for (let i = 0; i < parameters.length; i++) {
    const parameter = parameters[i]!
    const isNamed = named.size > 0 && named.has(parameter[0])
    if (isNamed) taken += 1
    if (i < positional.length) {
      if (isNamed) throw new TemplateError(`${callee}() got multiple values for argument '${parameter[0]}'`)
      bound.push(positional[i])
    } else if (isNamed) bound.push(named.get(parameter[0]))
    else if (parameter.length === 2) bound.push(parameter[1])
    else throw new TemplateError(`${callee}() missing required argument: '${parameter[0].replace("/", "")}'`)
  }
  if (taken < named.size) {
    const unknown = [...named.keys()].find((name) => !parameters.some(([each]) => each === name))
    throw new TemplateError(`${callee}() got an unexpected keyword argument '${unknown}'`)
  }
  return bound
}
