/** Owner of text that comes out after its token has gone on: counts as no token. */
export const noTokenId = 0xffff_ffff

/**
 * Text that one step gave, with the token that made each part of it. One object a sequence, reused for every step:
 * whoever is called with a piece must take what it needs before returning.
 */
export class Piece {
  /** UTF-16 text of the step; may be empty when a token only holds the first bytes of a character. */
  text = ""
  /** Tokens in `ids` and `ends`. */
  count = 0
  ids = new Uint32Array(16)
  /** `ends[i]` is where token i's text ends in `text`, in UTF-16 units; it starts where the one before ended. */
  ends = new Uint32Array(16)

  /** Forgets the text and the tokens; keeps the arrays. */
  clear(): void {
    this.text = ""
    this.count = 0
  }

  /** Hot (bench/fold.ts): adds one token that contributed `text`. */
  add(id: number, text: string): void {
    const { count } = this
    if (count === this.ids.length) this.grow()
    // Most steps are one token: then there is nothing to join, and the text stays flat.
    const joined = this.text === "" ? text : this.text + text
    this.text = joined
    this.ids[count] = id
    this.ends[count] = joined.length
    this.count = count + 1
  }

  /** Adds text to the last token; with no token here, under `noTokenId`, which no vocabulary has. */
  extendLast(text: string): void {
    if (this.count === 0) {
      this.add(noTokenId, text)
      return
    }
    this.text += text
    this.ends[this.count - 1] = this.text.length
  }

  private grow(): void {
    const ids = new Uint32Array(this.ids.length * 2)
    ids.set(this.ids)
    this.ids = ids
    const ends = new Uint32Array(this.ends.length * 2)
    ends.set(this.ends)
    this.ends = ends
  }
}
