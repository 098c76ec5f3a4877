import { expect, test } from "bun:test"
import { join } from "node:path"

test("wasm/tokenizer.wasm is what its sources give", () => {
  const run = Bun.spawnSync([process.execPath, "--no-install", "wasm/build.ts", "--check"], {
    cwd: join(import.meta.dir, "../.."),
    stdout: "pipe",
    stderr: "pipe",
  })
  expect([run.exitCode, run.stderr.toString()]).toEqual([0, ""])
}, 120_000)
