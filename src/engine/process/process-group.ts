/**
 * Signals to a whole process group, and a watcher that ends the group when this process is gone, however it went.
 * vLLM's engines are several processes; each group is led by the process that we start.
 */

/**
 * What the leader's helpers get to put things away after it has gone: Python's resource tracker, which SIGTERM does not
 * end, gives back shared memory (0.4 GB a run of vLLM 0.32 on a CPU) as soon as all the others are gone.
 */
const helpersMs = 1_000
const pollMs = 20

/** Sends a signal to every process of the group; 0 asks only. False when there is none left. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

/** Kills the leader alone; `endGroup` is for the rest. */
export function killLeader(group: number): void {
  try {
    process.kill(group, "SIGKILL")
  } catch {
    // It has ended meanwhile.
  }
}

/** Ends what a leader that has gone leaves behind: it would keep the GPU's memory. SIGTERM, and soon SIGKILL. */
export async function endGroup(group: number): Promise<void> {
  if (!signalGroup(group, "SIGTERM")) return
  for (let waitedMs = 0; waitedMs < helpersMs; waitedMs += pollMs) {
    await Bun.sleep(pollMs)
    if (!signalGroup(group, 0)) return
  }
  signalGroup(group, "SIGKILL")
}

/**
 * Reads group numbers, one a line, an empty line for none. Its input ends when the last holder of the pipe's other end
 * does: then the group gets SIGTERM, a few seconds, and SIGKILL, the leader first. Plain POSIX.
 */
const watcherScript = `
group=
while IFS= read -r next; do group=$next; done
[ -n "$group" ] || exit 0
kill -s TERM -- "-$group" || exit 0
for second in 1 2 3 4 5; do
  sleep 1
  kill -s 0 -- "-$group" || exit 0
done
kill -s KILL "$group"
sleep 1
kill -s KILL -- "-$group"
`

/**
 * A small shell beside us that ends a process group when we are killed or crash: a signal that cannot be caught leaves
 * no other way that works on every Unix. It stands in a session of its own, so that Ctrl-C does not reach it.
 */
export class GroupWatcher {
  private readonly shell: Bun.Subprocess<"pipe", "ignore", "ignore">

  constructor() {
    this.shell = Bun.spawn(["/bin/sh", "-c", watcherScript], {
      stdin: "pipe",
      stdout: "ignore",
      stderr: "ignore",
      detached: true,
    })
  }

  /** The group to end when we go; null = none. Settles when the watcher can know it. */
  async watch(group: number | null): Promise<void> {
    try {
      this.shell.stdin.write(`${group ?? ""}\n`)
      await this.shell.stdin.flush()
    } catch {
      // Somebody ended the watcher: nothing more can be told to it, and the engine runs on unwatched.
    }
  }

  /** Nothing is to be watched any more. Settles when the watcher has ended. */
  async close(): Promise<void> {
    await this.watch(null)
    this.shell.stdin.end()
    await this.shell.exited
  }
}
