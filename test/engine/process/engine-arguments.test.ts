import { expect, test } from "bun:test"
import { defaultConfig } from "../../../src/config"
import { engineArguments } from "../../../src/engine/process/engine-arguments"

test("an engine is told where Sluice is, how many engines there are, and which of them it is", () => {
  const vllm = { ...defaultConfig.vllm, dataParallelSize: 4 }
  const words = engineArguments(vllm, { host: "10.0.0.1", port: 5000 }, 2)
  expect(words.join(" ")).toBe(
    "--headless --data-parallel-size 4 --data-parallel-size-local 2 --data-parallel-address 10.0.0.1 --data-parallel-rpc-port 5000",
  )
  const others = engineArguments(vllm, { host: "::1", port: 1 }, 2, 2)
  expect(others.join(" ")).toBe(
    "--headless --data-parallel-size 4 --data-parallel-size-local 2 --data-parallel-start-rank 2 --data-parallel-address ::1 --data-parallel-rpc-port 1",
  )
})
