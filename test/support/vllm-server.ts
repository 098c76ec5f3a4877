/** The whole server in this process with vLLM engines behind it: engines of ours, or stand-ins, dial it. */
import { type Config, defaultConfig, type VllmConfig } from "../../src/config"
import type { ModelProfile } from "../../src/model/profile"
import { TestEngine, type TestEngineOptions } from "./test-engine"
import { startTestServer, type TestServer, until } from "./test-server"

/** A running server, and what its engines dial. */
export interface VllmTestServer extends TestServer {
  readonly address: string
  /** An engine of ours that takes requests. */
  attach(options?: Partial<TestEngineOptions>): Promise<TestEngine>
  /** Waits for the log to hold these words. */
  said(words: string): Promise<void>
}

/** Starts a server without engines. */
export async function startVllmServer(
  vllm: Partial<VllmConfig> = {},
  profile: Partial<ModelProfile> = {},
  config: Partial<Config> = {},
): Promise<VllmTestServer> {
  const server = await startTestServer({
    config: { ...config, engine: "vllm", vllm: { ...defaultConfig.vllm, rpcPort: 0, hangTimeoutMs: 0, ...vllm } },
    profile,
  })
  const dialled = /^engines dial (\S+)$/
  const address = dialled.exec(server.log.find((line) => dialled.test(line)) ?? "")?.[1]
  if (address === undefined) throw new Error("the server does not say what engines dial")
  const engines: TestEngine[] = []
  const readyLines = (rank: number): number =>
    server.log.filter((line) => new RegExp(`^engine ${rank} is (?:ready|back)`).test(line)).length
  return {
    ...server,
    address,
    attach: async (options = {}) => {
      const before = readyLines(options.rank ?? 0)
      const engine = new TestEngine({ address, vocabSize: 200_064, maxModelLen: 40_960, ...options })
      engines.push(engine)
      await until(() => readyLines(engine.rank) > before, 10_000)
      return engine
    },
    said: (words) => until(() => server.log.some((line) => line.includes(words)), 10_000),
    stop: async () => {
      await server.stop()
      // What the server sent last is read before its connections are seen to close.
      await until(() => engines.every((engine) => !engine.isConnected))
      for (const engine of engines) engine.vanish()
    },
  }
}
