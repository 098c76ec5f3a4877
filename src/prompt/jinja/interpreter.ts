import { operate, signed } from "./arithmetic"
import { filterNamed, testNamed } from "./filters"
import { method } from "./methods"
import {
  type CallBlockNode,
  type CallNode,
  type ForNode,
  type IdentifierNode,
  type MemberNode,
  type Node,
  nodesOf,
  type SetNode,
  type SliceNode,
} from "./syntax"
import {
  type Arguments,
  Attributes,
  Callable,
  compare,
  contains,
  type Dictionary,
  equal,
  Float,
  iterate,
  Namespace,
  noArguments,
  TemplateError,
  Tuple,
  text,
  truthy,
  typeName,
  type Value,
} from "./value"

/** Where names live. Blocks of a loop, a macro or a call have one of their own; `if` has none. */
export class Scope {
  private readonly variables = new Map<string, Value>()
  private readonly parent: Scope | null

  constructor(parent: Scope | null) {
    this.parent = parent
  }

  set(name: string, value: Value): void {
    this.variables.set(name, value)
  }

  get(name: string): Value {
    for (let scope: Scope | null = this; scope !== null; scope = scope.parent) {
      const value = scope.variables.get(name)
      if (value !== undefined || scope.variables.has(name)) return value
    }
    return undefined
  }
}

/** How a block ended. */
const Flow = { on: 0, break: 1, continue: 2 } as const
type Flow = (typeof Flow)[keyof typeof Flow]

/** Where a block's text goes. */
interface Output {
  text: string
}

/** Rendered UTF-16 units allowed: a template that loops must not fill the memory. */
const renderedUnitsMax = 256 * 1024 * 1024
/** Loop rounds and macro calls allowed in one rendering. */
const roundsMax = 20_000_000

/**
 * Evaluates a template's tree by Python's rules (see `value.ts`): one object a rendering. Throws `TemplateError` for
 * what the template does wrong; the caller turns it into a value.
 */
export class Interpreter {
  private roundsLeft = roundsMax

  /** The text that the nodes give with these variables. */
  render(nodes: readonly Node[], scope: Scope): string {
    const out: Output = { text: "" }
    this.block(nodes, scope, out)
    return out.text
  }

  private block(nodes: readonly Node[], scope: Scope, out: Output): Flow {
    for (const node of nodes) {
      const flow = this.statement(node, scope, out)
      if (flow !== Flow.on) return flow
    }
    return Flow.on
  }

  private statement(node: Node, scope: Scope, out: Output): Flow {
    switch (node.type) {
      case "Comment":
        return Flow.on
      case "Break":
        return Flow.break
      case "Continue":
        return Flow.continue
      case "If":
        return this.block(truthy(this.evaluate(node.test, scope)) ? node.body : node.alternate, scope, out)
      case "For":
        this.loop(node, scope, out)
        return Flow.on
      case "Set":
        this.assign(node, scope)
        return Flow.on
      case "Macro":
        scope.set(node.name.value, this.macro(node.args, node.body, scope, node.name.value))
        return Flow.on
      case "CallStatement":
        this.print(text(this.callBlock(node, scope)), out)
        return Flow.on
      case "FilterStatement": {
        const inner = this.render(node.body, new Scope(scope))
        this.print(text(this.filter(inner, node.filter, scope)), out)
        return Flow.on
      }
      default:
        this.print(text(this.evaluate(node, scope)), out)
        return Flow.on
    }
  }

  private print(part: string, out: Output): void {
    out.text += part
    if (out.text.length > renderedUnitsMax) throw new TemplateError("the rendered text is too long")
  }

  private countRound(): void {
    this.roundsLeft -= 1
    if (this.roundsLeft < 0) throw new TemplateError("the template takes too many rounds")
  }

  private loop(node: ForNode, scope: Scope, out: Output): void {
    const filtered = node.iterable.type === "SelectExpression" ? node.iterable : null
    const source = iterate(this.evaluate(filtered === null ? node.iterable : filtered.lhs, scope))
    const items = filtered === null ? source : source.filter((item) => this.accepts(filtered.test, node, item, scope))
    if (items.length === 0) {
      this.block(node.defaultBlock, new Scope(scope), out)
      return
    }
    const state = new LoopState(items)
    const attributes = new Attributes((name) => state.attribute(name))
    for (let i = 0; i < items.length; i++) {
      this.countRound()
      state.index0 = i
      const inner = new Scope(scope)
      inner.set("loop", attributes)
      this.bind(node.loopvar, items[i], inner)
      if (this.block(node.body, inner, out) === Flow.break) return
    }
  }

