import { cpus } from "node:os"

/** Whether processes are kept on cores of their own. */
export const pinned = Bun.which("taskset") !== null && cpus().length >= 2

/** In front of a server's command: it has one core for itself. */
export const serverPrefix: readonly string[] = pinned ? ["taskset", "-c", "0"] : []

/** In front of what is not measured, load and engines: another core. */
export const loadPrefix: readonly string[] = pinned ? ["taskset", "-c", "1"] : []
