/** What one rendering may cost. A template comes from a model's folder or a client: it is a program that nobody read. */
export interface TemplateLimits {
  /** Loop rounds, things printed, calls, filters and the items that they take, together. */
  readonly stepsMax: number
  /** UTF-16 units of the prompt, and of any one text. */
  readonly textUnitsMax: number
  /** UTF-16 units of texts and items of lists made by repeating, padding, joining and the like, together. */
  readonly builtUnitsMax: number
  /** Macros, callers and recursive loops inside each other. Python's own limit on calls is near it. */
  readonly callDepthMax: number
  /** Milliseconds of one rendering, looked at every few hundred steps. */
  readonly millisecondsMax: number
}

/** Far above what chat templates need: the largest prompts take a few thousand steps and some milliseconds. */
export const templateLimits: TemplateLimits = {
  stepsMax: 5_000_000,
  textUnitsMax: 32 * 1024 * 1024,
  builtUnitsMax: 128 * 1024 * 1024,
  callDepthMax: 250,
  millisecondsMax: 5_000,
}

/** What time it is: `now` for templates that print it, `elapsed` (milliseconds from any start) for the limit. */
export interface TemplateClock {
  readonly now: () => Date
  readonly elapsed: () => number
}

/** The computer's clock. */
export const systemClock: TemplateClock = { now: () => new Date(), elapsed: () => performance.now() }

/** A failure of the template itself: its message is Python's or Jinja's wording as near as it is known. */
export class TemplateError extends Error {}

/** Steps between two looks at the clock. */
const stepsBetweenLooks = 256
/** What an item of a list counts, in units of texts: about its place in memory. */
const unitsPerItem = 4
/** Units that operations may make or go through without a look at the clock. */
const quickUnits = 65_536

/** Units compared at most while a text is looked for in another: a bad pair takes the product of their lengths. */
const searchedUnitsMax = 2 ** 32

/** The state that all parts of one rendering share: what is left of its limits. Throws `TemplateError` past them. */
export class Run {
  readonly clock: TemplateClock
  private readonly limits: TemplateLimits
  private steps = 0
  private builtUnits = 0
  /** Units gone through since the last look at the clock. */
  private unseenUnits = 0
  private callDepth = 0
  private deadline = -1

  constructor(clock: TemplateClock, limits: TemplateLimits) {
    this.clock = clock
    this.limits = limits
  }

  /** Counts one step. */
  step(): void {
    this.steps += 1
    if (this.steps % stepsBetweenLooks === 0) this.look()
  }

  /** Counts what an operation is about to go through: texts and lists can be long, and the clock must be seen in time. */
  work(units: number): void {
    this.unseenUnits += units
    if (this.unseenUnits > quickUnits) this.look()
  }

  /** Counts a search, and refuses one that could take for ever: nothing can look at the clock inside it. */
  search(text: string, wanted: string): void {
    this.work(text.length)
    if (text.length * wanted.length > searchedUnitsMax && wanted.length <= text.length) {
      throw new TemplateError("the template searches too long a text for too long a text")
    }
  }

  /** Counts what an operation is about to make. */
  build(units: number): void {
    this.builtUnits += units
    if (units > this.limits.textUnitsMax || this.builtUnits > this.limits.builtUnitsMax) {
      throw new TemplateError("the template builds too much text")
    }
    if (units > quickUnits) this.look()
  }

  /** Counts the items of a list or dictionary that an operation is about to make, or has just made. */
  buildItems(items: number): void {
    this.build(items * unitsPerItem)
  }

  /** Checks the length of a text that grew. */
  checkText(units: number): void {
    if (units > this.limits.textUnitsMax) throw new TemplateError("the template builds too much text")
  }

  /** Goes into a call; `leave` must follow, unless the rendering ends. */
  enter(): void {
    this.step()
    this.callDepth += 1
    if (this.callDepth > this.limits.callDepthMax) throw new TemplateError("the template's calls nest too deeply")
  }

  /** Comes back from a call. */
  leave(): void {
    this.callDepth -= 1
  }

  private look(): void {
    this.unseenUnits = 0
    if (this.steps > this.limits.stepsMax) throw new TemplateError("the template takes too many steps")
    const elapsed = this.clock.elapsed()
    // The first look comes early enough to start the time here: short renderings never ask for it.
    if (this.deadline < 0) this.deadline = elapsed + this.limits.millisecondsMax
    else if (elapsed > this.deadline) throw new TemplateError("the template takes too long")
  }
}
