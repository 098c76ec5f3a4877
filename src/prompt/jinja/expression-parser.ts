import type { Operator } from "./arithmetic"
import type { Token } from "./lexer"
import {
  type ArgumentNodes,
  type CallNode,
  type CompareOperator,
  type Expression,
  type FilterNode,
  noArgumentNodes,
  type Target,
} from "./syntax"
import { describe, type TokenStream } from "./token-stream"
import { Float, integer } from "./value"

const comparisons: { readonly [spelling: string]: CompareOperator } = {
  "==": "==",
  "!=": "!=",
  "<": "<",
  "<=": "<=",
  ">": ">",
  ">=": ">=",
}

/** Parses expressions: one method for each level of Jinja's precedence, the weakest first. */
export class ExpressionParser {
  protected readonly stream: TokenStream

  constructor(stream: TokenStream) {
    this.stream = stream
  }

  /** An expression; without `conditional`, `a if b` is not part of it. */
  expression(conditional = true): Expression {
    return this.stream.nested(() => (conditional ? this.conditional() : this.or()))
  }

  /** One expression, or several with commas between as a tuple. `empty`: nothing at all is a tuple too (in brackets). */
  tuple({ conditional = true, empty = false } = {}): Expression {
    const items: Expression[] = []
    let isTuple = false
    for (;;) {
      if (items.length > 0) this.stream.expectOperator(",")
      if (this.isTupleEnd()) break
      items.push(this.expression(conditional))
      if (!this.stream.isOperator(",")) break
      isTuple = true
    }
    const [only] = items
    if (!isTuple && only !== undefined) return only
    if (!isTuple && !empty) {
      throw this.stream.failure(`Expected an expression, got '${describe(this.stream.current)}'`)
    }
    return { type: "tuple", items }
  }

  /** A comma may stand last before the end of a tag or a bracket; the reference takes no word for such an end. */
  private isTupleEnd(): boolean {
    const { kind } = this.stream.current
    return kind === "print_end" || kind === "block_end" || this.stream.isOperator(")")
  }

  /** What `set` and `for` give values to; `fields`: of namespaces too. */
  target({ fields = false } = {}): Target {
    const items: Target[] = []
    let isTuple = false
    for (;;) {
      if (items.length > 0) this.stream.expectOperator(",")
      if (this.isTupleEnd()) break
      items.push(this.oneTarget(fields))
      if (!this.stream.isOperator(",")) break
      isTuple = true
    }
    const [only] = items
    if (!isTuple && only !== undefined) return only
    if (!isTuple) throw this.stream.failure(`Expected an expression, got '${describe(this.stream.current)}'`)
    return { type: "targets", items }
  }

  private oneTarget(fields: boolean): Target {
    if (this.stream.skipOperator("(")) {
      const inner = this.stream.nested(() => this.target())
      this.stream.expectOperator(")")
      return inner
    }
    const name = this.targetName()
    if (!fields || !this.stream.skipOperator(".")) return { type: "name", name }
    return { type: "field", namespace: name, name: this.stream.expectName() }
  }

  /** A name that can be given a value. */
  targetName(): string {
    const { text } = this.stream.current
    if (this.stream.current.kind !== "name") throw this.stream.unexpected("'name'")
    if (["true", "false", "none", "True", "False", "None"].includes(text)) {
      throw this.stream.failure("can't assign to 'const'")
    }
    return this.stream.next().text
  }

  private conditional(): Expression {
    let then = this.or()
    while (this.stream.skipName("if")) {
      const test = this.or()
      const otherwise = this.stream.skipName("else") ? this.stream.nested(() => this.conditional()) : null
      then = { type: "conditional", test, then, otherwise }
    }
    return then
  }

  private or(): Expression {
    let left = this.and()
    while (this.stream.skipName("or")) left = { type: "or", left, right: this.and() }
    return left
  }

  private and(): Expression {
    let left = this.not()
    while (this.stream.skipName("and")) left = { type: "and", left, right: this.not() }
    return left
  }

  private not(): Expression {
    if (!this.stream.skipName("not")) return this.compare()
    return { type: "not", operand: this.stream.nested(() => this.not()) }
  }

  private compare(): Expression {
    const first = this.sum()
    const rest: [CompareOperator, Expression][] = []
    for (;;) {
      const operator = this.comparison()
      if (operator === null) break
      rest.push([operator, this.sum()])
    }
    return rest.length === 0 ? first : { type: "compare", first, rest }
  }

