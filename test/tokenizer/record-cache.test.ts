import { afterAll, beforeEach, expect, test } from "bun:test"
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { RecordCache } from "../../src/tokenizer/record-cache"

const folders: string[] = []
let folder = ""
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "sluice-records-")), "cache")
  folders.push(join(folder, ".."))
})
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true })
})

const key = "a".repeat(64)
const facts = { name: "ä\ud800", list: [1, null] }
const arrays = [Uint8Array.of(1, 2, 3), new Uint8Array(0), new Uint8Array(5000).fill(7)]

function cacheOf(limits?: Parameters<typeof RecordCache.in>[1]): RecordCache {
  return RecordCache.in(folder, limits)!
}

/** What is read, into arrays of the lengths that were written. */
function read(of: string = key, lengths: readonly number[] = arrays.map((each) => each.length)) {
  return cacheOf().read(of, (found) => ({ found, arrays: lengths.map((length) => new Uint8Array(length)) }))
}

test("a record is read as it was written", () => {
  cacheOf().write(key, facts, arrays)
  expect(read()).toEqual({ found: facts, arrays })
  expect(readdirSync(folder)).toEqual([`${key}.record`])
})

test("another key, and arrays of other lengths, find nothing", () => {
  cacheOf().write(key, facts, arrays)
  expect(read("b".repeat(64))).toBeNull()
  expect(read(key, [3, 0, 4999])).toBeNull()
  expect(read(key, [3, 0])).toBeNull()
  renameSync(join(folder, `${key}.record`), join(folder, `${"b".repeat(64)}.record`))
  expect(read("b".repeat(64))).toBeNull()
})

test("keys differ by every source, and by where one ends", () => {
  const keys = [["ab", "c"], ["a", "bc"], ["abc"], [Uint8Array.of(0x61), "bd"]].map((each) => cacheOf().keyOf(each))
  expect(new Set(keys).size).toBe(4)
  expect(cacheOf().keyOf([Uint8Array.of(0x61), "bc"])).toBe(keys[1]!)
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/)
})

test("a file with any byte changed, cut off anywhere, or with more behind it is no record", () => {
  const small = [Uint8Array.of(1, 2, 3, 4, 5)]
  cacheOf().write(key, facts, small)
  const path = join(folder, `${key}.record`)
  const whole = readFileSync(path)
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole)
    changed[at]! ^= 1 << (at % 8)
    writeFileSync(path, changed)
    expect([at, read(key, [5])]).toEqual([at, null])
    truncateSync(path, at)
    expect([at, read(key, [5])]).toEqual([at, null])
  }
  writeFileSync(path, Buffer.concat([whole, Buffer.of(0)]))
  expect(read(key, [5])).toBeNull()
  writeFileSync(path, "something else")
  expect(read(key, [5])).toBeNull()
  cacheOf().write(key, facts, small)
  expect(read(key, [5])).toEqual({ found: facts, arrays: small })
})

test("a place that throws, as without memory, finds nothing", () => {
  cacheOf().write(key, facts, arrays)
  const place = () => {
    throw new RangeError("no memory")
  }
  expect(cacheOf().read(key, place)).toBeNull()
})

test("a folder that cannot be made or written to is passed over", () => {
  mkdirSync(join(folder, ".."), { recursive: true })
  writeFileSync(folder, "a file")
  cacheOf().write(key, facts, arrays)
  expect(read()).toBeNull()
  expect(readFileSync(folder, "utf8")).toBe("a file")
})

test("a record that cannot take its place leaves nothing behind", () => {
  // Where the record should go stands a folder with something in it; root may write to a folder that is read-only.
  mkdirSync(join(folder, `${key}.record`, "in the way"), { recursive: true })
  cacheOf().write(key, facts, arrays)
  expect(readdirSync(folder)).toEqual([`${key}.record`])
  expect(read()).toBeNull()
})

test("a folder that is read-only still gives its records", () => {
  cacheOf().write(key, facts, arrays)
  chmodSync(folder, 0o500)
  try {
    cacheOf().write("b".repeat(64), facts, arrays)
    expect(read()).toEqual({ found: facts, arrays })
  } finally {
    chmodSync(folder, 0o700)
  }
})

test("beyond a number of files or bytes the oldest go, and what others put there stays", () => {
  const [first, second, third, fourth] = ["1", "2", "3", "4"].map((digit) => digit.repeat(64))
  const names = () => readdirSync(folder).sort()
  const limits = { filesMax: 2, bytesMax: 100_000, fileBytesMax: 9_000 }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "notes.txt"), "kept")
  for (const [i, each] of [first, second, third].entries()) {
    cacheOf(limits).write(each!, facts, arrays)
    utimesSync(join(folder, `${each}.record`), 1000 + i, 1000 + i)
  }
  expect(names()).toEqual([`${second}.record`, `${third}.record`, "notes.txt"])
  cacheOf({ ...limits, filesMax: 9, bytesMax: 11_000 }).write(fourth!, facts, arrays)
  expect(names()).toEqual([`${third}.record`, `${fourth}.record`, "notes.txt"])
  // One that alone is too large is not written, and the others stay.
  cacheOf(limits).write(first!, facts, [new Uint8Array(9_000)])
  expect(names()).toEqual([`${third}.record`, `${fourth}.record`, "notes.txt"])
})

test("what a writer that died left is removed once it is old", () => {
  const id = "00000000-0000-4000-8000-000000000000"
  const old = join(folder, `${key}.${id}.unfinished`)
  const fresh = join(folder, `${"b".repeat(64)}.${id}.unfinished`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(old, "")
  writeFileSync(fresh, "")
  utimesSync(old, 1000, 1000)
  cacheOf().write(key, facts, arrays)
  expect(readdirSync(folder).sort()).toEqual([`${key}.record`, `${"b".repeat(64)}.${id}.unfinished`])
})
