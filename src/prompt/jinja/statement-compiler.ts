import { assigning, checkingNamespaces } from "./assignment"
import { compileCall, compileExpression, compileFilter } from "./expression-compiler"
import {
  breakOut,
  Context,
  type Evaluate,
  type Execute,
  type Flow,
  Frame,
  goOn,
  missing,
  nextRound,
  Output,
} from "./frame"
import { Loop, type Recurse } from "./loop"
import type { Macro } from "./macro"
import { compileMacro, type MacroParts } from "./macro-compiler"
import { OwnBlocks, type Program } from "./own-blocks"
import { text } from "./repr"
import { TemplateError } from "./run"
import { Activation, freeNames, Scope } from "./scope"
import { entering, frameReader } from "./scope-entry"
import type { Position, Standing } from "./standing"
import {
  type BlockNode,
  type CallBlockNode,
  type Expression,
  type FilterNode,
  type ForNode,
  namesOf,
  nodesOf,
  type SetBlockNode,
  type Statement,
  type Target,
  type WithNode,
} from "./syntax"
import { iterate, Lazy, noArguments, truthy, type Value } from "./value"

/** Compiles a template's statements to closures. Throws `TemplateError` for what is wrong whatever is rendered. */
export function compileProgram(statements: readonly Statement[]): Program {
  return new StatementCompiler().program(statements)
}

class StatementCompiler {
  private readonly blocks = new Map<string, Program>()

  /** Compiles a function without values around it: the template itself, or a block. */
  program(statements: readonly Statement[], top = true): Program {
    const activation = new Activation(null)
    const scope = new Scope(null, activation)
    const self = freeNames(statements, ["self"]).has("self") ? scope.declare("self") : null
    scope.runs(statements)
    const enter = entering(scope)
    const body = this.sequence(statements, { scope, soft: false, top, inLoop: false })
    return (context, run) => {
      const frame = new Frame(activation.places, null, context, run)
      const out = new Output(run)
      if (self !== null) frame.held[self.index] = new OwnBlocks(this.blocks, context)
      enter(frame)
      body(frame, out)
      return out.joined()
    }
  }

  private sequence(statements: readonly Statement[], at: Standing): Execute {
    const [first, ...more] = statements.map((statement) => this.statement(statement, at))
    if (first === undefined) return () => goOn
    if (more.length === 0) return first
    const all = [first, ...more]
    return (frame, out) => {
      for (let i = 0; i < all.length; i++) {
        const flow = all[i]!(frame, out)
        if (flow !== goOn) return flow
      }
      return goOn
    }
  }

  private statement(node: Statement, at: Standing): Execute {
    switch (node.type) {
      case "data": {
        const part = node.text
        return (_frame, out) => {
          out.print(part)
          return goOn
        }
      }
      case "print":
        return this.print(node.values, at)
      case "if":
        return this.if(node.branches, node.otherwise, at)
      case "for":
        return node.recursive ? this.recursiveLoop(node, at) : this.loop(node, at)
      case "set": {
        const value = compileExpression(node.value, at)
        const check = checkingNamespaces(node.target, at)
        const assign = assigning(node.target, at)
        return (frame) => {
          check(frame)
          assign(frame, value(frame))
          return goOn
        }
      }
      case "set_block":
        return this.setBlock(node, at)
      case "macro": {
        const macro = this.macro(node, at)
        const assign = assigning({ type: "name", name: node.name }, at)
        return (frame) => {
          assign(frame, macro(frame))
          return goOn
        }
      }
      case "call_block":
        return this.callBlock(node, at)
      case "filter_block": {
        const scope = at.scope.inner()
        scope.reads(node.filter)
        scope.runs(node.body)
        const inner = { ...at, scope, soft: false, top: false }
        const enter = entering(scope)
        const filtered = this.filtered(node.body, node.filter, inner)
        return (frame, out) => {
          enter(frame)
          return filtered(frame, (value) => out.printUnchanged(value))
        }
      }
      case "with":
        return this.with(node, at)
      case "scope": {
        const scope = at.scope.inner()
        scope.runs(node.body)
        const enter = entering(scope)
        const body = this.sequence(node.body, { ...at, scope, soft: false, top: false })
        return (frame, out) => {
          enter(frame)
          return body(frame, out)
        }
      }
      case "generation": {
        // The reference calls it as a macro: what is set inside is not seen outside.
        const body = this.macro({ name: null, parameters: [], body: node.body }, at)
        return (frame, out) => {
          out.print(text(body(frame).call(noArguments, frame.run), frame.run))
          return goOn
        }
      }
      case "block":
        return this.block(node, at)
      case "load": {
        const template = compileExpression(node.template, at)
        return (frame) => {
          template(frame)
          throw new TemplateError("no loader for this environment specified")
        }
      }
      case "break":
      case "continue":
        if (!at.inLoop) throw new TemplateError(`line ${node.line}: '${node.type}' outside loop`)
        return () => (node.type === "break" ? breakOut : nextRound)
    }
  }

