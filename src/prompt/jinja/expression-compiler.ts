import { operate, signed } from "./arithmetic"
import { attributeOf, itemOf, missingMessage, sliceOf } from "./attribute"
import { isDictionaryMethod } from "./container-methods"
import { contains, equal, ordered } from "./equality"
import type { Filter, Test } from "./filter"
import { type Evaluate, type Frame, missing } from "./frame"
import { findFilter, findTest } from "./names"
import { text } from "./repr"
import { type Run, TemplateError } from "./run"
import type { Scope } from "./scope"
import { frameReader } from "./scope-entry"
import type { Position } from "./standing"
import type {
  ArgumentNodes,
  AttributeNode,
  CallNode,
  CompareOperator,
  Expression,
  FilterNode,
  NameNode,
  TestNode,
} from "./syntax"
import { callTextMethod, isTextMethod } from "./text-methods"
import {
  type Arguments,
  Callable,
  counted,
  Dictionary,
  isText,
  listed,
  noArguments,
  Special,
  sizeOf,
  Tuple,
  truthy,
  typeName,
  type Value,
} from "./value"

/** Compiles an expression to a closure. Throws `TemplateError` for what can be known to be wrong beforehand. */
export function compileExpression(node: Expression, at: Position): Evaluate {
  switch (node.type) {
    case "constant": {
      const { value } = node
      return () => value
    }
    case "name":
      return compileName(node, at.scope)
    case "attribute":
      return compileAttribute(node, at)
    case "item": {
      const object = defined(node.object, at)
      const key = compileExpression(node.key, at)
      return (frame) => itemOf(object(frame), key(frame), frame.run)
    }
    case "slice": {
      const object = defined(node.object, at)
      const [start, stop, step] = node.parts.map((part) => (part === null ? noValue : compileExpression(part, at)))
      return (frame) => sliceOf(object(frame), [start!(frame), stop!(frame), step!(frame)], frame.run)
    }
    case "call":
      return compileCall(node, at)
    case "filter":
      return compileFilter(node, at, node.operand === null ? noValue : compileExpression(node.operand, at))
    case "test":
      return compileTest(node, at)
    case "list": {
      const items = node.items.map((item) => compileExpression(item, at))
      return (frame) => items.map((item) => item(frame))
    }
    case "tuple": {
      const items = node.items.map((item) => compileExpression(item, at))
      return (frame) => new Tuple(items.map((item) => item(frame)))
    }
    case "concat": {
      const items = node.items.map((item) => compileExpression(item, at))
      return (frame) => {
        let made = ""
        for (const item of items) made += text(item(frame), frame.run)
        frame.run.checkText(made.length)
        return made
      }
    }
    case "dictionary": {
      const pairs = node.pairs.map(
        ([key, value]) => [compileExpression(key, at), compileExpression(value, at)] as const,
      )
      return (frame) => {
        const made = new Dictionary()
        for (const [key, value] of pairs) made.set(key(frame), value(frame))
        return made
      }
    }
    case "arithmetic":
      return compileArithmetic(node, at)
    case "and": {
      const [left, right] = [compileExpression(node.left, at), compileExpression(node.right, at)]
      return (frame) => {
        const value = left(frame)
        return truthy(value) ? right(frame) : value
      }
    }
    case "or": {
      const [left, right] = [compileExpression(node.left, at), compileExpression(node.right, at)]
      return (frame) => {
        const value = left(frame)
        return truthy(value) ? value : right(frame)
      }
    }
    case "not": {
      const operand = compileExpression(node.operand, at)
      return (frame) => !truthy(operand(frame))
    }
    case "sign": {
      const operand = defined(node.operand, at)
      return (frame) => signed(node.operator, operand(frame))
    }
    case "compare":
      return compileCompare(node.first, node.rest, at)
    case "conditional": {
      const soft = { ...at, soft: true }
      const test = compileExpression(node.test, soft)
      const then = compileExpression(node.then, soft)
      const otherwise = node.otherwise === null ? () => undefined : compileExpression(node.otherwise, soft)
      return (frame) => (truthy(test(frame)) ? then(frame) : otherwise(frame))
    }
  }
}

function noValue(): Value {
  return null
}