  private comparison(): CompareOperator | null {
    const { current, following } = this.stream
    if (this.stream.skipName("in")) return "in"
    if (this.stream.isName("not") && following.kind === "name" && following.text === "in") {
      this.stream.next()
      this.stream.next()
      return "not in"
    }
    const operator = current.kind === "operator" ? comparisons[current.text] : undefined
    if (operator !== undefined) this.stream.next()
    return operator ?? null
  }

  private sum(): Expression {
    return this.leftToRight(["+", "-"], () => this.concat())
  }

  private concat(): Expression {
    const first = this.product()
    if (!this.stream.isOperator("~")) return first
    const items = [first]
    while (this.stream.skipOperator("~")) items.push(this.product())
    return { type: "concat", items }
  }

  private product(): Expression {
    return this.leftToRight(["*", "/", "//", "%"], () => this.power())
  }

  private power(): Expression {
    return this.leftToRight(["**"], () => this.unary(true))
  }

  private leftToRight(operators: readonly Operator[], operand: () => Expression): Expression {
    let left = operand()
    for (;;) {
      const operator = operators.find((each) => this.stream.isOperator(each))
      if (operator === undefined) return left
      this.stream.next()
      left = { type: "arithmetic", operator, left, right: operand() }
    }
  }

  private unary(filters: boolean): Expression {
    const { text } = this.stream.current
    if (!this.stream.isOperator("-", "+")) return this.postfix(this.primary(), filters)
    this.stream.next()
    const operand = this.stream.nested(() => this.unary(false))
    return this.postfix({ type: "sign", operator: text === "-" ? "-" : "+", operand }, filters)
  }

  private postfix(node: Expression, filters: boolean): Expression {
    let made = this.subscripts(node)
    while (filters) {
      if (this.stream.skipOperator("|")) made = this.filter(made)
      else if (this.stream.skipName("is")) made = this.test(made)
      else if (this.stream.isOperator("(")) made = this.call(made)
      else break
    }
    return made
  }

  private subscripts(node: Expression): Expression {
    let made = node
    for (;;) {
      if (this.stream.skipOperator(".")) made = this.dotted(made)
      else if (this.stream.skipOperator("[")) made = this.bracketed(made)
      else if (this.stream.isOperator("(")) made = this.call(made)
      else return made
    }
  }

  private dotted(object: Expression): Expression {
    const token = this.stream.next()
    if (token.kind === "name") return { type: "attribute", object, name: token.text }
    if (token.kind === "integer") return { type: "item", object, key: number(token) }
    throw this.stream.failure("expected name or number")
  }

  private bracketed(object: Expression): Expression {
    const keys: (Expression | SliceParts)[] = []
    while (!this.stream.isOperator("]")) {
      if (keys.length > 0) this.stream.expectOperator(",")
      keys.push(this.stream.nested(() => this.subscript()))
    }
    this.stream.expectOperator("]")
    const [only, ...more] = keys
    if (only instanceof SliceParts && more.length === 0) return { type: "slice", object, parts: only.parts }
    const expressions = keys.map((key) => {
      if (key instanceof SliceParts) throw this.stream.failure("a slice cannot stand beside other keys")
      return key
    })
    const [key] = expressions
    return {
      type: "item",
      object,
      key: key !== undefined && more.length === 0 ? key : { type: "tuple", items: expressions },
    }
  }

  private subscript(): Expression | SliceParts {
    const start = this.stream.isOperator(":") ? null : this.expression()
    if (start !== null && !this.stream.isOperator(":")) return start
    this.stream.expectOperator(":")
    const stop = this.stream.isOperator(":", "]", ",") ? null : this.expression()
    const step = this.stream.skipOperator(":") && !this.stream.isOperator("]", ",") ? this.expression() : null
    return new SliceParts([start, stop, step])
  }

  /** A call of what stands before the bracket. */
  protected call(callee: Expression): CallNode {
    return { type: "call", callee, args: this.args() }
  }

  /** One filter, its bar read already. */
  protected filter(operand: Expression | null): FilterNode {
    const name = this.dottedName()
    return { type: "filter", operand, name, args: this.stream.isOperator("(") ? this.args() : noArgumentNodes }
  }

  /** Filters behind bars, if there are any. */
  protected filters(operand: FilterNode | null): FilterNode | null {
    let made = operand
    while (this.stream.skipOperator("|")) made = this.filter(made)
    return made
  }

  private dottedName(): string {
    let name = this.stream.expectName()
    while (this.stream.skipOperator(".")) name += `.${this.stream.expectName()}`
    return name
  }

