import { defaultConfig, type VllmConfig } from "../../../src/config"
import { VllmEngine, type VllmPorts } from "../../../src/engine/vllm/client"
import type { Json } from "../../../src/ir/conversation"
import type { GenerateRequest } from "../../../src/ir/generate-request"
import type { SamplingParams } from "../../../src/ir/sampling"
import { TestEngine, type TestEngineOptions } from "../../support/test-engine"
import { requestOf, samplingOf } from "../contract"

/** The vocabulary of test engines, and its end. */
export const vocabSize = 300
export const eosTokenId = 299

/** A front end for engines, with what it said, and engines that dial it. */
export class OpenedEngine {
  readonly engine: VllmEngine
  readonly log: string[] = []
  /** `ready 0` and `lost 0: …`, as the root hears of them. */
  readonly news: string[] = []
  readonly engines: TestEngine[] = []
  private waiting: { readonly holds: () => boolean; readonly resolve: () => void }[] = []

  /** Listens at a free port. No watch for hangs unless the configuration says so. */
  constructor(config: Partial<VllmConfig> = {}, ports: Partial<VllmPorts> = {}) {
    const opened = VllmEngine.open(
      { ...defaultConfig.vllm, rpcPort: 0, hangTimeoutMs: 0, ...config },
      {
        contextTokensMax: 4_096,
        vocabSize,
        isMixtureOfExperts: false,
        queuedRequestsMax: null,
        encode: (text) => Uint32Array.from(text, (char) => char.charCodeAt(0) & 0xff),
        log: (line) => {
          this.log.push(line)
          this.look()
        },
        ready: (rank) => this.tell(`ready ${rank}`),
        lost: (rank, reason) => this.tell(`lost ${rank}: ${reason}`),
        now: () => performance.now(),
        ...ports,
      },
    )
    if (!opened.ok) throw new Error(opened.error.message)
    this.engine = opened.value
  }

  /** An engine that has dialled, and perhaps not registered yet. */
  dial(options: Partial<TestEngineOptions> = {}): TestEngine {
    const engine = new TestEngine({ address: this.engine.address, vocabSize, ...options })
    this.engines.push(engine)
    return engine
  }

  /** An engine that takes requests. */
  async attach(options: Partial<TestEngineOptions> = {}): Promise<TestEngine> {
    const before = this.readyCount(options.rank ?? 0)
    const engine = this.dial(options)
    await this.until(() => this.readyCount(engine.rank) > before)
    return engine
  }

  /** Resolves as soon as the condition holds; looks again after all news and log lines. */
  until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push({ holds, resolve }))
  }

  /** Waits for these words in the log. */
  said(words: string): Promise<void> {
    return this.until(() => this.log.some((line) => line.includes(words)))
  }

  /** Ends everything; gives what a real engine would have died of. */
  async dispose(): Promise<string[]> {
    await this.engine.close()
    for (const engine of this.engines) engine.vanish()
    return this.engines.flatMap((engine) => engine.deaths)
  }

  private readyCount(rank: number): number {
    return this.news.filter((line) => line === `ready ${rank}`).length
  }

  private tell(line: string): void {
    this.news.push(line)
    this.look()
  }

  private look(): void {
    const done = this.waiting.filter(({ holds }) => holds())
    this.waiting = this.waiting.filter((each) => !done.includes(each))
    for (const { resolve } of done) resolve()
  }
}

/** A request whose tokens the engine is told, and what else it is told. */
export function scripted(
  tokenIds: readonly number[],
  more: { readonly [name: string]: Json } = {},
  sampling: Partial<SamplingParams> = {},
): GenerateRequest {
  const extraArgs = { mock_tokens: [...tokenIds], ...more }
  return requestOf([1, 2, 3], samplingOf({ ...sampling, extraArgs }), [eosTokenId])
}

/** A request that runs for as long as a test takes. */
export function endless(): GenerateRequest {
  return requestOf([1, 2, 3], samplingOf({ maxTokens: 4_000, ignoreEos: true }), [])
}
