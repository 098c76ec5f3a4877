import { ExpressionParser } from "./expression-parser"
import { tokenize } from "./lexer"
import type { CallNode, Expression, FilterNode, ParameterNode, Statement, Target } from "./syntax"
import { TokenStream } from "./token-stream"

/** Parses a template as the reference does. Throws `TemplateError` with Jinja's words and the line. */
export function parseTemplate(source: string): readonly Statement[] {
  return new Parser(new TokenStream(tokenize(source))).template()
}

class Parser extends ExpressionParser {
  template(): readonly Statement[] {
    return this.statements([])
  }

  /** Statements up to one of the ends (whose tag is then open, at its word), or to the end of the template. */
  private statements(ends: readonly string[]): Statement[] {
    const found: Statement[] = []
    for (;;) {
      const token = this.stream.current
      if (token.kind === "end") {
        if (ends.length === 0) return found
        const wanted = ends.map((end) => `'${end}'`).join(" or ")
        throw this.stream.failure(`Unexpected end of template. Jinja was looking for the following tags: ${wanted}.`)
      }
      this.stream.next()
      if (token.kind === "data") found.push({ type: "data", text: token.text })
      else if (token.kind === "print_begin") {
        found.push({ type: "print", values: [this.tuple()] })
        this.stream.expect("print_end")
      } else {
        if (this.stream.isName(...ends)) return found
        found.push(...this.stream.nested(() => this.statement(ends)))
        this.stream.expect("block_end")
      }
    }
  }

  /** The rest of a tag, then statements up to one of the ends. */
  private block(...ends: readonly string[]): Statement[] {
    // A colon, as in Python, may stand before the tag's end.
    this.stream.skipOperator(":")
    this.stream.expect("block_end")
    return this.statements(ends)
  }

  /** Like `block`, with the end's word read as well. */
  private wholeBlock(end: string): Statement[] {
    const body = this.block(end)
    this.stream.next()
    return body
  }

  private statement(ends: readonly string[]): readonly Statement[] {
    const { line } = this.stream.current
    if (this.stream.current.kind !== "name") throw this.stream.failure("tag name expected")
    const tag = this.stream.next().text
    switch (tag) {
      case "set":
        return [this.set()]
      case "if":
        return [this.if()]
      case "for":
        return [this.for()]
      case "macro":
        return [this.macro()]
      case "call":
        return [this.callBlock()]
      case "filter": {
        const filter = this.filters(this.filter(null)) as FilterNode
        return [{ type: "filter_block", filter, body: this.wholeBlock("endfilter") }]
      }
      case "with":
        return [this.with()]
      case "print":
        return [this.print()]
      case "block":
        return [this.namedBlock()]
      case "generation":
        return [{ type: "generation", body: this.wholeBlock("endgeneration") }]
      case "break":
      case "continue":
        return [{ type: tag, line }]
      case "autoescape":
        return [this.autoescape()]
      case "extends":
      case "include":
        return [this.load(tag)]
      case "import":
        return [this.wholeImport()]
      case "from":
        return [this.namedImports()]
      default: {
        const wanted = ends.length === 0 ? "" : ` Jinja was looking for ${ends.map((end) => `'${end}'`).join(" or ")}.`
        throw this.stream.failure(`Encountered unknown tag '${tag}'.${wanted}`)
      }
    }
  }

  private set(): Statement {
    const target = this.target({ fields: true })
    if (this.stream.skipOperator("=")) return { type: "set", target, value: this.tuple() }
    const filter = this.filters(null)
    return { type: "set_block", target, filter, body: this.wholeBlock("endset") }
  }

  private if(): Statement {
    const branches: { readonly test: Expression; readonly body: readonly Statement[] }[] = []
    for (;;) {
      const test = this.tuple({ conditional: false })
      branches.push({ test, body: this.block("elif", "else", "endif") })
      const word = this.stream.next().text
      if (word === "elif") continue
      return { type: "if", branches, otherwise: word === "else" ? this.wholeBlock("endif") : [] }
    }
  }

