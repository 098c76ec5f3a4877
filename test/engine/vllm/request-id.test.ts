import { describe, expect, test } from "bun:test"
import {
  isOfAnotherProcess,
  RequestIds,
  serialAt,
  serialsMax,
  slotAt,
  slotsMax,
} from "../../../src/engine/vllm/request-id"
import { seededRandom } from "../../support/random"

const ids = new RequestIds(0x00c0ffee)

function read(id: string, from: RequestIds = ids): readonly [number, number] | null {
  const bytes = new TextEncoder().encode(id)
  return from.isOurs(bytes, 0, bytes.length) ? [slotAt(bytes, bytes.length), serialAt(bytes, bytes.length)] : null
}

describe("a request id", () => {
  test("is the public id, the process and the place", () => {
    expect(ids.make("chatcmpl-1", 10, 255)).toBe("chatcmpl-1-00c0ffee-0000a00000ff")
    expect(ids.make("", slotsMax - 1, serialsMax - 1)).toBe("-00c0ffee-ffffffffffff")
  })

  test("gives back its place", () => {
    const random = seededRandom(1)
    for (let round = 0; round < 10_000; round++) {
      const slot = Math.floor(random() * slotsMax)
      const serial = Math.floor(random() * serialsMax)
      expect(read(ids.make("chatcmpl", slot, serial))).toEqual([slot, serial])
    }
    expect(read(ids.make("", 0, 0))).toEqual([0, 0])
  })

  test("shows a public id of any characters and length as bounded ASCII", () => {
    const id = ids.make(`a b\n"é😀\ud800${"x".repeat(1_000)}`, 1, 2)
    expect(id.startsWith('a_b_"____xxx')).toBe(true)
    expect(id.length).toBe(128 + 22)
    expect(read(id)).toEqual([1, 2])
  })

  test("of another process is not ours", () => {
    expect(read(new RequestIds(0x00c0ffef).make("a", 1, 1))).toBe(null)
    expect(read("cmpl-9fdc8bae849753bb-0-827158a8")).toBe(null)
    expect(read("")).toBe(null)
  })

  test("of another process is known by its form alone", () => {
    const looksForeign = (id: string) => {
      const bytes = new TextEncoder().encode(`x${id}`)
      return isOfAnotherProcess(bytes, 1, bytes.length)
    }
    const theirs = new RequestIds(0xfedcba98).make("chatcmpl-1", 0x12345, 0x6789abc)
    expect([looksForeign(theirs), looksForeign(theirs.slice(-22))]).toEqual([true, true])
    for (const id of ["", "cmpl-9fdc8bae849753bb-0-827158a8", theirs.slice(-21), `${theirs}0`, theirs.slice(0, -1)]) {
      expect([id, looksForeign(id)]).toEqual([id, false])
    }
    for (let at = theirs.length - 22; at < theirs.length; at++) {
      for (const odd of ["g", "F", "/", ":", "`", " "]) {
        expect(looksForeign(theirs.slice(0, at) + odd + theirs.slice(at + 1))).toBe(false)
      }
    }
  })

  test("with anything but lower-case hex digits has a negative place", () => {
    const id = ids.make("a", 0x12345, 0x6789abc)
    const tail = id.length - 12
    const taken = new Set<string>()
    for (let at = tail; at < id.length; at++) {
      for (let code = 0; code < 128; code++) {
        const character = String.fromCharCode(code)
        const [slot, serial] = read(id.slice(0, at) + character + id.slice(at + 1))!
        if (Math.min(slot, serial) >= 0) taken.add(character)
      }
    }
    expect([...taken].sort().join("")).toBe("0123456789abcdef")
  })
})
