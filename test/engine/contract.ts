/**
 * What every Engine plug must do, whatever computes behind it. A plug's test file calls `engineContract` with a way to
 * open the engine and to say what it shall generate.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import type { Engine, EngineError, EngineSequence } from "../../src/ir/engine"
import type { GenerateRequest } from "../../src/ir/generate-request"
import type { SamplingParams } from "../../src/ir/sampling"
import { samplingParams } from "../support/add-request"
import { RecordingReceiver } from "./recording-receiver"

/** How the engine shall fail, and after how many tokens. */
export interface PlannedFailure {
  readonly kind: EngineError["kind"]
  readonly afterTokens: number
}

/** One engine to be tested, with real time behind it. */
export interface EngineUnderTest {
  readonly engine: Engine
  readonly vocabSize: number
  readonly eosTokenId: number
  /**
   * A request to which the engine generates `tokenIds` and then EOS, one token a step, at some milliseconds a step.
   * Null when the engine cannot be made to fail that way; the suite then wants it among `Unplayable`.
   */
  request(
    tokenIds: readonly number[],
    sampling: Partial<SamplingParams>,
    failure: PlannedFailure | null,
  ): GenerateRequest | null
  /** Frees what `engine.close` does not. */
  dispose(): Promise<void>
}

/** Sampling parameters as an endpoint without any wish would make them, with much room for the reply. */
export function samplingOf(changes: Partial<SamplingParams>): SamplingParams {
  return samplingParams({ maxTokens: 1_000, ...changes })
}

/** A request with ids for its prompt. */
export function requestOf(
  promptTokenIds: readonly number[],
  sampling: SamplingParams,
  eosTokenIds: readonly number[],
): GenerateRequest {
  return {
    requestId: `test-${crypto.randomUUID()}`,
    promptTokenIds: Uint32Array.from(promptTokenIds),
    sampling,
    eosTokenIds: sampling.ignoreEos ? [] : eosTokenIds,
    priority: 0,
    cacheSalt: null,
    sessionId: null,
    dataParallelRank: null,
    traceHeaders: null,
  }
}

/** Submits and keeps the rule that nothing is called before submit returns. */
export function submitTo(
  engine: Engine,
  request: GenerateRequest,
): { readonly receiver: RecordingReceiver; readonly sequence: EngineSequence } {
  const receiver = new RecordingReceiver()
  const submitted = engine.submit(request, receiver)
  receiver.submitted()
  if (!submitted.ok) throw new Error(`submit refused: ${submitted.error.message}`)
  return { receiver, sequence: submitted.value }
}

/** Failures that a plug cannot be told to play: their cases are skipped, each with a line of test/skips.txt. */
export type Unplayable = readonly EngineError["kind"][]

