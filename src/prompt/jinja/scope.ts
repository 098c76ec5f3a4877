/**
 * Where names live. Jinja decides when it compiles: each scope has a place for every name it sets, or reads first, and
 * fills these places when it is entered, from the scopes around it or from the template's variables. This follows it
 * rule by rule, since the rules show: what an `if` may set, what a macro sees that is called before a `set`.
 */
import {
  type Expression,
  fallbacksOf,
  namesOf,
  nodesOf,
  type ParameterNode,
  type Statement,
  type Target,
} from "./syntax"

/** The places that one call of a function of the template has: the template itself, a macro, a recursive loop. */
export class Activation {
  readonly parent: Activation | null
  places = 0

  constructor(parent: Activation | null) {
    this.parent = parent
  }
}

/** One place in an activation. */
export interface Place {
  readonly activation: Activation
  readonly index: number
}

/** How a place is filled when its scope is entered. Parameters are filled by whoever enters. */
export type Load =
  | { readonly kind: "parameter" | "missing" }
  | { readonly kind: "resolve"; readonly name: string }
  | { readonly kind: "copy"; readonly from: Place }

/** The names of one scope. Analyse all of its parts before reading any place. */
export class Scope {
  readonly activation: Activation
  private readonly parent: Scope | null
  /** What a branch of an `if` goes on from: it is asked where the branch itself knows nothing. */
  private readonly before: Scope | null
  /** All places ever given in this scope: branches of an `if` that set the same name share one. */
  private readonly own: Map<string, Place>
  private readonly known = new Map<string, Place>()
  private readonly loadsByPlace = new Map<Place, Load>()
  private readonly stores = new Set<string>()

  constructor(parent: Scope | null, activation: Activation, before: Scope | null = null) {
    this.parent = parent
    this.activation = activation
    this.before = before
    this.own = before?.own ?? new Map()
  }

  /** A scope inside this one, in the same activation or in one of its own. */
  inner(activation: Activation = this.activation): Scope {
    return new Scope(this, activation)
  }

  /** What is to be filled when the scope is entered. */
  get loads(): readonly (readonly [Place, Load])[] {
    return [...this.loadsByPlace]
  }

  /** Names set here or in scopes around, the nearest first. */
  get storedNames(): ReadonlySet<string> {
    return new Set([...this.stores, ...(this.parent?.storedNames ?? [])])
  }

  /** The place of a name, here or in a scope around; null for names that nothing was said about. */
  find(name: string): Place | null {
    return this.findHere(name) ?? this.parent?.find(name) ?? null
  }

  private findHere(name: string): Place | undefined {
    return this.known.get(name) ?? this.before?.findHere(name)
  }

  private isStored(name: string): boolean {
    return this.stores.has(name) || (this.before?.isStored(name) ?? false)
  }

  /** A name that is filled from outside: a macro's parameter, a loop's variable. */
  declare(name: string): Place {
    this.stores.add(name)
    return this.define(name, { kind: "parameter" })
  }

  /** A place without a name, for what only the compiler knows of. */
  hidden(): Place {
    const place = { activation: this.activation, index: this.activation.places }
    this.activation.places += 1
    return place
  }

  private define(name: string, load: Load): Place {
    let place = this.own.get(name)
    if (place === undefined) {
      place = this.hidden()
      this.own.set(name, place)
    }
    this.known.set(name, place)
    this.loadsByPlace.set(place, load)
    return place
  }

  private store(name: string): void {
    this.stores.add(name)
    if (this.findHere(name) !== undefined) return
    const outer = this.parent?.find(name) ?? null
    this.define(name, outer === null ? { kind: "missing" } : { kind: "copy", from: outer })
  }

  private load(name: string): void {
    if (this.find(name) === null) this.define(name, { kind: "resolve", name })
  }

  /** The names that an expression reads. */
  reads(expression: Expression): void {
    for (const node of nodesOf([expression])) if (node.type === "name") this.load(node.name)
  }

  /** The names that a target sets; as parameters for those of `for` and `with`. */
  sets(target: Target, asParameters: boolean): void {
    if (target.type === "field") this.load(target.namespace)
    else if (target.type === "targets") for (const item of target.items) this.sets(item, asParameters)
    else if (asParameters) this.declare(target.name)
    else this.store(target.name)
  }