  private for(): Statement {
    const target = this.target()
    this.stream.expectWord("in")
    const iterable = this.tuple({ conditional: false })
    const test = this.stream.skipName("if") ? this.expression() : null
    const recursive = this.stream.skipName("recursive")
    const body = this.block("endfor", "else")
    const otherwise = this.stream.next().text === "endfor" ? [] : this.wholeBlock("endfor")
    return { type: "for", target, iterable, test, recursive, body, otherwise }
  }

  private macro(): Statement {
    const name = this.targetName()
    const parameters = this.parameters()
    return { type: "macro", name, parameters, body: this.wholeBlock("endmacro") }
  }

  private parameters(): ParameterNode[] {
    this.stream.expectOperator("(")
    const found: ParameterNode[] = []
    while (!this.stream.isOperator(")")) {
      if (found.length > 0) this.stream.expectOperator(",")
      const name = this.targetName()
      const fallback = this.stream.skipOperator("=") ? this.expression() : null
      if (fallback === null && found.some((each) => each.fallback !== null)) {
        throw this.stream.failure("non-default argument follows default argument")
      }
      if (found.some((each) => each.name === name)) throw this.stream.failure(`duplicate argument '${name}'`)
      found.push({ name, fallback })
    }
    this.stream.expectOperator(")")
    return found
  }

  private callBlock(): Statement {
    const parameters = this.stream.isOperator("(") ? this.parameters() : []
    const call = this.expression()
    if (call.type !== "call") throw this.stream.failure("expected call")
    return { type: "call_block", parameters, call: call satisfies CallNode, body: this.wholeBlock("endcall") }
  }

  private with(): Statement {
    const targets: Target[] = []
    const values: Expression[] = []
    while (this.stream.current.kind !== "block_end") {
      if (targets.length > 0) this.stream.expectOperator(",")
      targets.push(this.target())
      this.stream.expectOperator("=")
      values.push(this.expression())
    }
    return { type: "with", targets, values, body: this.wholeBlock("endwith") }
  }

  private print(): Statement {
    const values: Expression[] = []
    while (this.stream.current.kind !== "block_end") {
      if (values.length > 0) this.stream.expectOperator(",")
      values.push(this.expression())
    }
    return { type: "print", values }
  }

  private namedBlock(): Statement {
    const name = this.stream.expectName()
    const scoped = this.stream.skipName("scoped")
    const required = this.stream.skipName("required")
    const body = this.wholeBlock("endblock")
    if (required && body.some((node) => node.type !== "data" || node.text.trim() !== "")) {
      throw this.stream.failure("Required blocks can only contain comments or whitespace")
    }
    this.stream.skipName(name)
    return { type: "block", name, scoped, required, body }
  }

  /** Templates of chats are texts, not pages: only the form that changes nothing is known. */
  private autoescape(): Statement {
    const wanted = this.expression()
    if (wanted.type !== "constant" || wanted.value !== false) {
      throw this.stream.failure("autoescape is not supported in chat templates")
    }
    return { type: "scope", body: this.wholeBlock("endautoescape") }
  }

  private load(tag: "extends" | "include"): Statement {
    const template = this.expression()
    if (tag === "include" && this.stream.skipName("ignore")) this.stream.expectWord("missing")
    if (tag === "include") this.contextWords()
    return { type: "load", template, names: [] }
  }

  private wholeImport(): Statement {
    const template = this.expression()
    this.stream.expectWord("as")
    const names = [this.targetName()]
    this.contextWords()
    return { type: "load", template, names }
  }

  private namedImports(): Statement {
    const template = this.expression()
    this.stream.expectWord("import")
    const names: string[] = []
    while (!this.contextWords()) {
      if (names.length > 0) {
        if (!this.stream.skipOperator(",")) break
        if (this.contextWords()) break
      }
      const name = this.targetName()
      names.push(this.stream.skipName("as") ? this.targetName() : name)
      if (!this.stream.isOperator(",") && !this.stream.isName("with", "without")) break
    }
    return { type: "load", template, names }
  }

  private contextWords(): boolean {
    if (!this.stream.isName("with", "without") || this.stream.following.text !== "context") return false
    this.stream.next()
    this.stream.next()
    return true
  }
}