  private test(operand: Expression): Expression {
    const negated = this.stream.skipName("not")
    const name = this.dottedName()
    const node: Expression = { type: "test", operand, name, args: this.testArguments() }
    return negated ? { type: "not", operand: node } : node
  }

  /** A test's arguments in brackets, or one that follows without them (`is divisibleby 3`). */
  private testArguments(): ArgumentNodes {
    if (this.stream.isOperator("(")) return this.args()
    const { kind } = this.stream.current
    const begins = kind === "name" || kind === "text" || kind === "integer" || kind === "float"
    if ((!begins && !this.stream.isOperator("[", "{")) || this.stream.isName("else", "or", "and")) {
      return noArgumentNodes
    }
    if (this.stream.isName("is")) throw this.stream.failure("You cannot chain multiple tests with is")
    return { ...noArgumentNodes, positional: [this.subscripts(this.primary())] }
  }

  private args(): ArgumentNodes {
    this.stream.expectOperator("(")
    const positional: Expression[] = []
    const named: [string, Expression][] = []
    let rest: Expression | null = null
    let namedRest: Expression | null = null
    const ensure = (allowed: boolean): void => {
      if (!allowed) throw this.stream.failure("invalid syntax for function call expression")
    }
    for (let isFirst = true; !this.stream.isOperator(")"); isFirst = false) {
      if (!isFirst) {
        this.stream.expectOperator(",")
        if (this.stream.isOperator(")")) break
      }
      const { current, following } = this.stream
      if (this.stream.skipOperator("*")) {
        ensure(rest === null && namedRest === null)
        rest = this.expression()
      } else if (this.stream.skipOperator("**")) {
        ensure(namedRest === null)
        namedRest = this.expression()
      } else if (current.kind === "name" && following.kind === "operator" && following.text === "=") {
        ensure(namedRest === null)
        this.stream.next()
        this.stream.next()
        if (named.some(([name]) => name === current.text)) {
          throw this.stream.failure(`keyword argument repeated: ${current.text}`)
        }
        named.push([current.text, this.expression()])
      } else {
        ensure(rest === null && namedRest === null && named.length === 0)
        positional.push(this.expression())
      }
    }
    this.stream.expectOperator(")")
    return { positional, named, rest, namedRest }
  }

  private primary(): Expression {
    const token = this.stream.current
    switch (token.kind) {
      case "name":
        return named(this.stream.next().text)
      case "text":
        return { type: "constant", value: this.adjacentTexts() }
      case "integer":
      case "float":
        return number(this.stream.next())
    }
    if (this.stream.skipOperator("(")) {
      const inner = this.stream.nested(() => this.tuple({ empty: true }))
      this.stream.expectOperator(")")
      return inner
    }
    if (this.stream.skipOperator("[")) return { type: "list", items: this.items("]", () => this.expression()) }
    if (this.stream.skipOperator("{")) return { type: "dictionary", pairs: this.items("}", () => this.pair()) }
    throw this.stream.failure(`unexpected '${describe(token)}'`)
  }

  private adjacentTexts(): string {
    let joined = ""
    while (this.stream.current.kind === "text") joined += this.stream.next().text
    return joined
  }

  private items<Item>(closer: string, item: () => Item): Item[] {
    const items: Item[] = []
    while (!this.stream.isOperator(closer)) {
      if (items.length > 0) this.stream.expectOperator(",")
      if (this.stream.isOperator(closer)) break
      items.push(item())
    }
    this.stream.expectOperator(closer)
    return items
  }

  private pair(): [Expression, Expression] {
    const key = this.expression()
    this.stream.expectOperator(":")
    return [key, this.expression()]
  }
}

/** The inside of brackets with colons. */
class SliceParts {
  readonly parts: readonly [Expression | null, Expression | null, Expression | null]

  constructor(parts: readonly [Expression | null, Expression | null, Expression | null]) {
    this.parts = parts
  }
}

function named(name: string): Expression {
  switch (name) {
    case "true":
    case "True":
      return { type: "constant", value: true }
    case "false":
    case "False":
      return { type: "constant", value: false }
    case "none":
    case "None":
      return { type: "constant", value: null }
    default:
      return { type: "name", name }
  }
}

function number(token: Token): Expression {
  // BigInt reads Python's prefixes in lower case only.
  const value = token.kind === "float" ? new Float(Number(token.text)) : integer(BigInt(token.text.toLowerCase()))
  return { type: "constant", value }
}
