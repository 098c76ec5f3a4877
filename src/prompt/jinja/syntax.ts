/** The syntax tree of a template, in Jinja's terms. */
import type { Value } from "./value"

/** Jinja's comparisons; a chain of them compares each value with the next. */
export type CompareOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in"

/** Arguments of a call, filter or test: `*rest` and `**namedRest` come last. */
export interface ArgumentNodes {
  readonly positional: readonly Expression[]
  readonly named: readonly (readonly [name: string, value: Expression])[]
  readonly rest: Expression | null
  readonly namedRest: Expression | null
}

/** A variable. */
export interface NameNode {
  readonly type: "name"
  readonly name: string
}

/** `object.name`. */
export interface AttributeNode {
  readonly type: "attribute"
  readonly object: Expression
  readonly name: string
}

/** `object[key]`. */
export interface ItemNode {
  readonly type: "item"
  readonly object: Expression
  readonly key: Expression
}

/** `object[start:stop:step]`. */
export interface SliceNode {
  readonly type: "slice"
  readonly object: Expression
  readonly parts: readonly [Expression | null, Expression | null, Expression | null]
}

/** `callee(arguments)`. */
export interface CallNode {
  readonly type: "call"
  readonly callee: Expression
  readonly args: ArgumentNodes
}

/** `operand | name(arguments)`; without an operand it takes the text of a block. */
export interface FilterNode {
  readonly type: "filter"
  readonly operand: Expression | null
  readonly name: string
  readonly args: ArgumentNodes
}

/** `operand is name(arguments)`. */
export interface TestNode {
  readonly type: "test"
  readonly operand: Expression
  readonly name: string
  readonly args: ArgumentNodes
}

/** What has a value. */
export type Expression =
  | NameNode
  | AttributeNode
  | ItemNode
  | SliceNode
  | CallNode
  | FilterNode
  | TestNode
  | { readonly type: "constant"; readonly value: Value }
  | { readonly type: "list" | "tuple" | "concat"; readonly items: readonly Expression[] }
  | { readonly type: "dictionary"; readonly pairs: readonly (readonly [key: Expression, value: Expression])[] }
  | {
      readonly type: "arithmetic"
      readonly operator: "+" | "-" | "*" | "/" | "//" | "%" | "**"
      readonly left: Expression
      readonly right: Expression
    }
  | { readonly type: "and" | "or"; readonly left: Expression; readonly right: Expression }
  | { readonly type: "not"; readonly operand: Expression }
  | { readonly type: "sign"; readonly operator: "-" | "+"; readonly operand: Expression }
  | {
      readonly type: "compare"
      readonly first: Expression
      readonly rest: readonly (readonly [operator: CompareOperator, operand: Expression])[]
    }
  | {
      readonly type: "conditional"
      readonly test: Expression
      readonly then: Expression
      readonly otherwise: Expression | null
    }

/** What `set` and `for` give values to. */
export type Target =
  | NameNode
  | { readonly type: "field"; readonly namespace: string; readonly name: string }
  | { readonly type: "targets"; readonly items: readonly Target[] }

/** A macro's parameter. */
export interface ParameterNode {
  readonly name: string
  readonly fallback: Expression | null
}

/** `{% for %}`. */
export interface ForNode {
  readonly type: "for"
  readonly target: Target
  readonly iterable: Expression
  readonly test: Expression | null
  readonly recursive: boolean
  readonly body: readonly Statement[]
  readonly otherwise: readonly Statement[]
}

/** `{% macro %}`. */
export interface MacroNode {
  readonly type: "macro"
  readonly name: string
  readonly parameters: readonly ParameterNode[]
  readonly body: readonly Statement[]
}

/** `{% call %}`. */
export interface CallBlockNode {
  readonly type: "call_block"
  readonly parameters: readonly ParameterNode[]
  readonly call: CallNode
  readonly body: readonly Statement[]
}

/** `{% set target %}…{% endset %}`. */
export interface SetBlockNode {
  readonly type: "set_block"
  readonly target: Target
  readonly filter: FilterNode | null
  readonly body: readonly Statement[]
}

/** `{% with %}`. */
export interface WithNode {
  readonly type: "with"
  readonly targets: readonly Target[]
  readonly values: readonly Expression[]
  readonly body: readonly Statement[]
}

