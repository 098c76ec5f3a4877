import { type ArgumentNodes, type Expression, type Node, nodesOf, type Statement } from "./syntax"

/**
 * Whether some loop runs over a message's content: over `message.content` itself, over a parameter of a macro that is
 * called with one, or, outside of macros, over whatever is called `content`. Source: vLLM's `auto` rule (CHAT 2), name
 * for name, since another format is another prompt.
 */
export function loopsOverContent(statements: readonly Statement[]): boolean {
  const all = [...nodesOf(statements)]
  const messages = messageNames(all)
  const calls = Map.groupBy(
    all.flatMap((node) =>
      node.type === "call" && node.callee.type === "name" ? [{ name: node.callee.name, node }] : [],
    ),
    ({ name }) => name,
  )
  const parameters = new Map<Node, ReadonlySet<string>>()
  for (const node of all) {
    if (node.type !== "macro") continue
    const args = (calls.get(node.name) ?? []).map((each) => each.node.args)
    const found = contentParameters(node, args, messages)
    for (const inside of nodesOf(node.body)) if (inside.type === "for") parameters.set(inside, found)
  }
  return all.some((node) => {
    if (node.type !== "for") return false
    if (isContent(node.iterable, messages)) return true
    if (node.iterable.type !== "name") return false
    const inMacro = parameters.get(node)
    return inMacro === undefined ? node.iterable.name === "content" : inMacro.has(node.iterable.name)
  })
}

/** Targets of the loops over `messages`, or over a name that it was given. */
function messageNames(all: readonly Node[]): ReadonlySet<string> {
  const handedOn = new Map<string, string[]>()
  for (const node of all) {
    if (node.type !== "set" || node.target.type !== "name") continue
    const value = unwrapped(node.value)
    if (value.type !== "name") continue
    const targets = handedOn.get(value.name)
    if (targets === undefined) handedOn.set(value.name, [node.target.name])
    else targets.push(node.target.name)
  }
  const lists = new Set(["messages"])
  // Going through a set comes to what is added meanwhile.
  for (const list of lists) for (const name of handedOn.get(list) ?? []) lists.add(name)
  const names = new Set<string>()
  for (const node of all) {
    if (node.type !== "for" || node.target.type !== "name") continue
    const iterable = unwrapped(node.iterable)
    if (iterable.type === "name" && lists.has(iterable.name)) names.add(node.target.name)
  }
  return names
}

/** The parameters of a macro that one of its calls gives a message's content. */
function contentParameters(
  { parameters }: Extract<Node, { type: "macro" }>,
  calls: readonly ArgumentNodes[],
  messages: ReadonlySet<string>,
): ReadonlySet<string> {
  const known = new Set(parameters.map(({ name }) => name))
  const found = new Set<string>()
  for (const { positional, named } of calls) {
    for (const [i, value] of positional.entries()) {
      const parameter = parameters[i]
      if (parameter !== undefined && isContent(value, messages)) found.add(parameter.name)
    }
    for (const [key, value] of named) if (known.has(key) && isContent(value, messages)) found.add(key)
  }
  return found
}

/** `message.content`, behind filters, tests and slices. */
function isContent(node: Expression, messages: ReadonlySet<string>): boolean {
  const inner = unwrapped(node)
  if (inner.type !== "attribute" && inner.type !== "item") return false
  const key = inner.type === "attribute" ? inner.name : inner.key.type === "constant" ? inner.key.value : null
  return key === "content" && inner.object.type === "name" && messages.has(inner.object.name)
}

/** The expression behind filters, tests and slices. */
function unwrapped(node: Expression): Expression {
  if (node.type === "filter" && node.operand !== null) return unwrapped(node.operand)
  if (node.type === "test") return unwrapped(node.operand)
  return node.type === "slice" ? unwrapped(node.object) : node
}

/** Every name that the template looks up as a variable, whether or not it also sets it. */
export function namesRead(statements: readonly Statement[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const node of nodesOf(statements)) if (node.type === "name") names.add(node.name)
  return names
}
