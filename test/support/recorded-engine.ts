import { spyOn } from "bun:test"
import { Simulator } from "../../src/engine/simulator"
import type { EngineOutput, EngineReceiver } from "../../src/ir/engine"
import type { GenerateRequest } from "../../src/ir/generate-request"

/** Moments of one output; seconds on the engine's clock. */
export interface RecordedOutput {
  readonly tokens: number
  readonly at: number
  readonly queuedAt: number
  readonly scheduledAt: number
}

/** What engines of this process were asked while it was watched, and what they gave. */
export interface EngineRecord extends Disposable {
  readonly requests: GenerateRequest[]
  /** Of all requests, in the order in which they came. */
  readonly outputs: RecordedOutput[]
}

/** Watches every simulator of this process until it is disposed of. Prompt ids are copied. */
export function recordEngine(): EngineRecord {
  const requests: GenerateRequest[] = []
  const outputs: RecordedOutput[] = []
  const submit = Simulator.prototype.submit
  const spy = spyOn(Simulator.prototype, "submit").mockImplementation(function (
    this: Simulator,
    request: GenerateRequest,
    receiver: EngineReceiver,
  ) {
    requests.push({ ...request, promptTokenIds: request.promptTokenIds.slice(), sampling: { ...request.sampling } })
    return submit.call(this, request, {
      output: (output: EngineOutput) => {
        const { start, end, at, queuedAt, scheduledAt } = output
        outputs.push({ tokens: end - start, at, queuedAt, scheduledAt })
        receiver.output(output)
      },
      fail: (error) => receiver.fail(error),
    })
  })
  return { requests, outputs, [Symbol.dispose]: () => spy.mockRestore() }
}
