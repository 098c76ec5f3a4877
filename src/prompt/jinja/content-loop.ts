import { type Node, nodesOf } from "./syntax"

/**
 * Whether some loop runs over a message's content, directly or through a name it was given. Source: CHAT 2, the
 * `auto` rule of vLLM's content format; a macro that loops over its own parameter does not count, as there.
 */
export function loopsOverContent(nodes: readonly Node[]): boolean {
  const all = [...nodesOf(nodes)]
  const lists = new Set(["messages"])
  const messages = new Set<string>()
  const contents = new Set<string>()
  // Names are followed until no more are found: a template may hand `messages` on from one name to the next.
  for (let size = -1; size !== lists.size + messages.size + contents.size; ) {
    size = lists.size + messages.size + contents.size
    for (const node of all) {
      if (node.type === "For" && node.loopvar.type === "Identifier" && isOneOf(node.iterable, lists)) {
        messages.add(node.loopvar.value)
      }
      if (node.type !== "Set" || node.value === null || node.assignee.type !== "Identifier") continue
      if (isOneOf(node.value, lists)) lists.add(node.assignee.value)
      if (isElementOf(node.value, lists)) messages.add(node.assignee.value)
      if (isContentOf(node.value, lists, messages)) contents.add(node.assignee.value)
    }
  }
  return all.some(
    (node) =>
      node.type === "For" &&
      (isOneOf(node.iterable, contents) || isContentOf(unwrapped(node.iterable), lists, messages)),
  )
}

/** The node behind filters, slices and a loop's condition. */
function unwrapped(node: Node): Node {
  if (node.type === "FilterExpression") return unwrapped(node.operand)
  if (node.type === "SelectExpression") return unwrapped(node.lhs)
  if (node.type === "MemberExpression" && node.property.type === "SliceExpression") return unwrapped(node.object)
  return node
}

function isOneOf(node: Node, names: ReadonlySet<string>): boolean {
  const inner = unwrapped(node)
  if (inner.type === "Ternary") return isOneOf(inner.trueExpr, names) || isOneOf(inner.falseExpr, names)
  return inner.type === "Identifier" && names.has(inner.value)
}

function isElementOf(node: Node, lists: ReadonlySet<string>): boolean {
  const inner = unwrapped(node)
  return inner.type === "MemberExpression" && inner.computed && isOneOf(inner.object, lists)
}

function isContentOf(node: Node, lists: ReadonlySet<string>, messages: ReadonlySet<string>): boolean {
  if (node.type !== "MemberExpression") return false
  const { property } = node
  const name = property.type === "Identifier" && !node.computed ? property.value : null
  const key = property.type === "StringLiteral" ? property.value : name
  return key === "content" && (isOneOf(node.object, messages) || isElementOf(node.object, lists))
}
