/**
 * Added tokens: spellings that are cut out of a text before anything else looks at it. Rules of HF tokenizers'
 * `AddedVocabulary`: leftmost, then longest; `single_word`, `lstrip`, `rstrip` afterwards.
 */
import { type CharRanges, CharSet } from "./char-set"

/** One entry of tokenizer.json's `added_tokens`. */
export interface AddedToken {
  readonly id: number
  readonly content: string
  /** Dropped by `skip_special_tokens`, and never found in text that is not control. */
  readonly special: boolean
  /** Only where no word character touches it. */
  readonly singleWord: boolean
  /** Takes the white space before it, or behind it, along. */
  readonly lstrip: boolean
  readonly rstrip: boolean
  /** Looked for in the normalized text, by its normalized spelling. */
  readonly normalized: boolean
}

/** Says whether a token found at `[start, end)` of the text, special or only added, may count. */
export type MayBeToken = (start: number, end: number, special: boolean) => boolean

/** Classes that the flags need: `\w` and `\s` of the reference's Rust engine, whose `\w` is not Oniguruma's. */
export interface AddedTokenClasses {
  readonly word: CharRanges
  readonly whiteSpace: CharRanges
}

interface TrieNode {
  token: AddedToken | null
  next: Map<number, TrieNode> | null
}

/** Up to this many first units are searched by `indexOf`, which is many times faster than a loop over the text. */
const indexedUnitsMax = 3

/** Finds a fixed set of spellings, in time linear in the text whatever their number. */
export class AddedTokens {
  /** By first UTF-16 unit. */
  private readonly roots = new Map<number, TrieNode>()
  /** 1 for units that a spelling starts with. */
  private readonly firstUnits = new Uint8Array(0x10000)
  private readonly indexedUnits: string[] = []
  /** 1 for units that may stand behind a spelling's first one; of all units when one is a spelling by itself. */
  private readonly secondUnits = new Uint8Array(0x10000)
  /** Where what `longestAt` found ends. */
  private foundEnd = 0
  private readonly classes: AddedTokenClasses
  /** Made when a token with a flag is found: few vocabularies have any. */
  private word: CharSet | null = null
  private whiteSpace: CharSet | null = null
  readonly count: number

  /** `spellingOf` gives what to look for: the content, or its normalized form. First of equal spellings wins. */
  constructor(tokens: readonly AddedToken[], spellingOf: (token: AddedToken) => string, classes: AddedTokenClasses) {
    this.classes = classes
    this.count = tokens.length
    for (const token of tokens) this.add(spellingOf(token), token)
    if (this.roots.size <= indexedUnitsMax) {
      for (const unit of this.roots.keys()) this.indexedUnits.push(String.fromCharCode(unit))
    }
  }

  private add(spelling: string, token: AddedToken): void {
    if (spelling === "") return
    const first = spelling.charCodeAt(0)
    this.firstUnits[first] = 1
    let node = this.roots.get(first)
    if (node === undefined) {
      node = { token: null, next: null }
      this.roots.set(first, node)
    }
    if (spelling.length > 1) this.secondUnits[spelling.charCodeAt(1)] = 1
    else this.secondUnits.fill(1)
    for (let i = 1; i < spelling.length; i++) {
      const unit = spelling.charCodeAt(i)
      node.next ??= new Map()
      let next = node.next.get(unit)
      if (next === undefined) {
        next = { token: null, next: null }
        node.next.set(unit, next)
      }
      node = next
    }
    node.token ??= token
  }

  /** Hot (bench/tokenize.ts): false when the text holds no unit that a spelling starts with. */
  mayBeIn(text: string): boolean {
    const { indexedUnits, firstUnits } = this
    if (this.roots.size > indexedUnits.length) {
      for (let i = 0; i < text.length; i++) if (firstUnits[text.charCodeAt(i)] === 1) return true
      return false
    }
    for (let k = 0; k < indexedUnits.length; k++) if (text.includes(indexedUnits[k]!)) return true
    return false
  }