  private accepts(test: Node, node: ForNode, item: Value, scope: Scope): boolean {
    this.countRound()
    const inner = new Scope(scope)
    this.bind(node.loopvar, item, inner)
    return truthy(this.evaluate(test, inner))
  }

  /** Gives a value to a name, or its items to several. */
  private bind(target: Node, value: Value, scope: Scope): void {
    if (target.type === "Identifier") {
      scope.set(target.value, value)
      return
    }
    if (target.type === "MemberExpression") {
      const object = this.evaluate(target.object, scope)
      if (!(object instanceof Namespace)) throw new TemplateError("cannot assign attribute on non-namespace object")
      object.entries.set(this.propertyName(target, scope), value)
      return
    }
    if (target.type !== "TupleLiteral" && target.type !== "ArrayLiteral") {
      throw new TemplateError("cannot assign to this expression")
    }
    const items = iterate(value)
    if (items.length > target.value.length) {
      throw new TemplateError(`too many values to unpack (expected ${target.value.length})`)
    }
    if (items.length < target.value.length) {
      throw new TemplateError(`not enough values to unpack (expected ${target.value.length}, got ${items.length})`)
    }
    target.value.forEach((part, i) => {
      this.bind(part, items[i], scope)
    })
  }

  private propertyName(node: MemberNode, scope: Scope): string {
    if (!node.computed && node.property.type === "Identifier") return node.property.value
    return text(this.evaluate(node.property, scope))
  }

  private assign(node: SetNode, scope: Scope): void {
    if (node.value !== null) {
      this.bind(node.assignee, this.evaluate(node.value, scope), scope)
      return
    }
    const rendered = this.render(node.body, new Scope(scope))
    // `{% set x | trim %}…{% endset %}` filters the block.
    if (node.assignee.type === "FilterExpression") {
      this.bind(node.assignee.operand, this.filter(rendered, node.assignee.filter, scope), scope)
    } else this.bind(node.assignee, rendered, scope)
  }

  private macro(parameters: readonly Node[], body: readonly Node[], scope: Scope, name: string): Callable {
    return new Callable((given) => {
      this.countRound()
      const inner = new Scope(scope)
      const named = new Map(given.named)
      const caller = named.get("caller")
      if (caller !== undefined) {
        inner.set("caller", caller)
        named.delete("caller")
      }
      parameters.forEach((parameter, i) => {
        this.bindParameter(parameter, i, given, named, inner)
      })
      if (given.positional.length > parameters.length && !mentions(body, "varargs")) {
        throw new TemplateError(`macro '${name}' takes not more than ${parameters.length} argument(s)`)
      }
      const [unknown] = named.keys()
      if (unknown !== undefined && !mentions(body, "kwargs")) {
        throw new TemplateError(`macro '${name}' takes no keyword argument '${unknown}'`)
      }
      inner.set("varargs", new Tuple(given.positional.slice(parameters.length)))
      inner.set("kwargs", new Map(named))
      return this.render(body, inner)
    })
  }

  private bindParameter(parameter: Node, i: number, given: Arguments, named: Map<string, Value>, scope: Scope): void {
    const name = parameter.type === "KeywordArgumentExpression" ? parameter.key.value : nameOf(parameter)
    if (i < given.positional.length) scope.set(name, given.positional[i])
    else if (named.has(name)) scope.set(name, named.get(name))
    else {
      scope.set(
        name,
        parameter.type === "KeywordArgumentExpression" ? this.evaluate(parameter.value, scope) : undefined,
      )
    }
    named.delete(name)
  }

  private callBlock(node: CallBlockNode, scope: Scope): Value {
    const callee = this.evaluate(node.call.callee, scope)
    const given = this.args(node.call.args, scope)
    const caller = this.macro(node.callerArgs ?? [], node.body, scope, "caller")
    return this.invoke(callee, node.call.callee, {
      positional: given.positional,
      named: new Map([...given.named, ["caller", caller]]),
    })
  }

  private invoke(callee: Value, node: Node, given: Arguments): Value {
    if (callee instanceof Callable) return callee.call(given)
    if (callee === undefined) throw undefinedError(node)
    throw new TemplateError(`'${typeName(callee)}' object is not callable`)
  }