function compileName(node: NameNode, scope: Scope): Evaluate {
  const place = scope.find(node.name)
  // Only the filters of a `set` block are not looked through for names; the reference cannot compile those.
  if (place === null) throw new TemplateError(`the name '${node.name}' cannot be read here`)
  const { index } = place
  const frameOf = frameReader(place, scope)
  if (place.activation === scope.activation) {
    return (frame) => {
      const held = frame.held[index]
      return held === missing ? undefined : held
    }
  }
  return (frame) => {
    const held = frameOf(frame).held[index]
    return held === missing ? undefined : held
  }
}

function compileAttribute(node: AttributeNode, at: Position): Evaluate {
  const object = defined(node.object, at)
  const { name } = node
  if (isDictionaryMethod(name) || name.startsWith("__")) return (frame) => attributeOf(object(frame), name, frame.run)
  return (frame) => {
    const value = object(frame)
    return value instanceof Dictionary ? value.get(name) : attributeOf(value, name, frame.run)
  }
}

/** An operand that may not be undefined: the error tells in Jinja's words which name or attribute was not there. */
function defined(node: Expression, at: Position): Evaluate {
  const operand = compileExpression(node, at)
  const complain = complaint(node, at)
  return (frame) => {
    const value = operand(frame)
    if (value === undefined) throw complain(frame)
    return value
  }
}

/** What to say of an expression that was undefined. Reading its object once more does no harm: the rendering ends. */
function complaint(node: Expression, at: Position): (frame: Frame) => TemplateError {
  if (node.type === "name") return () => new TemplateError(`'${node.name}' is undefined`)
  if (node.type !== "attribute" && node.type !== "item") return () => new TemplateError("a value is undefined")
  const object = compileExpression(node.object, at)
  const key: Evaluate = node.type === "attribute" ? () => node.name : compileExpression(node.key, at)
  return (frame) => new TemplateError(missingMessage(object(frame), key(frame), frame.run))
}

function compileArithmetic(
  { operator, left: leftNode, right: rightNode }: Extract<Expression, { type: "arithmetic" }>,
  at: Position,
): Evaluate {
  const left = compileExpression(leftNode, at)
  const right = compileExpression(rightNode, at)
  const complainLeft = complaint(leftNode, at)
  const complainRight = complaint(rightNode, at)
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    if (a === undefined) throw complainLeft(frame)
    // A text formats an undefined value as nothing.
    if (b === undefined && !(operator === "%" && isText(a))) throw complainRight(frame)
    return operate(operator, a, b, frame.run)
  }
}

function compileCompare(
  firstNode: Expression,
  restNodes: readonly (readonly [CompareOperator, Expression])[],
  at: Position,
): Evaluate {
  const first = compileExpression(firstNode, at)
  const rest = restNodes.map(([operator, operand]) => ({
    compare: comparison(operator),
    operand: compileExpression(operand, at),
  }))
  const [only, ...more] = rest
  if (only !== undefined && more.length === 0) {
    return (frame) => only.compare(first(frame), only.operand(frame), frame.run)
  }
  return (frame) => {
    let left = first(frame)
    for (const { compare, operand } of rest) {
      const right = operand(frame)
      if (!compare(left, right, frame.run)) return false
      left = right
    }
    return true
  }
}

function comparison(operator: CompareOperator): (left: Value, right: Value, run: Run) => boolean {
  switch (operator) {
    case "==":
      return equal
    case "!=":
      return (left, right, run) => !equal(left, right, run)
    case "in":
      return (left, right, run) => contains(right, left, run)
    case "not in":
      return (left, right, run) => !contains(right, left, run)
    default:
      return (left, right, run) => {
        if (left === undefined || right === undefined) throw new TemplateError("a value is undefined")
        return ordered(operator, left, right, run)
      }
  }
}

