/**
 * How many tokens a prompt and its reply may have together: the model's window, or that of its engines where theirs is
 * smaller. Engines tell theirs when they come (ENGINE_PROTOCOL 2), so it may change while the server runs.
 */
export class ServedWindow {
  readonly modelTokens: number
  /** What holds now. */
  tokensMax: number

  constructor(modelTokens: number) {
    this.modelTokens = modelTokens
    this.tokensMax = modelTokens
  }

  /** The smallest window of the engines; theirs may also be larger than the model's, which then holds. */
  limit(engineTokens: number): void {
    this.tokensMax = Math.min(this.modelTokens, engineTokens)
  }
}
