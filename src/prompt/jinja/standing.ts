import type { Scope } from "./scope"

/** Where an expression stands. */
export interface Position {
  readonly scope: Scope
  /** Inside an `if`: an unknown filter or test is an error only when it is reached. */
  readonly soft: boolean
}

/** Where statements stand. */
export interface Standing extends Position {
  /** At the top of the template: what is set here is seen by blocks. */
  readonly top: boolean
  /** Inside a loop of the same function, which `break` and `continue` may leave. */
  readonly inLoop: boolean
}
