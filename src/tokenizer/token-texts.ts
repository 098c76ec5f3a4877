import type { Tokenizer } from "./tokenizer"

/**
 * Single tokens as text, as they read on their own (U+FFFD for bytes that are no characters). Remembers each: replies
 * with logprobs ask for the same ones again and again. At most one text for each id of the vocabulary.
 */
export class TokenTexts {
  private readonly tokenizer: Tokenizer
  private readonly texts: (string | undefined)[]
  private readonly one = new Uint32Array(1)

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
    this.texts = new Array<string | undefined>(tokenizer.vocabSize)
  }

  /** The token's text; "" outside the vocabulary. */
  text(id: number): string {
    const known = this.texts[id]
    if (known !== undefined) return known
    this.one[0] = id
    const text = this.tokenizer.decode(this.one, false)
    this.texts[id] = text
    return text
  }
}