  private print(values: readonly Expression[], at: Standing): Execute {
    const [first, ...more] = values.map((value) => compileExpression(value, at))
    if (first === undefined) return () => goOn
    return (frame, out) => {
      out.print(text(first(frame), frame.run))
      for (const value of more) out.print(text(value(frame), frame.run))
      return goOn
    }
  }

  private if(
    branchNodes: readonly { readonly test: Expression; readonly body: readonly Statement[] }[],
    otherwiseNodes: readonly Statement[],
    outer: Standing,
  ): Execute {
    const at = { ...outer, soft: true }
    const branches = branchNodes.map(({ test, body }) => ({
      test: compileExpression(test, at),
      body: this.sequence(body, at),
    }))
    // Each branch is the last one's `else`.
    return branches.reduceRight<Execute>(
      (otherwise, { test, body }) =>
        (frame, out) =>
          truthy(test(frame)) ? body(frame, out) : otherwise(frame, out),
      this.sequence(otherwiseNodes, at),
    )
  }

  /** A block's text instead of its printing. */
  private captured(statements: readonly Statement[], at: Standing): (frame: Frame) => string {
    const body = this.sequence(statements, at)
    return (frame) => {
      const out = new Output(frame.run)
      body(frame, out)
      return out.joined()
    }
  }

  /** A block's text, through a filter or several. */
  private filtered(statements: readonly Statement[], filter: FilterNode | null, at: Standing): Captured {
    const body = this.sequence(statements, at)
    const { index } = at.scope.hidden()
    const block: Evaluate = (frame) => held(frame, index)
    const value = filter === null ? block : compileFilterChain(filter, at, block)
    return (frame, take) => {
      const out = new Output(frame.run)
      const flow = body(frame, out)
      // A loop that is left from inside the block leaves its text behind.
      if (flow !== goOn) return flow
      frame.held[index] = out.joined()
      take(value(frame))
      return goOn
    }
  }

  private setBlock(node: SetBlockNode, at: Standing): Execute {
    const scope = at.scope.inner()
    scope.runs(node.body)
    const enter = entering(scope)
    const inner = { ...at, scope, soft: false, top: false }
    const filtered = this.filtered(node.body, node.filter, inner)
    const check = checkingNamespaces(node.target, at)
    const assign = assigning(node.target, at)
    return (frame) => {
      check(frame)
      enter(frame)
      return filtered(frame, (value) => assign(frame, value))
    }
  }

  private with(node: WithNode, at: Standing): Execute {
    const scope = at.scope.inner()
    for (const target of node.targets) scope.sets(target, true)
    scope.runs(node.body)
    const enter = entering(scope)
    const inner = { ...at, scope, soft: false, top: false }
    // Values are read outside: one does not see the others.
    const values = node.values.map((value) => compileExpression(value, at))
    const assigns = node.targets.map((target) => assigning(target, inner))
    const body = this.sequence(node.body, inner)
    return (frame, out) => {
      enter(frame)
      for (let i = 0; i < values.length; i++) assigns[i]!(frame, values[i]!(frame))
      return body(frame, out)
    }
  }

  private loop(node: ForNode, at: Standing): Execute {
    const iterable = compileExpression(node.iterable, at)
    const run = this.loopBody(node, at, at.scope)
    return (frame, out) => run(frame, out, iterable(frame), 0, null)
  }

  /** The body is a function of its own: `loop(items)` calls it again. */
  private recursiveLoop(node: ForNode, at: Standing): Execute {
    const iterable = compileExpression(node.iterable, at)
    const activation = new Activation(at.scope.activation)
    const run = this.loopBody(node, { ...at, inLoop: false }, at.scope, activation)
    return (frame, out) => {
      const render: Recurse = (items, depth0) => {
        frame.run.enter()
        const inner = new Frame(activation.places, frame, frame.context, frame.run)
        const innerOut = new Output(frame.run)
        run(inner, innerOut, items, depth0, render)
        frame.run.leave()
        return innerOut.joined()
      }
      out.print(render(iterable(frame), 0))
      return goOn
    }
  }

