import { describe, expect, test } from "bun:test"
import { DecodeCore, tokenKinds } from "../../src/tokenizer/decode-core"

/** Ids 0 … 255 are single bytes of runs, then come these. */
const texts = ["", "a", "fifteen letters", "sixteen letters!", "long ".repeat(40), "漢字", "<|end|>"]
const [absent, letter, fifteen, sixteen, long, han, special] = texts.map((_, i) => 256 + i) as [
  ...[number, number, number, number, number, number, number], // As many as texts.
]

function core(): DecodeCore {
  const tokens = [...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)), ...texts.map((t) => Buffer.from(t))]
  const kinds = new Uint8Array(tokens.length).fill(tokenKinds.byte, 0, 256)
  kinds[absent] = tokenKinds.absent
  kinds[special] = tokenKinds.special
  let end = 0
  const ends = Uint32Array.from(tokens, (token) => {
    end += token.length
    return end
  })
  return new DecodeCore({ bytes: Buffer.concat(tokens), ends }, kinds)
}

function bytes(text: string): number[] {
  return Array.from(Buffer.from(text))
}

describe("the decoder in WebAssembly", () => {
  const decoder = core()
  const decode = (ids: readonly number[], skips = false): string => decoder.decode(Uint32Array.from(ids), skips)

  test("puts tokens of every length side by side", () => {
    expect(decode([letter, fifteen, sixteen, long, han, letter])).toBe(
      `afifteen letterssixteen letters!${"long ".repeat(40)}漢字a`,
    )
    expect(decode([])).toBe("")
  })

  test("drops special tokens only when told to, and ids outside the vocabulary always", () => {
    expect(decode([letter, special, 0xffff_ffff, 5000, letter], false)).toBe("a<|end|>a")
    expect(decode([letter, special, 0xffff_ffff, 5000, letter], true)).toBe("aa")
  })

  test("a run of bytes is text as a whole, or one U+FFFD a byte", () => {
    expect(decode([...bytes("é漢😀"), letter])).toBe("é漢😀a")
    for (const wrong of [
      [0xc3],
      [0xc0, 0x80],
      [0xe0, 0x80, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0x80],
    ]) {
      expect(decode([0x41, ...wrong, letter]), String(wrong)).toBe(`${"\ufffd".repeat(1 + wrong.length)}a`)
    }
  })

  test("a run of bytes goes on behind what gives nothing", () => {
    expect(decode([0xc3, absent, 0xa9])).toBe("é")
    expect(decode([0xc3, special, 0xa9], true)).toBe("é")
    expect(decode([0xc3, special, 0xa9], false)).toBe("\ufffd<|end|>\ufffd")
  })

  test("lists of any length give what their parts give", () => {
    const part = [letter, fifteen, long, han, special, ...bytes("é漢😀"), sixteen, 7000]
    for (const times of [1, 100, 1000, 9000]) {
      const ids = Array.from({ length: times }, () => part).flat()
      expect(decode(ids) === decode(part).repeat(times), String(times)).toBe(true)
    }
  })

  test("a run of bytes may be longer than all room that there is at first", () => {
    const run = Array.from({ length: 40_000 }, () => bytes("é漢")).flat()
    expect(decode([letter, ...run, letter]) === `a${"é漢".repeat(40_000)}a`).toBe(true)
    expect(decode([letter, ...run, 0xff, letter]) === `a${"\ufffd".repeat(run.length + 1)}a`).toBe(true)
  })
})
