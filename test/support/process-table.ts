import { readFileSync } from "node:fs"

/** Whether a process runs. One that has ended and whose status nobody has asked for yet does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch (error) {
    // Gone since, or a system that has no such files.
    return error instanceof Error && "code" in error && error.code === "ENOENT" && process.platform !== "linux"
  }
}

/** Waits until the process does not run any more. */
export async function hasEnded(pid: number): Promise<void> {
  while (isRunning(pid)) await Bun.sleep(5)
}
