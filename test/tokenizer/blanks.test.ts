/** A vocabulary that spells blanks as `▁` is the same to texts with blanks and texts with the sign. */
import { expect, test } from "bun:test"
import { loadBytes } from "../../src/tokenizer/load"
import { sentencePieceTokenizer } from "./small-tokenizers"

const utf8 = new TextEncoder()

function opened(normalizer: object) {
  const loaded = loadBytes(
    utf8.encode(JSON.stringify({ ...sentencePieceTokenizer().json, pre_tokenizer: null, normalizer })),
  )
  if (!loaded.ok) throw new Error(loaded.error.message)
  return loaded.value
}

const replace = { type: "Replace", pattern: { String: " " }, content: "▁" }
const texts = ["the  the", " the", "the ", "   ", "", "a▁the ▁ the", "▁", "ü the\nthe", "\ud800 the"]

for (const [name, normalizer, prefix] of [
  ["Replace", replace, ""],
  ["Prepend and Replace", { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, replace] }, "▁"],
] as const) {
  test(`${name}: ids, and offsets of the text as it came`, () => {
    const tokenizer = opened(normalizer)
    // One that is not recognised, so that its signs stay signs: the same and a step that does nothing.
    const plain = opened({
      type: "Sequence",
      normalizers: [...[normalizer], { type: "Replace", pattern: { String: "\u0001" }, content: "" }],
    })
    for (const text of texts) {
      const options = { addSpecialTokens: false }
      expect(tokenizer.encode(text, options), JSON.stringify(text)).toEqual(plain.encode(text, options))
      expect(tokenizer.encodeWithOffsets(text, "utf16", options), JSON.stringify(text)).toEqual(
        plain.encodeWithOffsets(text, "utf16", options),
      )
      const ids = tokenizer.encode(text, options)
      const shown = (prefix === "" ? text : text === "" ? "" : ` ${text}`).toWellFormed().replaceAll("▁", " ")
      expect(ids.ok && tokenizer.decode(ids.value, false).trimStart(), JSON.stringify(text)).toBe(shown.trimStart())
    }
  })
}