/** `{% block %}`: without inheritance it stands for its own text. */
export interface BlockNode {
  readonly type: "block"
  readonly name: string
  readonly scoped: boolean
  readonly required: boolean
  readonly body: readonly Statement[]
}

/** What is done. */
export type Statement =
  | ForNode
  | MacroNode
  | CallBlockNode
  | SetBlockNode
  | WithNode
  | BlockNode
  | { readonly type: "data"; readonly text: string }
  | { readonly type: "print"; readonly values: readonly Expression[] }
  | {
      readonly type: "if"
      readonly branches: readonly { readonly test: Expression; readonly body: readonly Statement[] }[]
      readonly otherwise: readonly Statement[]
    }
  | { readonly type: "set"; readonly target: Target; readonly value: Expression }
  | { readonly type: "filter_block"; readonly filter: FilterNode; readonly body: readonly Statement[] }
  | { readonly type: "scope" | "generation"; readonly body: readonly Statement[] }
  /** `include`, `extends`, `import`, `from`: the reference has no other templates to load, so these fail. */
  | { readonly type: "load"; readonly template: Expression; readonly names: readonly string[] }
  | { readonly type: "break" | "continue"; readonly line: number }

/** Any node. */
export type Node = Expression | Statement

/** Arguments of nothing. */
export const noArgumentNodes: ArgumentNodes = { positional: [], named: [], rest: null, namedRest: null }

/** The nodes directly below one, in the order in which Jinja keeps them. Targets are not among them. */
export function childrenOf(node: Node): readonly Node[] {
  switch (node.type) {
    case "name":
    case "constant":
    case "data":
    case "break":
    case "continue":
      return []
    case "list":
    case "tuple":
    case "concat":
      return node.items
    case "dictionary":
      return node.pairs.flat()
    case "attribute":
      return [node.object]
    case "item":
      return [node.object, node.key]
    case "slice":
      return [node.object, ...node.parts.filter((part) => part !== null)]
    case "call":
      return [node.callee, ...argumentsOf(node.args)]
    case "filter":
      return [...(node.operand === null ? [] : [node.operand]), ...argumentsOf(node.args)]
    case "test":
      return [node.operand, ...argumentsOf(node.args)]
    case "arithmetic":
    case "and":
    case "or":
      return [node.left, node.right]
    case "not":
    case "sign":
      return [node.operand]
    case "compare":
      return [node.first, ...node.rest.map(([, operand]) => operand)]
    case "conditional":
      return [node.test, node.then, ...(node.otherwise === null ? [] : [node.otherwise])]
    case "print":
      return node.values
    case "if":
      return [...node.branches.flatMap(({ test, body }) => [test, ...body]), ...node.otherwise]
    case "for":
      return [node.iterable, ...node.body, ...node.otherwise, ...(node.test === null ? [] : [node.test])]
    case "set":
      return [node.value]
    case "set_block":
      return [...(node.filter === null ? [] : [node.filter]), ...node.body]
    case "macro":
      return [...fallbacksOf(node.parameters), ...node.body]
    case "call_block":
      return [node.call, ...fallbacksOf(node.parameters), ...node.body]
    case "filter_block":
      return [node.filter, ...node.body]
    case "with":
      return [...node.values, ...node.body]
    case "load":
      return [node.template]
    case "block":
    case "scope":
    case "generation":
      return node.body
  }
}

/** The argument expressions, in order. */
export function argumentsOf(args: ArgumentNodes): Expression[] {
  const rests = [args.rest, args.namedRest].filter((rest) => rest !== null)
  return [...args.positional, ...args.named.map(([, value]) => value), ...rests]
}

/** The expressions of those parameters that have one. */
export function fallbacksOf(parameters: readonly ParameterNode[]): Expression[] {
  return parameters.map((parameter) => parameter.fallback).filter((fallback) => fallback !== null)
}

/** All nodes below (and including) the given ones, outer before inner. */
export function* nodesOf(nodes: readonly Node[]): Generator<Node> {
  // A stack, since chains such as `a + b + …` nest as deep as they are long.
  const open = [...nodes].reverse()
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node
    const children = childrenOf(node)
    for (let i = children.length - 1; i >= 0; i--) open.push(children[i]!)
  }
}

/** The names that a target sets, from left to right. */
export function namesOf(target: Target): readonly string[] {
  if (target.type === "name") return [target.name]
  return target.type === "field" ? [] : target.items.flatMap(namesOf)
}
