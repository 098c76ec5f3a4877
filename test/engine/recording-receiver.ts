import type { EngineError, EngineOutput, EngineReceiver, FinishReason } from "../../src/ir/engine"
import { Finish, finishReason } from "../../src/ir/engine"

/** One output with what belongs to it copied out of the reused object. */
export interface RecordedOutput {
  readonly tokenIds: readonly number[]
  readonly finish: FinishReason | null
  readonly stopTokenId: number
}

/** Keeps all calls; `ended` resolves with the first end. A call after the end, or inside `submit`, is a broken rule. */
export class RecordingReceiver implements EngineReceiver {
  readonly outputs: RecordedOutput[] = []
  readonly brokenRules: string[] = []
  error: EngineError | null = null
  readonly ended: Promise<FinishReason | EngineError["kind"]>
  /** Called inside each output, after it was kept. */
  onOutput: (output: EngineOutput) => void = () => {}
  private end: (how: FinishReason | EngineError["kind"]) => void = () => {}
  private closedBy: string | null = "submit, before it returned"

  constructor() {
    this.ended = new Promise((resolve) => {
      this.end = resolve
    })
  }

  /** To be called once submit has returned. */
  submitted(): void {
    this.closedBy = null
  }

  /** To be called with an abort: nothing may come behind it. */
  aborted(): void {
    this.closedBy = "abort"
  }

  get tokenIds(): number[] {
    return this.outputs.flatMap((output) => output.tokenIds)
  }

  get finish(): FinishReason | null {
    return this.outputs.at(-1)?.finish ?? null
  }

  output(output: EngineOutput): void {
    if (this.closedBy !== null) this.brokenRules.push(`output after ${this.closedBy}`)
    const finish = output.finish === Finish.none ? null : finishReason(output.finish)
    this.outputs.push({
      tokenIds: Array.from(output.tokenIds.subarray(output.start, output.end)),
      finish,
      stopTokenId: output.stopTokenId,
    })
    if (finish !== null) {
      this.closedBy = "finish"
      this.end(finish)
    }
    this.onOutput(output)
  }

  fail(error: EngineError): void {
    if (this.closedBy !== null) this.brokenRules.push(`fail after ${this.closedBy}`)
    this.error = error
    this.closedBy = "fail"
    this.end(error.kind)
  }
}
