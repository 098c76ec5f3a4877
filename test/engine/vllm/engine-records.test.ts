import { afterAll, expect, test } from "bun:test"
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { factsOf, unknownFacts } from "../../../src/engine/vllm/engine-facts"
import { type EngineRecord, EngineRecords } from "../../../src/engine/vllm/engine-records"

const folder = mkdtempSync(join(tmpdir(), "sluice-records-"))
afterAll(() => rmSync(folder, { recursive: true }))

const place = { address: "tcp://[::1]:29551", rank: 3 }
const record: EngineRecord = {
  facts: factsOf({
    max_model_len: 4_096,
    max_num_seqs: 64,
    block_size: 16,
    num_gpu_blocks: 1_000,
    kv_cache_size_tokens: 16_000,
    vllm_version: "0.33.0",
    dtype: "bfloat16",
    world_size: 2,
    supports_lora: true,
    max_loras: 4,
  }),
  modelNames: ["acme/tiny", "/models/tiny"],
  vocabSize: 300,
  isCoordinated: false,
}

test("a record comes back whole, until another one takes its place", () => {
  const records = new EngineRecords(join(folder, "a", "b"))
  expect(records.read(place)).toBeNull()
  expect(Object.values(record.facts)).not.toContain(null)
  for (const each of [record, { ...record, facts: unknownFacts, modelNames: [], isCoordinated: true }, record]) {
    expect(records.write(place, each)).toBe(true)
    expect(records.read(place)).toEqual(each)
  }
  expect(readdirSync(join(folder, "a", "b"))).toEqual(["___1__29551-rank3.json"])
  expect(statSync(join(folder, "a", "b")).mode & 0o777).toBe(0o700)
  expect(records.read({ ...place, rank: 2 })).toBeNull()
})

test("a record that was damaged anywhere is another one that is well formed, or none", () => {
  const inside = join(folder, "damaged")
  const records = new EngineRecords(inside)
  records.write(place, record)
  const path = join(inside, readdirSync(inside)[0]!)
  const good = readFileSync(path)
  for (let at = 0; at < good.length; at++) {
    for (const bad of [good.subarray(0, at), Buffer.from(good).fill(good[at]! ^ 0x01, at, at + 1)]) {
      writeFileSync(path, bad)
      const read = records.read(place)
      if (read === null) continue
      expect(Object.keys(read).toSorted()).toEqual(Object.keys(record).toSorted())
      expect(Object.keys(read.facts)).toEqual(Object.keys(record.facts))
    }
  }
  for (const text of [
    "",
    "[]",
    "1",
    "null",
    JSON.stringify({ ...JSON.parse(String(good)), modelNames: "acme/tiny" }),
  ]) {
    writeFileSync(path, text)
    expect(records.read(place)).toBeNull()
  }
  writeFileSync(path, `${good}${" ".repeat(70_000)}`)
  expect(records.read(place)).toBeNull()
})

test("nothing is kept where nothing can be, and nothing of the engine before stays there", () => {
  const nowhere = new EngineRecords(null)
  expect([nowhere.write(place, record), nowhere.read(place)]).toEqual([true, null])
  const file = join(folder, "file")
  writeFileSync(file, "x")
  const onFile = new EngineRecords(file)
  expect([onFile.write(place, record), onFile.read(place)]).toEqual([false, null])
})

test.skipIf(process.geteuid?.() !== 0)("of a file that is somebody else's nothing is believed", () => {
  const inside = join(folder, "owned")
  const records = new EngineRecords(inside)
  records.write(place, record)
  const path = join(inside, readdirSync(inside)[0]!)
  chownSync(path, 65_534, 65_534)
  chmodSync(path, 0o644)
  expect(records.read(place)).toBeNull()
})