  private loopBody(node: ForNode, at: Standing, outer: Scope, activation = outer.activation): RunLoop {
    if (setsLoop(node)) throw new TemplateError("Can't assign to special loop variable in for-loop target")
    const scope = outer.inner(activation)
    const asksForLoop = node.recursive || freeNames(node.body, ["loop"]).has("loop") || hasScopedBlock(node)
    const loopPlace = asksForLoop ? scope.declare("loop") : null
    scope.sets(node.target, true)
    scope.runs(node.body)
    const otherwiseScope = outer.inner(activation)
    otherwiseScope.runs(node.otherwise)
    const standing = { ...at, soft: false, top: false }
    const bind = assigning(node.target, { ...standing, scope })
    const enter = entering(scope)
    const body = this.sequence(node.body, { ...standing, scope, inLoop: true })
    const enterOtherwise = entering(otherwiseScope)
    const otherwise = this.sequence(node.otherwise, { ...standing, scope: otherwiseScope })
    const filter = node.test === null ? null : this.loopFilter(node.target, node.test, at, outer, activation)
    return (frame, out, iterable, depth0, recurse) => {
      const source = iterate(iterable, frame.run)
      const items = filter === null ? source : filter(frame, source)
      const loop = new Loop(items, depth0, recurse, frame.run)
      // A round that is left early does not count as one, so `else` may follow it: so does the reference.
      let hasCompleted = false
      while (loop.next()) {
        frame.run.step()
        bind(frame, loop.current)
        if (loopPlace !== null) frame.held[loopPlace.index] = loop
        enter(frame)
        const flow = body(frame, out)
        if (flow === breakOut) break
        if (flow === goOn) hasCompleted = true
      }
      if (hasCompleted) return goOn
      enterOtherwise(frame)
      return otherwise(frame, out)
    }
  }

  /** `for … if test`: items are tested one by one, as the loop comes to them. */
  private loopFilter(target: Target, testNode: Expression, at: Standing, outer: Scope, activation: Activation) {
    const scope = outer.inner(activation)
    scope.sets(target, true)
    scope.reads(testNode)
    const standing = { ...at, scope, soft: false, top: false }
    const bind = assigning(target, standing)
    const test = compileExpression(testNode, standing)
    const enter = entering(scope)
    function* accepted(frame: Frame, items: readonly Value[] | Lazy): Generator<Value> {
      enter(frame)
      for (const item of items) {
        frame.run.step()
        bind(frame, item)
        if (truthy(test(frame))) yield item
      }
    }
    return (frame: Frame, items: readonly Value[] | Lazy): Lazy => new Lazy("generator", accepted(frame, items))
  }

  private callBlock(node: CallBlockNode, at: Standing): Execute {
    const caller = this.macro({ name: null, parameters: node.parameters, body: node.body }, at)
    const call = compileCall(node.call, at, caller)
    return (frame, out) => {
      out.printUnchanged(call(frame))
      return goOn
    }
  }

  private macro(node: MacroParts, at: Standing): (frame: Frame) => Macro {
    return compileMacro(node, at, (statements, standing) => this.captured(statements, standing))
  }

  private block(node: BlockNode, at: Standing): Execute {
    if (this.blocks.has(node.name)) throw new TemplateError(`block '${node.name}' defined twice`)
    // Known by name before it is compiled, so that a block inside it cannot have the same one.
    this.blocks.set(node.name, () => "")
    const body = this.program(node.body, false)
    this.blocks.set(node.name, body)
    const { scope } = at
    const locals = node.scoped ? [...scope.storedNames].map((name) => [name, scope.find(name)!] as const) : []
    const readers = locals.map(([name, place]) => [name, place.index, frameReader(place, scope)] as const)
    return (frame, out) => {
      if (node.required) throw new TemplateError(`Required block '${node.name}' not found`)
      const seen = new Map<string, Value>()
      for (const [name, index, frameOf] of readers) {
        const held = frameOf(frame).held[index]
        if (held !== missing) seen.set(name, held)
      }
      out.print(body(new Context(seen, frame.context), frame.run))
      return goOn
    }
  }
}

/** Runs a block and hands over its value, unless the block leaves a loop. */
type Captured = (frame: Frame, take: (value: Value) => void) => Flow

type RunLoop = (frame: Frame, out: Output, iterable: Value, depth0: number, recurse: Recurse | null) => Flow

function hasScopedBlock(node: ForNode): boolean {
  for (const inside of nodesOf([node])) if (inside.type === "block" && inside.scoped) return true
  return false
}

/** Whether a loop, or anything in it, sets a variable called `loop`. */
function setsLoop(node: ForNode): boolean {
  for (const inside of nodesOf([node])) {
    if (inside.type !== "for" && inside.type !== "set" && inside.type !== "set_block") continue
    if (namesOf(inside.target).includes("loop")) return true
  }
  return false
}

function held(frame: Frame, index: number): Value {
  const value = frame.held[index]
  return value === missing ? undefined : value
}

/** Filters one behind the other on the text of a block. */
function compileFilterChain(node: FilterNode, at: Position, block: Evaluate): Evaluate {
  const { operand } = node
  const inner = operand === null || operand.type !== "filter" ? block : compileFilterChain(operand, at, block)
  return compileFilter(node, at, inner)
}
