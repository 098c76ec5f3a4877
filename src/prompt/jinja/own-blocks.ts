import type { Context } from "./frame"
import type { Run } from "./run"
import { Callable, Special, type Value } from "./value"

/** A whole template, compiled. */
export type Program = (context: Context, run: Run) => string

/** Jinja's `self`: the template's blocks, to be called by name. */
export class OwnBlocks extends Special {
  readonly typeName = "TemplateReference"
  private readonly blocks: ReadonlyMap<string, Program>
  private readonly context: Context

  constructor(blocks: ReadonlyMap<string, Program>, context: Context) {
    super()
    this.blocks = blocks
    this.context = context
  }

  override attribute(name: string): Value {
    const block = this.blocks.get(name)
    if (block === undefined) return undefined
    return new Callable(`BlockReference ${name}`, (_given, run) => {
      run.enter()
      const rendered = block(this.context, run)
      run.leave()
      return rendered
    })
  }

  override repr(): string {
    return "<TemplateReference None>"
  }
}
