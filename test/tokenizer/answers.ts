/** What a tokenizer makes of seeded texts, in the forms whose hashes scripts/tokenizer-golden.py gives. */
import type {
  EncodeOptions,
  OffsetUnit,
  TextSegment,
  Tokenizer,
  TokensWithOffsets,
} from "../../src/tokenizer/tokenizer"
import { segmentsAt, textAt } from "./golden-texts"

/** By turns in `truncated` of the script, before the sides. */
const truncatedLengths = [1, 2, 3, 5, 8, 20]

/** The first `count` texts of a seed. */
export function seededTexts(seed: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => textAt(seed, i))
}

/** One tokenizer over the texts of one seed, each named by its number. Throws what the tokenizer refuses. */
export class Answers {
  private readonly tokenizer: Tokenizer
  private readonly seed: number
  private readonly texts: readonly string[]
  /** Special tokens count in some segments; else in none. */
  private readonly mixesSegments: boolean

  constructor(tokenizer: Tokenizer, seed: number, texts: readonly string[], mixesSegments: boolean) {
    this.tokenizer = tokenizer
    this.seed = seed
    this.texts = texts
    this.mixesSegments = mixesSegments
  }

  encoded(text: string, addSpecialTokens: boolean): Uint32Array {
    const result = this.tokenizer.encode(text, { addSpecialTokens })
    if (!result.ok) throw new Error(`${JSON.stringify(text.slice(0, 100))}: ${result.error.message}`)
    return result.value
  }

  ids(i: number): Uint32Array {
    return this.encoded(this.texts[i]!, false)
  }

  idsWithSpecial(i: number): Uint32Array {
    return this.encoded(this.texts[i]!, true)
  }

  /** In code points; counted over from UTF-16 units where those were asked for. */
  offsets(i: number, unit: OffsetUnit): Uint32Array {
    const text = this.texts[i]!
    const { offsets } = this.withOffsets(text, unit, { addSpecialTokens: false })
    return unit === "code_point" ? offsets : offsets.map((at) => Array.from(text.slice(0, at)).length)
  }

  /** Where the tokens start: every other offset. */
  starts(i: number, unit: OffsetUnit): Uint32Array {
    return this.offsets(i, unit).filter((_, k) => k % 2 === 0)
  }

  /** Ids, then offsets, of a text that is cut off as its number says. */
  truncated(i: number): readonly number[] {
    const turn = i % (4 * truncatedLengths.length)
    const side = Math.floor(turn / truncatedLengths.length) % 2 === 0 ? "left" : "right"
    const addSpecialTokens = turn >= 2 * truncatedLengths.length
    const tokensMax = truncatedLengths[turn % truncatedLengths.length]! + this.encoded("", addSpecialTokens).length
    const options: EncodeOptions = { addSpecialTokens, truncate: { tokensMax, side } }
    const { tokenIds, offsets } = this.withOffsets(this.texts[i]!, "code_point", options)
    const plain = this.tokenizer.encode(this.texts[i]!, options)
    if (!plain.ok || plain.value.join() !== tokenIds.join()) throw new Error(`text ${i}: other ids without offsets`)
    return [...tokenIds, ...offsets]
  }

  segmentIds(i: number): Uint32Array {
    if (this.tokenizer.encodeSegments === undefined) throw new Error("this plug has no segments")
    const result = this.tokenizer.encodeSegments(this.segments(i), { addSpecialTokens: false })
    if (!result.ok) throw new Error(result.error.message)
    return result.value
  }

  segments(i: number): readonly TextSegment[] {
    const parts = segmentsAt(this.seed, i, this.texts.length, this.mixesSegments)
    return parts.map(({ text, control }) => ({ text, special: control ? "token" : "text" }))
  }

  private withOffsets(text: string, unit: OffsetUnit, options: EncodeOptions): TokensWithOffsets {
    if (this.tokenizer.encodeWithOffsets === undefined) throw new Error("this plug has no offsets")
    const result = this.tokenizer.encodeWithOffsets(text, unit, options)
    if (!result.ok) throw new Error(result.error.message)
    return result.value
  }
}
