import { type Expression, nodesOf, type Statement } from "./syntax"

/** From name to name, against the order of the template: no template does it twice. */
const handOversMax = 16

/**
 * Whether some loop runs over a message's content, directly or through a name it was given. Source: CHAT 2, the
 * `auto` rule of vLLM's content format; a macro that loops over its own parameter does not count, as there.
 */
export function loopsOverContent(statements: readonly Statement[]): boolean {
  const all = [...nodesOf(statements)]
  const lists = new Set(["messages"])
  const messages = new Set<string>()
  const contents = new Set<string>()
  // Names are followed until no more are found: a template may hand `messages` on from one name to the next.
  let size = -1
  for (let round = 0; round < handOversMax && size !== lists.size + messages.size + contents.size; round++) {
    size = lists.size + messages.size + contents.size
    for (const node of all) {
      if (node.type === "for" && node.target.type === "name" && isOneOf(node.iterable, lists)) {
        messages.add(node.target.name)
      }
      if (node.type !== "set" || node.target.type !== "name") continue
      if (isOneOf(node.value, lists)) lists.add(node.target.name)
      if (isElementOf(node.value, lists)) messages.add(node.target.name)
      if (isContentOf(node.value, lists, messages)) contents.add(node.target.name)
    }
  }
  return all.some(
    (node) =>
      node.type === "for" &&
      (isOneOf(node.iterable, contents) || isContentOf(unwrapped(node.iterable), lists, messages)),
  )
}

/** Every name that the template looks up as a variable, whether or not it also sets it. */
export function namesRead(statements: readonly Statement[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const node of nodesOf(statements)) if (node.type === "name") names.add(node.name)
  return names
}

/** The expression behind filters and slices. */
function unwrapped(node: Expression): Expression {
  if (node.type === "filter" && node.operand !== null) return unwrapped(node.operand)
  return node.type === "slice" ? unwrapped(node.object) : node
}

function isOneOf(node: Expression, names: ReadonlySet<string>): boolean {
  const inner = unwrapped(node)
  if (inner.type === "conditional") {
    return isOneOf(inner.then, names) || (inner.otherwise !== null && isOneOf(inner.otherwise, names))
  }
  return inner.type === "name" && names.has(inner.name)
}

function isElementOf(node: Expression, lists: ReadonlySet<string>): boolean {
  const inner = unwrapped(node)
  return inner.type === "item" && isOneOf(inner.object, lists)
}

function isContentOf(node: Expression, lists: ReadonlySet<string>, messages: ReadonlySet<string>): boolean {
  if (node.type !== "attribute" && node.type !== "item") return false
  const key = node.type === "attribute" ? node.name : node.key.type === "constant" ? node.key.value : null
  return key === "content" && (isOneOf(node.object, messages) || isElementOf(node.object, lists))
}