  private args(nodes: readonly Node[], scope: Scope): Arguments {
    if (nodes.length === 0) return noArguments
    const positional: Value[] = []
    const named = new Map<string, Value>()
    for (const node of nodes) {
      if (node.type === "SpreadExpression") positional.push(...iterate(this.evaluate(node.argument, scope)))
      else if (node.type === "KeywordArgumentExpression") named.set(node.key.value, this.evaluate(node.value, scope))
      else if (node.type === "KeywordSpreadExpression") {
        const spread = this.evaluate(node.argument, scope)
        if (!(spread instanceof Map))
          throw new TemplateError(`argument after ** must be a mapping, not ${typeName(spread)}`)
        for (const [key, value] of spread) named.set(text(key), value)
      } else positional.push(this.evaluate(node, scope))
    }
    return { positional, named }
  }

  private filter(operand: Value, node: IdentifierNode | CallNode, scope: Scope): Value {
    if (node.type === "Identifier") return filterNamed(node.value)(operand, noArguments)
    return filterNamed(nameOf(node.callee))(operand, this.args(node.args, scope))
  }

  /** The value of an expression. */
  private evaluate(node: Node, scope: Scope): Value {
    switch (node.type) {
      case "StringLiteral":
        return node.value
      case "IntegerLiteral":
        return node.value
      case "FloatLiteral":
        return new Float(node.value)
      case "ArrayLiteral":
        return node.value.map((item) => this.evaluate(item, scope))
      case "TupleLiteral":
        return new Tuple(node.value.map((item) => this.evaluate(item, scope)))
      case "ObjectLiteral": {
        const made: Dictionary = new Map()
        for (const [key, value] of node.value) made.set(this.evaluate(key, scope), this.evaluate(value, scope))
        return made
      }
      case "Identifier":
        return named(node.value, scope)
      case "MemberExpression":
        return this.member(node, scope)
      case "CallExpression":
        return this.invoke(this.evaluate(node.callee, scope), node.callee, this.args(node.args, scope))
      case "FilterExpression":
        return this.filter(this.evaluate(node.operand, scope), node.filter, scope)
      case "TestExpression":
        return testNamed(node.test.value)(this.evaluate(node.operand, scope), noArguments) !== node.negate
      case "UnaryExpression": {
        const operand = this.evaluate(node.argument, scope)
        return node.operator.value === "not" ? !truthy(operand) : signed(node.operator.value, operand)
      }
      case "BinaryExpression":
        return this.binary(node.operator.value, node.left, node.right, scope)
      case "Ternary":
        return this.evaluate(truthy(this.evaluate(node.condition, scope)) ? node.trueExpr : node.falseExpr, scope)
      case "SelectExpression":
        return truthy(this.evaluate(node.test, scope)) ? this.evaluate(node.lhs, scope) : undefined
      default:
        throw new TemplateError(`${node.type} cannot stand here`)
    }
  }

  private binary(operator: string, leftNode: Node, rightNode: Node, scope: Scope): Value {
    const left = this.evaluate(leftNode, scope)
    if (operator === "and") return truthy(left) ? this.evaluate(rightNode, scope) : left
    if (operator === "or") return truthy(left) ? left : this.evaluate(rightNode, scope)
    const right = this.evaluate(rightNode, scope)
    switch (operator) {
      case "==":
        return equal(left, right)
      case "!=":
        return !equal(left, right)
      case "in":
        return contains(right, left)
      case "not in":
        return !contains(right, left)
      case "~":
        return operate("~", left, right)
    }
    if (left === undefined) throw undefinedError(leftNode)
    if (right === undefined) throw undefinedError(rightNode)
    switch (operator) {
      case "<":
        return compare(left, right) < 0
      case ">":
        return compare(left, right) > 0
      case "<=":
        return compare(left, right) <= 0
      case ">=":
        return compare(left, right) >= 0
      default:
        return operate(operator, left, right)
    }
  }

  private member(node: MemberNode, scope: Scope): Value {
    const object = this.evaluate(node.object, scope)
    if (object === undefined) throw undefinedError(node.object)
    if (node.computed && node.property.type === "SliceExpression") return this.slice(object, node.property, scope)
    const property =
      !node.computed && node.property.type === "Identifier" ? node.property.value : this.evaluate(node.property, scope)
    if (object instanceof Attributes) return object.attribute(text(property))
    if (object instanceof Namespace) return object.entries.get(text(property))
    // A dot looks for a method first, brackets look for an item first (Jinja's getattr and getitem).
    if (!node.computed && typeof property === "string") return method(object, property) ?? itemAt(object, property)
    const item = itemAt(object, property)
    return item === undefined && typeof property === "string" && !hasKey(object, property)
      ? method(object, property)
      : item
  }