  /** Parameters, with the names that their fallbacks read. */
  takes(parameters: readonly ParameterNode[]): void {
    for (const parameter of parameters) this.declare(parameter.name)
    for (const fallback of fallbacksOf(parameters)) this.reads(fallback)
  }

  /** The names of statements, not going into scopes of their own. */
  runs(statements: readonly Statement[]): void {
    for (const statement of statements) this.runsOne(statement)
  }

  private runsOne(statement: Statement): void {
    switch (statement.type) {
      case "print":
        for (const value of statement.values) this.reads(value)
        break
      case "if":
        this.branches(statement.branches, statement.otherwise)
        break
      case "for":
        this.reads(statement.iterable)
        break
      case "set":
        this.reads(statement.value)
        this.sets(statement.target, false)
        break
      case "set_block":
        this.sets(statement.target, false)
        break
      case "macro":
        this.store(statement.name)
        break
      case "call_block":
        this.reads(statement.call)
        break
      case "filter_block":
        this.reads(statement.filter)
        break
      case "with":
        for (const value of statement.values) this.reads(value)
        break
      case "load":
        this.reads(statement.template)
        for (const name of statement.names) this.store(name)
        break
    }
  }

  /** The branches of an `if`: each sees what was known before; a name that only some of them set is filled at once. */
  private branches(
    branches: readonly { readonly test: Expression; readonly body: readonly Statement[] }[],
    otherwise: readonly Statement[],
  ): void {
    const [first, ...more] = branches
    if (first === undefined) return
    this.reads(first.test)
    const body = this.branch()
    body.runs(first.body)
    const others = this.branch()
    for (const each of more) others.branches([each], [])
    const last = this.branch()
    last.runs(otherwise)
    this.merge([body, others, last])
  }

  private branch(): Scope {
    return new Scope(this.parent, this.activation, this)
  }

  private merge(branches: readonly Scope[]): void {
    const stored = new Set(branches.flatMap((branch) => [...branch.stores]).filter((name) => !this.isStored(name)))
    for (const branch of branches) {
      for (const [name, place] of branch.known) this.known.set(name, place)
      for (const [place, load] of branch.loadsByPlace) this.loadsByPlace.set(place, load)
      for (const name of branch.stores) this.stores.add(name)
    }
    for (const name of stored) {
      const outer = this.parent?.find(name) ?? null
      this.define(name, outer === null ? { kind: "resolve", name } : { kind: "copy", from: outer })
    }
  }
}

/** The given names that the nodes read before they set them: which of `loop`, `caller` … a body asks for. */
export function freeNames(statements: readonly Statement[], wanted: readonly string[]): ReadonlySet<string> {
  const open = new Set(wanted)
  const free = new Set<string>()
  const sets = (names: readonly string[]): void => {
    for (const name of names) open.delete(name)
  }
  const visit = (nodes: Iterable<Statement | Expression>): void => {
    for (const node of nodes) {
      switch (node.type) {
        case "name":
          if (open.has(node.name)) free.add(node.name)
          break
        case "set":
          sets(namesOf(node.target))
          visit([node.value])
          break
        case "set_block":
          sets(namesOf(node.target))
          if (node.filter !== null) visit([node.filter])
          visit(node.body)
          break
        case "for":
          sets(namesOf(node.target))
          visit([node.iterable])
          visit(node.body)
          visit(node.otherwise)
          if (node.test !== null) visit([node.test])
          break
        case "macro":
        case "call_block":
          if (node.type === "call_block") visit([node.call])
          sets(node.parameters.map((parameter) => parameter.name))
          visit(fallbacksOf(node.parameters))
          visit(node.body)
          break
        case "with":
          sets(node.targets.flatMap(namesOf))
          visit(node.values)
          visit(node.body)
          break
        case "if":
          for (const branch of node.branches) {
            visit([branch.test])
            visit(branch.body)
          }
          visit(node.otherwise)
          break
        case "filter_block":
          visit(node.body)
          visit([node.filter])
          break
        case "scope":
        case "generation":
          visit(node.body)
          break
        case "print":
          visit(node.values)
          break
        // Blocks ask for themselves.
        case "block":
        case "data":
        case "break":
        case "continue":
          break
        case "load":
          visit([node.template])
          break
        default:
          for (const inner of nodesOf([node])) if (inner.type === "name" && open.has(inner.name)) free.add(inner.name)
      }
    }
  }
  visit(statements)
  return free
}
