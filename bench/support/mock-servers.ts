import { existsSync, rmSync } from "node:fs"
import { freePorts } from "../../test/support/free-ports"
import { makeQwen3Folder } from "../../test/support/qwen3-folder"
import { type Server, startServerUnder } from "../../test/support/server-process"
import { benchModel } from "./load"

/** Starts front ends that drive the engine which stands in for vLLM's, each with one of its own. */
export interface MockServers {
  sluice(): Promise<Server>
  /** A front end of vLLM's, by the path of its command. */
  peer(path: string): Promise<Server>
}

/** A front end that does not take requests by then is broken; the one in Python reads its libraries for a while. */
const readyMsMax = 300_000

/**
 * The front ends run behind `serverPrefix`, their engines behind `enginePrefix`. The model folder is Qwen3's vocabulary
 * and template without weights.
 */
export async function mockServers(
  serverPrefix: readonly string[],
  enginePrefix: readonly string[],
  mockEngine: string,
  stepMs: number,
): Promise<MockServers> {
  if (!existsSync(mockEngine))
    throw new Error(`there is no ${mockEngine}: build it, or say where it is by --mock-engine`)
  const run = (command: readonly string[]) =>
    Bun.spawn([...command], { stdin: "ignore", stdout: "ignore", stderr: "ignore" })
  const startEngine = (port: number) =>
    run([...enginePrefix, mockEngine, "--handshake", `tcp://127.0.0.1:${port}`, "--step-ms", String(stepMs)])

  /** Waits for the front end to take requests; ends it, its engine and the folder with `end`. */
  const together = async (server: Server, port: number, folder: string): Promise<Server> => {
    const engine = startEngine(port)
    const end = async (): Promise<number | string> => {
      const status = await server.end()
      engine.kill()
      await engine.exited
      rmSync(folder, { recursive: true, force: true })
      return status
    }
    const deadline = performance.now() + readyMsMax
    while (!(await isHealthy(server.origin))) {
      if (performance.now() > deadline) {
        await end()
        throw new Error("a front end was not ready in time")
      }
      await Bun.sleep(100)
    }
    return { ...server, end }
  }

  return {
    async sluice() {
      const [folder, port] = [makeQwen3Folder(), freePorts(3)]
      const link = ["--engine", "vllm", "--data-parallel-rpc-port", String(port), "--data-parallel-size-local", "0"]
      const names = ["--served-model-name", benchModel, "--disable-uvicorn-access-log"]
      return together(await startServerUnder(serverPrefix, [folder, ...link, ...names]), port, folder)
    },
    async peer(path) {
      const [folder, port] = [makeQwen3Folder(), freePorts(2)]
      const httpPort = port + 1
      const link = [
        "--data-parallel-size",
        "1",
        "--data-parallel-size-local",
        "0",
        "--data-parallel-rpc-port",
        String(port),
      ]
      const child = run([
        ...serverPrefix,
        ...[path, "serve", folder, "--port", String(httpPort), "--served-model-name", benchModel, ...link],
      ])
      const origin = `http://127.0.0.1:${httpPort}`
      const end = async (): Promise<number | string> => {
        child.kill()
        return child.exited
      }
      return together({ origin, baseURL: `${origin}/v1`, pid: child.pid, end }, port, folder)
    },
  }
}

async function isHealthy(origin: string): Promise<boolean> {
  try {
    return (await fetch(`${origin}/health`)).ok
  } catch {
    return false
  }
}