  private slice(object: Value, node: SliceNode, scope: Scope): Value {
    const [start, stop, step = 1] = [node.start, node.stop, node.step].map((part) => {
      const value = part === undefined ? null : this.evaluate(part, scope)
      if (value === null || value === undefined) return undefined
      if (typeof value === "number") return value
      throw new TemplateError("slice indices must be integers or None or have an __index__ method")
    })
    if (step === 0) throw new TemplateError("slice step cannot be zero")
    if (typeof object === "string") {
      const plain = step === 1 && !/[\ud800-\udfff]/.test(object)
      if (plain) return object.slice(start ?? 0, stop ?? object.length)
      return sliced(Array.from(object), start, stop, step).join("")
    }
    if (Array.isArray(object)) return sliced(object, start, stop, step)
    if (object instanceof Tuple) return new Tuple(sliced(object.items, start, stop, step))
    return undefined
  }
}

/** What `loop` tells inside a `for`. */
class LoopState {
  index0 = 0
  private readonly items: readonly Value[]
  private last: readonly Value[] | null = null

  constructor(items: readonly Value[]) {
    this.items = items
  }

  attribute(name: string): Value {
    const count = this.items.length
    switch (name) {
      case "index0":
        return this.index0
      case "index":
        return this.index0 + 1
      case "revindex0":
        return count - this.index0 - 1
      case "revindex":
        return count - this.index0
      case "first":
        return this.index0 === 0
      case "last":
        return this.index0 === count - 1
      case "length":
        return count
      case "previtem":
        return this.items[this.index0 - 1]
      case "nextitem":
        return this.items[this.index0 + 1]
      case "depth":
        return 1
      case "depth0":
        return 0
      case "cycle":
        return new Callable((given) => given.positional[this.index0 % given.positional.length])
      case "changed":
        return new Callable((given) => this.changed(given.positional))
      default:
        return undefined
    }
  }

  private changed(values: readonly Value[]): boolean {
    const before = this.last
    this.last = values
    return before === null || !equal([...before], [...values])
  }
}

function named(name: string, scope: Scope): Value {
  switch (name) {
    case "true":
    case "True":
      return true
    case "false":
    case "False":
      return false
    case "none":
    case "None":
      return null
    default:
      return scope.get(name)
  }
}

function nameOf(node: Node): string {
  if (node.type === "Identifier") return node.value
  throw new TemplateError(`a name must stand here, not ${node.type}`)
}

function hasKey(object: Value, key: Value): boolean {
  return object instanceof Map && object.has(key)
}

function itemAt(object: Value, key: Value): Value {
  if (object instanceof Map)
    return object.get(key instanceof Float || typeof key === "boolean" ? Number(text(key)) : key)
  if (typeof key !== "number") return undefined
  if (Array.isArray(object)) return object.at(key)
  if (object instanceof Tuple) return object.items.at(key)
  if (typeof object === "string") return /[\ud800-\udfff]/.test(object) ? Array.from(object).at(key) : object.at(key)
  return undefined
}

function sliced(items: readonly Value[], start: number | undefined, stop: number | undefined, step: number): Value[] {
  const size = items.length
  const clamp = (index: number, low: number, high: number): number =>
    Math.min(Math.max(index < 0 ? index + size : index, low), high)
  if (step === 1) return items.slice(clamp(start ?? 0, 0, size), clamp(stop ?? size, 0, size))
  const made: Value[] = []
  if (step > 0) {
    const end = clamp(stop ?? size, 0, size)
    for (let i = clamp(start ?? 0, 0, size); i < end; i += step) made.push(items[i])
  } else {
    const end = stop === undefined ? -1 : clamp(stop, -1, size - 1)
    for (let i = clamp(start ?? size - 1, -1, size - 1); i > end; i += step) made.push(items[i])
  }
  return made
}

function mentions(nodes: readonly Node[], name: string): boolean {
  for (const node of nodesOf(nodes)) {
    if (node.type === "Identifier" && node.value === name) return true
  }
  return false
}

/** Jinja's words for what was undefined. */
function undefinedError(node: Node): TemplateError {
  if (node.type === "Identifier") return new TemplateError(`'${node.value}' is undefined`)
  if (node.type === "MemberExpression") {
    const { property } = node
    if (property.type === "Identifier" && !node.computed) {
      return new TemplateError(`'dict object' has no attribute '${property.value}'`)
    }
    if (property.type === "StringLiteral")
      return new TemplateError(`'dict object' has no attribute '${property.value}'`)
  }
  return new TemplateError("a value is undefined")
}