/** Registers the suite for one plug. */
export function engineContract(name: string, open: () => Promise<EngineUnderTest>, unplayable: Unplayable = []): void {
  describe(`Engine contract: ${name}`, () => {
    let under: EngineUnderTest
    const receivers: RecordingReceiver[] = []

    beforeEach(async () => {
      under = await open()
    })

    afterEach(async () => {
      await under.engine.close()
      await under.dispose()
      expect(receivers.splice(0).flatMap((receiver) => receiver.brokenRules)).toEqual([])
    })

    function submit(
      tokenIds: readonly number[],
      sampling: Partial<SamplingParams> = {},
      failure: PlannedFailure | null = null,
    ): { readonly receiver: RecordingReceiver; readonly sequence: EngineSequence } {
      const request = under.request(tokenIds, sampling, failure)
      if (request === null) throw new Error("the engine cannot be asked for this")
      const submitted = submitTo(under.engine, request)
      receivers.push(submitted.receiver)
      return submitted
    }

    function counts(): { readonly running: number; readonly waiting: number } {
      const { running, waiting } = under.engine.status()
      return { running, waiting }
    }

    test("gives the tokens in their order, then EOS, and finishes with stop", async () => {
      const { receiver } = submit([10, 11, 12, 13])
      expect(await receiver.ended).toBe("stop")
      expect(receiver.tokenIds).toEqual([10, 11, 12, 13, under.eosTokenId])
      expect(receiver.outputs.at(-1)).toMatchObject({ finish: "stop", stopTokenId: -1 })
      expect(counts()).toEqual({ running: 0, waiting: 0 })
    })

    test("gives only ids of the vocabulary", async () => {
      const { receiver } = submit([0, 1, 2, 3])
      await receiver.ended
      expect(receiver.tokenIds.filter((id) => id < 0 || id >= under.vocabSize)).toEqual([])
    })

    test("ends at maxTokens with length", async () => {
      const { receiver } = submit([10, 11, 12, 13], { maxTokens: 2 })
      expect(await receiver.ended).toBe("length")
      expect(receiver.tokenIds).toEqual([10, 11])
    })

    test("ends at a stop id, which it includes and names", async () => {
      const { receiver } = submit([10, 11, 12, 13], { stopTokenIds: [12] })
      expect(await receiver.ended).toBe("stop")
      expect(receiver.tokenIds).toEqual([10, 11, 12])
      expect(receiver.outputs.at(-1)!.stopTokenId).toBe(12)
    })

    test("prefers stop to length when both fall on one token", async () => {
      const { receiver } = submit([10, 11, 12], { stopTokenIds: [11], maxTokens: 2 })
      expect(await receiver.ended).toBe("stop")
      expect(receiver.tokenIds).toEqual([10, 11])
    })

    test("does not end on EOS under ignoreEos", async () => {
      const { receiver } = submit([10, under.eosTokenId, 11], { ignoreEos: true, maxTokens: 3 })
      expect(await receiver.ended).toBe("length")
      expect(receiver.tokenIds).toEqual([10, under.eosTokenId, 11])
    })

    test("runs 64 sequences side by side without mixing them up", async () => {
      const all = Array.from({ length: 64 }, (_, i) => submit([i, i + 1, i + 2]))
      await Promise.all(all.map(({ receiver }) => receiver.ended))
      expect(all.map(({ receiver }) => receiver.tokenIds)).toEqual(
        all.map((_, i) => [i, i + 1, i + 2, under.eosTokenId]),
      )
      expect(counts()).toEqual({ running: 0, waiting: 0 })
    })

    test("counts a sequence from submit on, and no longer once it is aborted", async () => {
      const first = submit(new Array<number>(500).fill(7))
      const second = submit(new Array<number>(500).fill(8))
      expect(counts().running + counts().waiting).toBe(2)
      first.sequence.abort()
      first.receiver.aborted()
      expect(counts().running + counts().waiting).toBe(1)
      first.sequence.abort()
      second.sequence.abort()
      second.receiver.aborted()
      expect(counts()).toEqual({ running: 0, waiting: 0 })
      const third = submit([10])
      await third.receiver.ended
      expect(first.receiver.outputs.length + second.receiver.outputs.length).toBe(0)
    })

    test("may be told to abort from inside an output, itself and others", async () => {
      const long = new Array<number>(500).fill(9)
      const victim = submit(long)
      const killer = submit(long)
      const both = new Promise<void>((resolve) => {
        killer.receiver.onOutput = () => {
          victim.sequence.abort()
          victim.receiver.aborted()
          killer.sequence.abort()
          killer.receiver.aborted()
          resolve()
        }
      })
      await both
      expect(counts()).toEqual({ running: 0, waiting: 0 })
      expect((await submit([10]).receiver.ended) as string).toBe("stop")
      expect(killer.receiver.outputs).toHaveLength(1)
    })

    test("may be given a new request from inside an output", async () => {
      const first = submit([10, 11])
      const inner = new Promise<RecordingReceiver>((resolve) => {
        first.receiver.onOutput = () => {
          first.receiver.onOutput = () => {}
          resolve(submit([20, 21]).receiver)
        }
      })
      const second = await inner
      expect(await second.ended).toBe("stop")
      await first.receiver.ended
      expect([first.receiver.tokenIds, second.tokenIds]).toEqual([
        [10, 11, under.eosTokenId],
        [20, 21, under.eosTokenId],
      ])
    })

    for (const kind of ["engine_retryable", "engine_disconnected", "engine_dead"] as const) {
      test.skipIf(unplayable.includes(kind))(`fails a sequence with ${kind} after the tokens it gave`, async () => {
        const request = under.request([10, 11, 12, 13], {}, { kind, afterTokens: 2 })
        if (request === null) throw new Error(`this engine cannot be told to fail with ${kind}`)
        const { receiver } = submitTo(under.engine, request)
        receivers.push(receiver)
        expect(await receiver.ended).toBe(kind)
        expect(receiver.tokenIds).toEqual([10, 11])
        expect(counts()).toEqual({ running: 0, waiting: 0 })
      })
    }

    test.skipIf(unplayable.includes("engine_dead"))("fails what runs when it dies, then refuses new ones", async () => {
      const dying = under.request([10], {}, { kind: "engine_dead", afterTokens: 0 })
      if (dying === null) throw new Error("this engine cannot be told to die")
      const others = Array.from({ length: 3 }, () => submit(new Array<number>(500).fill(7)))
      const killer = submitTo(under.engine, dying)
      const all = [...others, killer].map(({ receiver }) => receiver)
      receivers.push(killer.receiver)
      expect(await Promise.all(all.map((receiver) => receiver.ended))).toEqual(all.map(() => "engine_dead"))
      expect(under.engine.status()).toMatchObject({ alive: false, running: 0, waiting: 0 })
      const refused = under.engine.submit(under.request([10], {}, null)!, new RecordingReceiver())
      // An engine that may come back by itself is worth another try.
      if (refused.ok) throw new Error("a dead engine took a request")
      expect(["engine_dead", "engine_retryable"]).toContain(refused.error.kind)
    })

    test("ends what runs when it is closed, refuses what comes after, and may be closed twice", async () => {
      const running = submit(new Array<number>(500).fill(7))
      await under.engine.close()
      expect(["abort", "engine_dead", "engine_disconnected"]).toContain(await running.receiver.ended)
      expect(under.engine.status()).toMatchObject({ alive: false, ready: false, running: 0, waiting: 0 })
      const refused = under.engine.submit(under.request([10], {}, null)!, new RecordingReceiver())
      expect(refused).toMatchObject({ ok: false, error: { kind: "engine_dead" } })
      await under.engine.close()
      running.sequence.abort()
    })
  })
}
