/**
 * Template text → syntax tree, through the lexer and parser of npm `@huggingface/jinja`. The package does not export
 * its node types, so the shapes that its parser builds are written down here.
 */
import { parse, tokenize } from "@huggingface/jinja"

/** The operator's spelling. */
export interface Operator {
  readonly value: string
}

/** A name. */
export interface IdentifierNode {
  readonly type: "Identifier"
  readonly value: string
}

/** A call, and a filter with arguments (its callee is then the filter's name). */
export interface CallNode {
  readonly type: "CallExpression"
  readonly callee: Node
  readonly args: readonly Node[]
}

/** `name=value` in a call or a macro's parameters. */
export interface NamedNode {
  readonly type: "KeywordArgumentExpression"
  readonly key: IdentifierNode
  readonly value: Node
}

/** `object.property` or, when computed, `object[property]`. */
export interface MemberNode {
  readonly type: "MemberExpression"
  readonly object: Node
  readonly property: Node
  readonly computed: boolean
}

/** `{% for %}` with its `{% else %}`. */
export interface ForNode {
  readonly type: "For"
  readonly loopvar: Node
  readonly iterable: Node
  readonly body: readonly Node[]
  readonly defaultBlock: readonly Node[]
}

/** `{% set %}`: `value` is null for the block form. */
export interface SetNode {
  readonly type: "Set"
  readonly assignee: Node
  readonly value: Node | null
  readonly body: readonly Node[]
}

/** `{% macro %}`. */
export interface MacroNode {
  readonly type: "Macro"
  readonly name: IdentifierNode
  readonly args: readonly Node[]
  readonly body: readonly Node[]
}

/** `{% call(…) macro(…) %}`. */
export interface CallBlockNode {
  readonly type: "CallStatement"
  readonly call: CallNode
  readonly callerArgs: readonly Node[] | null
  readonly body: readonly Node[]
}

/** `[start:stop:step]`. */
export interface SliceNode {
  readonly type: "SliceExpression"
  readonly start: Node | undefined
  readonly stop: Node | undefined
  readonly step: Node | undefined
}

/** Every kind of node. Plain text is a string literal. */
export type Node =
  | IdentifierNode
  | CallNode
  | NamedNode
  | MemberNode
  | ForNode
  | SetNode
  | MacroNode
  | CallBlockNode
  | SliceNode
  | { readonly type: "Break" | "Continue" | "Comment" }
  | { readonly type: "If"; readonly test: Node; readonly body: readonly Node[]; readonly alternate: readonly Node[] }
  | { readonly type: "FilterStatement"; readonly filter: IdentifierNode | CallNode; readonly body: readonly Node[] }
  | { readonly type: "StringLiteral"; readonly value: string }
  | { readonly type: "IntegerLiteral" | "FloatLiteral"; readonly value: number }
  | { readonly type: "ArrayLiteral" | "TupleLiteral"; readonly value: readonly Node[] }
  | { readonly type: "ObjectLiteral"; readonly value: ReadonlyMap<Node, Node> }
  | { readonly type: "BinaryExpression"; readonly operator: Operator; readonly left: Node; readonly right: Node }
  | { readonly type: "UnaryExpression"; readonly operator: Operator; readonly argument: Node }
  | { readonly type: "FilterExpression"; readonly operand: Node; readonly filter: IdentifierNode | CallNode }
  | {
      readonly type: "TestExpression"
      readonly operand: Node
      readonly negate: boolean
      readonly test: IdentifierNode
    }
  | { readonly type: "SelectExpression"; readonly lhs: Node; readonly test: Node }
  | { readonly type: "Ternary"; readonly condition: Node; readonly trueExpr: Node; readonly falseExpr: Node }
  | { readonly type: "SpreadExpression" | "KeywordSpreadExpression"; readonly argument: Node }

/**
 * Parses a template under the reference's settings: `trim_blocks`, `lstrip_blocks`, line ends read as `\n`, the
 * `generation` tag dropped. Throws the package's `SyntaxError` for a text it cannot read.
 */
export function parseTemplate(source: string): readonly Node[] {
  const tokens = tokenize(source.replace(/\r\n?/g, "\n"), { trim_blocks: true, lstrip_blocks: true })
  // The package types its nodes as opaque classes; their fields are the ones written down above.
  return parse(tokens).body as unknown as readonly Node[]
}

/** All nodes below (and including) the given ones, outer before inner. */
export function* nodesOf(nodes: readonly Node[]): Generator<Node> {
  for (const node of nodes) {
    yield node
    yield* nodesOf(partsOf(node))
  }
}

function partsOf(node: Node): Node[] {
  const parts: Node[] = []
  for (const [name, field] of Object.entries(node)) {
    // Operators are tokens of the lexer: they have a type too, but are no nodes.
    if (name !== "operator") collect(field, parts)
  }
  return parts
}

function collect(field: unknown, parts: Node[]): void {
  if (Array.isArray(field)) {
    for (const item of field) collect(item, parts)
  } else if (field instanceof Map) {
    for (const [key, value] of field) {
      collect(key, parts)
      collect(value, parts)
    }
  } else if (typeof field === "object" && field !== null && "type" in field) {
    // Every object with a type in the parser's tree, operators aside, is a node.
    parts.push(field as Node)
  }
}
