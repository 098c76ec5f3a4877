import { describe, expect, test } from "bun:test"
import {
  depthMax,
  Extension,
  MessagePackReader,
  type MessagePackValue,
  skipValue,
} from "../../../src/engine/vllm/message-pack-reader"
import { MessagePackWriter } from "../../../src/engine/vllm/message-pack-writer"
import type { Json } from "../../../src/ir/conversation"
import { extension, float, intAs, type Packable, pack } from "../../support/message-pack"
import { openMsgpackr } from "../../support/msgpackr"
import { seededRandom } from "../../support/random"

const msgpackr = openMsgpackr()

function readAll(bytes: Uint8Array): MessagePackValue | string {
  const reader = new MessagePackReader()
  reader.reset(bytes)
  const value = reader.readValue()
  if (reader.failed) return reader.failure().message
  expect(reader.at).toBe(bytes.length)
  return value
}

function written(write: (writer: MessagePackWriter) => void): Uint8Array {
  const writer = new MessagePackWriter()
  writer.reset()
  write(writer)
  return writer.finish()
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

const edges = [0, 1, 31, 32, 33, 127, 128, 129, 255, 256, 32_767, 32_768, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32]
const numbers = [...edges, 2 ** 53 - 1, 0.5, -0.1, 1e300, 5e-324, Number.MAX_VALUE].flatMap((each) => [each, -each])
const bigs = [2n ** 60n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 60n), -(2n ** 63n)]
const texts = [
  "",
  "a",
  "é",
  "😀",
  "日本語",
  "\u0000\ufeff\u2028",
  "x".repeat(31),
  "x".repeat(32),
  "é".repeat(16),
  "é".repeat(127),
]
const longTexts = ["é".repeat(128), "x".repeat(255), "x".repeat(256), "日".repeat(21_845), "😀".repeat(20_000)]

/** A value that JSON can say, of bounded size. */
function randomJson(random: () => number, depth = 0): Json {
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!
  switch (Math.floor(random() * (depth > 4 ? 6 : 8))) {
    case 0:
      return null
    case 1:
      return random() < 0.5
    case 2:
      return pick(numbers)
    case 3:
      return pick(bigs)
    case 4:
      return pick(texts)
    case 5:
      return Math.floor(random() * 2 ** 34) - 2 ** 33
    case 6:
      return Array.from({ length: Math.floor(random() * 20) }, () => randomJson(random, depth + 1))
    default:
      return Object.fromEntries(
        Array.from({ length: Math.floor(random() * 20) }, (_, i) => [
          `${i}${pick(texts)}`,
          randomJson(random, depth + 1),
        ]),
      )
  }
}

/** -0 and 0 are one value in JSON's integers. */
function settled(value: Json): Json {
  if (value === 0) return 0
  if (Array.isArray(value)) return value.map(settled)
  if (value === null || typeof value !== "object") return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, settled(each)]))
}

describe("msgpackr", () => {
  test("reads what the writer wrote, and the reader what msgpackr and the writer wrote", () => {
    const random = seededRandom(11)
    for (let round = 0; round < 400; round++) {
      const value = settled(randomJson(random))
      const ours = written((writer) => writer.json(value))
      expect(msgpackr.unpack(ours)).toEqual(value)
      expect(readAll(ours)).toEqual(value)
      const theirs = new Uint8Array(msgpackr.pack(value))
      expect(readAll(theirs)).toEqual(value)
      expect(skipValue(theirs, 0, theirs.length)).toBe(theirs.length)
      expect(skipValue(ours, 0, ours.length)).toBe(ours.length)
    }
  })

  test("agrees on strings of every length of header", () => {
    for (const text of [...texts, ...longTexts]) {
      const ours = written((writer) => writer.string(text))
      expect(hexOf(ours)).toBe(hexOf(pack(text)))
      expect(msgpackr.unpack(ours)).toBe(text)
      expect(readAll(ours)).toBe(text)
    }
  })
})

describe("the writer", () => {
  test("gives whole numbers the smallest int, and floats 64 bits", () => {
    for (const value of [...edges, ...edges.map((each) => -each), 2 ** 53 - 1, -(2 ** 53 - 1)]) {
      expect(hexOf(written((writer) => writer.int(value)))).toBe(hexOf(pack(value)))
      expect(hexOf(written((writer) => writer.bigint(BigInt(value))))).toBe(hexOf(pack(value)))
    }
    for (const value of bigs) expect(hexOf(written((writer) => writer.bigint(value)))).toBe(hexOf(pack(value)))
    for (const value of [0, 3, -1, 0.1, 2 ** 60]) {
      expect(hexOf(written((writer) => writer.float(value)))).toBe(hexOf(pack(float(value))))
    }
    expect(hexOf(written((writer) => writer.json([3, 3.5, 2 ** 60])))).toBe(hexOf(pack([3, 3.5, float(2 ** 60)])))
  })

  test("packs token ids like any list, also a million of them", () => {
    const ids = Uint32Array.from({ length: 70_000 }, (_, i) => (i < 300 ? i : i * 61_000))
    expect(hexOf(written((writer) => writer.ids(ids)))).toBe(hexOf(pack([...ids])))
    const million = new Uint32Array(1_000_000).fill(151_000)
    const bytes = written((writer) => writer.ids(million))
    expect(bytes.length).toBe(5 + 5 * million.length)
    expect(readAll(bytes)).toEqual([...million])
  })

  test("sends lone surrogates as U+FFFD, so that strings are always UTF-8", () => {
    const bytes = written((writer) => writer.string("a\ud800b\udc00"))
    expect(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(1))).toBe("a\ufffdb\ufffd")
  })

  test("gives each message bytes of its own, and small ones after large ones", () => {
    const writer = new MessagePackWriter()
    writer.reset()
    writer.string("x".repeat(3_000_000))
    const large = writer.finish()
    writer.reset()
    writer.string("small")
    const small = writer.finish()
    writer.reset()
    writer.string("later")
    expect(readAll(small)).toBe("small")
    expect(small.buffer.byteLength).toBe(small.length)
    expect(large.length).toBe(3_000_005)
  })

  test("counts the pairs of a map at its end", () => {
    const bytes = written((writer) => {
      const begun = writer.beginMap()
      writer.string("a")
      writer.int(1)
      writer.string("b")
      writer.nil()
      writer.endMap(begun, 2)
    })
    expect(readAll(bytes)).toEqual({ a: 1, b: null })
  })
})

