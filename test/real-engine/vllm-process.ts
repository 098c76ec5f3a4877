import { GroupWatcher, signalGroup } from "../../src/engine/process/process-group"
import { repository } from "../support/serve"
import { engineEnvironment, engineFlags, vllmServe } from "./installation"

/** A headless engine that somebody else than the server started. Its processes are a group that ends with the tests. */
export interface VllmProcess {
  /** A signal to all of its processes. */
  signal(signal: NodeJS.Signals): void
  /** SIGKILL, and its end. */
  kill(): Promise<void>
}

/** Starts an engine that dials 127.0.0.1:`port` until a server is there. What it says is not kept. */
export function startVllm(port: number): VllmProcess {
  const at = ["--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", `${port}`]
  const one = ["--headless", "--data-parallel-size", "1", "--data-parallel-size-local", "1"]
  const child = Bun.spawn([...vllmServe, ...engineFlags, ...one, ...at], {
    cwd: repository,
    env: { ...process.env, ...engineEnvironment() },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    detached: true,
  })
  const watcher = new GroupWatcher()
  watcher.watch(child.pid)
  return {
    signal: (name) => void signalGroup(child.pid, name),
    kill: async () => {
      signalGroup(child.pid, "SIGKILL")
      await child.exited
      await watcher.close()
    },
  }
}