  /**
   * Cuts `text`: calls `onText(start, end)` and `onToken(token, start, end)` in order; ranges are UTF-16 units and
   * cover the text. `mayBeToken` null: everywhere. Both return false to stop early.
   */
  cut(
    text: string,
    mayBeToken: MayBeToken | null,
    onText: (start: number, end: number) => boolean,
    onToken: (token: AddedToken, start: number, end: number) => boolean,
  ): void {
    let textStart = 0
    let searchAt = 0
    const candidates = new Candidates(text, this.firstUnits, this.secondUnits, this.indexedUnits)
    for (;;) {
      const at = this.roots.size === 0 ? -1 : candidates.from(searchAt)
      if (at < 0) break
      const token = this.longestAt(text, at, mayBeToken)
      if (token === null) {
        searchAt = at + 1
        continue
      }
      let start = at
      let end = this.foundEnd
      searchAt = end
      if (token.singleWord && (this.wordBefore(text, at) || this.wordAt(text, end))) continue
      if (token.lstrip) {
        while (start > textStart && this.isWhiteSpace(text.charCodeAt(start - 1))) start -= 1
        // What the token before took along by its rstrip stays with it.
        start = Math.max(start, textStart)
      }
      if (token.rstrip) while (end < text.length && this.isWhiteSpace(text.charCodeAt(end))) end += 1
      // White space that was all taken along: nothing is left to be a token.
      if (start >= end) continue
      if (textStart < start && !onText(textStart, start)) return
      if (!onToken(token, start, end)) return
      textStart = end
    }
    if (textStart < text.length) onText(textStart, text.length)
  }

  /** The longest spelling at `at` that may count there; `foundEnd` is behind it. */
  private longestAt(text: string, at: number, mayBeToken: MayBeToken | null): AddedToken | null {
    let node = this.roots.get(text.charCodeAt(at))
    let found: AddedToken | null = null
    for (let end = at + 1; node !== undefined; end++) {
      const { token } = node
      if (token !== null && (mayBeToken === null || mayBeToken(at, end, token.special))) {
        found = token
        this.foundEnd = end
      }
      if (node.next === null || end >= text.length) break
      node = node.next.get(text.charCodeAt(end))
    }
    return found
  }

  private isWhiteSpace(code: number): boolean {
    this.whiteSpace ??= new CharSet(this.classes.whiteSpace)
    return this.whiteSpace.has(code)
  }

  private isWord(code: number): boolean {
    this.word ??= new CharSet(this.classes.word)
    return this.word.has(code)
  }

  private wordBefore(text: string, at: number): boolean {
    if (at === 0) return false
    const unit = text.charCodeAt(at - 1)
    const isLow = unit >= 0xdc00 && unit <= 0xdfff && at >= 2
    return this.isWord(isLow ? text.codePointAt(at - 2)! : unit)
  }

  private wordAt(text: string, at: number): boolean {
    return at < text.length && this.isWord(text.codePointAt(at)!)
  }
}

/** Positions where some spelling may start, in order. Remembers the next one of each unit, so it stays linear. */
class Candidates {
  private readonly nextOf: number[]
  private readonly text: string
  private readonly firstUnits: Uint8Array
  private readonly secondUnits: Uint8Array
  private readonly indexedUnits: readonly string[]

  constructor(text: string, firstUnits: Uint8Array, secondUnits: Uint8Array, indexedUnits: readonly string[]) {
    this.text = text
    this.firstUnits = firstUnits
    this.secondUnits = secondUnits
    this.indexedUnits = indexedUnits
    this.nextOf = indexedUnits.map(() => -2)
  }

  from(at: number): number {
    const { text, firstUnits, indexedUnits, nextOf } = this
    if (indexedUnits.length === 0) {
      for (let i = at; i < text.length; i++) if (firstUnits[text.charCodeAt(i)] === 1) return i
      return -1
    }
    let best = -1
    for (let k = 0; k < indexedUnits.length; k++) {
      let next = nextOf[k]!
      if (next !== -1 && next < at) {
        next = this.seek(indexedUnits[k]!, at)
        nextOf[k] = next
      }
      if (next >= 0 && (best < 0 || next < best)) best = next
    }
    return best
  }

  /** The next place of a unit that a spelling may go on behind. Runs of the unit are walked, not searched. */
  private seek(unit: string, from: number): number {
    const { text, secondUnits } = this
    const code = unit.charCodeAt(0)
    const lastUnit = text.length - 1
    for (let at = text.indexOf(unit, from); at >= 0; at = text.indexOf(unit, at)) {
      for (; text.charCodeAt(at) === code; at++) {
        // The last unit of all may be a spelling by itself; otherwise a lookup finds nothing there.
        if (at === lastUnit || secondUnits[text.charCodeAt(at + 1)] === 1) return at
      }
    }
    return -1
  }
}