describe("the reader", () => {
  test("reads every width and every kind", () => {
    const value: Packable = [
      intAs(0xcc, 1),
      intAs(0xcd, 2),
      intAs(0xce, 3),
      intAs(0xcf, 4),
      intAs(0xd0, -5),
      intAs(0xd1, -6),
      intAs(0xd2, -7),
      intAs(0xd3, -8),
      float(0.5, 32),
      float(0.5),
      new Uint8Array([1, 2]),
      new Uint8Array(300),
      extension(3, new Uint8Array([1, 2, 3, 4])),
      extension(-7, new Uint8Array(70_000)),
      new Map<Packable, Packable>([
        [5, "five"],
        [-1, true],
      ]),
    ]
    expect(readAll(pack(value))).toEqual([
      ...[1, 2, 3, 4, -5, -6, -7, -8, 0.5, 0.5],
      new Uint8Array([1, 2]),
      new Uint8Array(300),
      new Extension(3, new Uint8Array([1, 2, 3, 4])),
      new Extension(-7, new Uint8Array(70_000)),
      { "5": "five", "-1": true },
    ])
  })

  test("takes __proto__ as a key like others", () => {
    const value = readAll(pack(new Map<Packable, Packable>([["__proto__", { polluted: true }]])))
    expect(Object.keys(value as object)).toEqual(["__proto__"])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as { polluted?: boolean }).polluted).toBe(undefined)
  })

  test("keeps a byte order mark, and shows bytes that are no UTF-8 as U+FFFD", () => {
    const long = `\ufeff${"é".repeat(40)}`
    expect(readAll(pack(long))).toBe(long)
    expect(readAll(pack("\ufeffa"))).toBe("\ufeffa")
    expect(readAll(Uint8Array.of(0xa2, 0xc3, 0x28))).toBe("\ufffd(")
  })

  test("follows nesting to its limit and no further", () => {
    const nested = (depth: number): Uint8Array => new Uint8Array(depth + 1).fill(0x91).fill(0xc0, depth)
    expect(typeof readAll(nested(depthMax))).toBe("object")
    expect(readAll(nested(depthMax + 1))).toBe(`values nest deeper than ${depthMax} levels`)
    const deep = nested(1_000_000)
    expect(skipValue(deep, 0, deep.length)).toBe(deep.length)
    expect(readAll(deep)).toBe(`values nest deeper than ${depthMax} levels`)
  })

  test("gives a fault for values cut at any byte, whichever way they are read", () => {
    const random = seededRandom(3)
    for (let round = 0; round < 60; round++) {
      const bytes = pack([randomJson(random), float(1, 32), new Uint8Array(3), extension(3, new Uint8Array(5))])
      let whole = 0
      for (let size = 0; size < bytes.length; size += 1 + Math.floor(bytes.length / 200)) {
        const cut = bytes.subarray(0, size)
        const reader = new MessagePackReader()
        reader.reset(cut)
        reader.readValue()
        if (skipValue(cut, 0, size) !== -1 || !reader.failed) whole += 1
      }
      expect(whole).toBe(0)
    }
  })

  test("neither throws nor grows on random bytes, and steps over what it reads", () => {
    const random = seededRandom(4)
    for (let round = 0; round < 20_000; round++) {
      const bytes = Uint8Array.from({ length: 1 + Math.floor(random() * 24) }, () => Math.floor(random() * 256))
      const reader = new MessagePackReader()
      reader.reset(bytes)
      reader.readValue()
      const skipped = skipValue(bytes, 0, bytes.length)
      // Maps with keys of other kinds can be stepped over but not read.
      if (!reader.failed) expect(skipped).toBe(reader.at)
    }
    for (const tag of [0xc6, 0xc9, 0xdb, 0xdd, 0xdf]) {
      const bytes = Uint8Array.of(tag, 0xff, 0xff, 0xff, 0xff, 0xc0)
      expect(skipValue(bytes, 0, bytes.length)).toBe(-1)
      expect(typeof readAll(bytes)).toBe("string")
    }
    expect(skipValue(Uint8Array.of(0xc1), 0, 1)).toBe(-1)
    expect(readAll(Uint8Array.of(0xc1))).toBe("0xc1 is no MessagePack value")
  })

  test("keeps its first fault", () => {
    const reader = new MessagePackReader()
    reader.reset(pack(["a", 1]))
    expect(reader.readArraySize()).toBe(2)
    expect(reader.readInteger()).toBe(0)
    expect([reader.readString(), reader.readNumber(), reader.readBoolean(), reader.readMapSize()]).toEqual([
      "",
      0,
      false,
      0,
    ])
    expect(reader.failure()).toEqual({ kind: "malformed_frame", message: "an integer was expected", at: 1 })
  })
})
