import { describe, expect, test } from "bun:test"
import type { EngineError } from "../../../src/ir/engine"
import { buildMockEngine, MockEngine } from "../../support/mock-engine"
import { type EngineUnderTest, engineContract } from "../contract"
import { eosTokenId, OpenedEngine, scripted, vocabSize } from "./opened-engine"

engineContract("vllm with an engine of our own", async (): Promise<EngineUnderTest> => {
  const opened = new OpenedEngine()
  await opened.attach()
  const failures: { readonly [kind in EngineError["kind"]]?: string } = {
    engine_retryable: "retryable",
    engine_validation: "validation",
    engine_dead: "dead",
  }
  return {
    engine: opened.engine,
    vocabSize,
    eosTokenId,
    request: (tokenIds, sampling, failure) => {
      if (failure === null) return scripted(tokenIds, {}, sampling)
      const planned = failures[failure.kind]
      if (planned === undefined) return null
      return scripted(tokenIds, { test_fail: planned, test_fail_after: failure.afterTokens }, sampling)
    },
    dispose: async () => {
      expect(await opened.dispose()).toEqual([])
    },
  }
}, ["engine_disconnected"])

const mock = buildMockEngine()
if (mock.ok) {
  engineContract("vllm with the stand-in engine", async (): Promise<EngineUnderTest> => {
    const opened = new OpenedEngine()
    const flags = ["--step-ms", "2", "--vocab", String(vocabSize), "--max-model-len", "4096"]
    const engine = MockEngine.start(mock.value, opened.engine.address, flags)
    await opened.until(() => opened.news.includes("ready 0"))
    return {
      engine: opened.engine,
      vocabSize,
      eosTokenId,
      request: (tokenIds, sampling, failure) => (failure === null ? scripted(tokenIds, {}, sampling) : null),
      dispose: () => engine[Symbol.asyncDispose](),
    }
  }, ["engine_retryable", "engine_disconnected", "engine_dead"])
} else {
  describe("Engine contract: vllm with the stand-in engine", () => {
    test.skip(mock.error, () => {})
  })
}