/** Compiles arguments: those of constants are made once. */
function compileArguments(nodes: ArgumentNodes, at: Position): (frame: Frame) => Arguments {
  const positional = nodes.positional.map((node) => compileExpression(node, at))
  const named = nodes.named.map(([name, node]) => [name, compileExpression(node, at)] as const)
  const rest = nodes.rest === null ? null : compileExpression(nodes.rest, at)
  const namedRest = nodes.namedRest === null ? null : compileExpression(nodes.namedRest, at)
  if (rest === null && namedRest === null && named.length === 0) {
    if (positional.length === 0) return () => noArguments
    if (nodes.positional.every((node) => node.type === "constant")) {
      const constant = { positional: nodes.positional.map(constantValue), named: noArguments.named }
      return () => constant
    }
    return (frame) => ({ positional: positional.map((argument) => argument(frame)), named: noArguments.named })
  }
  return (frame) => {
    const places = positional.map((argument) => argument(frame))
    if (rest !== null) places.push(...listed(rest(frame), frame.run))
    const names = new Map<string, Value>()
    for (let i = 0; i < named.length; i++) names.set(named[i]![0], named[i]![1](frame))
    if (namedRest !== null) addNamed(names, namedRest(frame), frame.run)
    return { positional: places, named: names }
  }
}

function constantValue(node: Expression): Value {
  return node.type === "constant" ? node.value : undefined
}

function addNamed(names: Map<string, Value>, spread: Value, run: Run): void {
  if (!(spread instanceof Dictionary)) {
    throw new TemplateError(`argument after ** must be a mapping, not ${typeName(spread)}`)
  }
  run.buildItems(spread.size)
  for (const [key, value] of spread.entries()) {
    if (typeof key !== "string") throw new TemplateError("keywords must be strings")
    if (names.has(key)) throw new TemplateError(`got multiple values for keyword argument '${key}'`)
    names.set(key, value)
  }
}

/** Calls a value. */
export function invoke(callee: Value, given: Arguments, run: Run): Value {
  run.step()
  if (callee instanceof Callable || callee instanceof Special) return callee.call(given, run)
  throw new TemplateError(`'${typeName(callee)}' object is not callable`)
}

/** Compiles a call; `caller`, where there is one, is handed over as an argument of that name. */
export function compileCall({ callee: calleeNode, args }: CallNode, at: Position, caller?: Evaluate): Evaluate {
  const written = compileArguments(args, at)
  const given: typeof written =
    caller === undefined
      ? written
      : (frame) => {
          const { positional, named } = written(frame)
          return { positional, named: new Map([...named, ["caller", caller(frame)]]) }
        }
  if (calleeNode.type === "attribute" && isTextMethod(calleeNode.name)) {
    return compileMethodCall(calleeNode, given, at)
  }
  const callee = defined(calleeNode, at)
  return (frame) => {
    const value = callee(frame)
    return invoke(value, given(frame), frame.run)
  }
}

/** A call of a name that texts have as a method: on a text it runs without making the bound method first. */
function compileMethodCall(
  { object: objectNode, name }: AttributeNode,
  given: (frame: Frame) => Arguments,
  at: Position,
): Evaluate {
  const object = defined(objectNode, at)
  return (frame) => {
    const value = object(frame)
    if (isText(value)) {
      frame.run.step()
      return callTextMethod(value, name, given(frame), frame.run)
    }
    const callee = attributeOf(value, name, frame.run)
    if (callee === undefined) throw new TemplateError(missingMessage(value, name, frame.run))
    return invoke(callee, given(frame), frame.run)
  }
}

/** Compiles a filter on what `operand` gives. */
export function compileFilter({ name, args }: FilterNode, at: Position, operand: Evaluate): Evaluate {
  const filter = findFilter(name) ?? unknown("filter", name, at)
  const given = compileArguments(args, at)
  return (frame) => {
    const { run } = frame
    run.step()
    const value = operand(frame)
    run.work(sizeOf(value))
    return counted(filter(value, given(frame), run), run)
  }
}

function compileTest({ operand: operandNode, name, args }: TestNode, at: Position): Evaluate {
  const operand = compileExpression(operandNode, at)
  if (name === "defined" && args.positional.length === 0) return (frame) => operand(frame) !== undefined
  const test: Test = findTest(name) ?? unknown("test", name, at)
  const given = compileArguments(args, at)
  return (frame) => {
    const value = operand(frame)
    frame.run.work(sizeOf(value))
    return test(value, given(frame), frame.run)
  }
}

/** An unknown name fails at once, inside an `if` when it is reached. */
function unknown(kind: "filter" | "test", name: string, at: Position): Filter & Test {
  if (!at.soft) throw new TemplateError(`No ${kind} named '${name}'.`)
  return () => {
    throw new TemplateError(`No ${kind} named '${name}' found.`)
  }
}
