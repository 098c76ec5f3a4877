/**
 * Unicode normal forms as the reference has them: only the characters that the reference's tables touch are handed to
 * JavaScript's `normalize`, each with the one before it, so that text without any costs one scan.
 */
import { type AlignedText, type Edit, edited } from "./aligned-text"
import type { CoreForm } from "./bpe-core"
import { type CharRanges, CharSet, unionOf } from "./char-set"
import { composedWithPrevious, decomposedByNfd, decomposedByNfkd, nonStarters } from "./unicode-ranges"

/** Stretches that are remembered: how long at most, in UTF-16 units, and how many. */
const knownUnitsMax = 8
const knownStretchesMax = 4096

/** The four normal forms. */
export type FormName = "NFC" | "NFD" | "NFKC" | "NFKD"

/** Up to here a stretch goes to `normalize` as it is. */
const unorderedUnitsMax = 256

const isAscii = /^\p{ASCII}*$/u

const hangulSyllables = [0xac00, 0xd7a3] as const

/** What a form changes, moves, or joins to what stands before. */
function touchedBy(form: FormName): CharRanges {
  const decomposed = form === "NFC" || form === "NFD" ? decomposedByNfd : decomposedByNfkd
  if (form === "NFD" || form === "NFKD") return unionOf([decomposed, nonStarters])
  // Most of what decomposes is composed again at once. Hangul syllables all are.
  const changed: number[] = []
  for (const code of codesOf(decomposed)) {
    const char = String.fromCodePoint(code)
    if (char.normalize(form) !== char) changed.push(code, code)
  }
  return unionOf([changed, nonStarters, composedWithPrevious])
}

/** Characters that a following one may be joined to. */
function composingFirsts(): CharRanges {
  const firsts = new Set<number>()
  for (const code of codesOf(decomposedByNfd)) {
    const char = String.fromCodePoint(code)
    const parts = Array.from(char.normalize("NFD"))
    if (parts.length < 2 || char.normalize("NFC") !== char) continue
    const first = Array.from(parts.slice(0, -1).join("").normalize("NFC"))
    if (first.length === 1) firsts.add(first[0]!.codePointAt(0)!)
    // A mark of a lower class goes in between: é and a dot below become ẹ and an acute.
    firsts.add(code)
  }
  // Leading consonants of Hangul, which the syllables were left out for.
  return unionOf([[...firsts].flatMap((code) => [code, code]), hangulSyllables, [0x1100, 0x1112]])
}

function* codesOf(ranges: CharRanges): Iterable<number> {
  for (let i = 0; i < ranges.length; i += 2) {
    const last = ranges[i + 1]!
    for (let code = ranges[i]!; code <= last; code++) {
      if (code < hangulSyllables[0] || code > hangulSyllables[1]) yield code
    }
  }
}

/** What a form looks for. */
interface FormTables {
  readonly ranges: { readonly touched: CharRanges; readonly firsts: CharRanges }
  readonly touched: CharSet
  readonly firsts: CharSet
  /** Matches a UTF-16 unit that may belong to a touched character. */
  readonly gate: RegExp
}

/** Shared, and made when a text is first asked about: they take as long as all of the rest of loading from a cache. */
const tablesOf = new Map<FormName, FormTables>()

function formTables(form: FormName): FormTables {
  const known = tablesOf.get(form)
  if (known !== undefined) return known
  const ranges = touchedBy(form)
  let units = ""
  for (let i = 0; i < ranges.length; i += 2) {
    const [first, last] = [ranges[i]!, ranges[i + 1]!]
    if (first <= 0xffff) units += `${unitEscape(first)}-${unitEscape(last)}`
    else units += `${unitEscape(highSurrogate(first))}-${unitEscape(highSurrogate(last))}`
  }
  const firsts = form === "NFC" || form === "NFKC" ? composingFirsts() : []
  const tables = {
    ranges: { touched: ranges, firsts },
    touched: new CharSet(ranges),
    firsts: new CharSet(firsts),
    gate: new RegExp(`[${units}]`),
  }
  tablesOf.set(form, tables)
  return tables
}

/** One output character and how many characters it adds (1) or swallows (below 0), as the reference counts. */
interface Change {
  readonly char: string
  readonly change: number
}

/**
 * The same text to all forms, decomposed and with runs of marks in their order. JavaScript's `normalize` sorts a run by
 * insertion: 40,000 marks of two classes in turns took it eight seconds.
 */
function withOrderedMarks(stretch: string): string {
  if (stretch.length <= unorderedUnitsMax || isInOrder(stretch)) return stretch
  marks ??= new CharSet(nonStarters)
  const chars = Array.from(Array.from(stretch, (char) => char.normalize("NFD")).join(""))
  let text = ""
  for (let at = 0; at < chars.length; ) {
    let end = at
    while (end < chars.length && marks.has(chars[end]!.codePointAt(0)!)) end += 1
    text += end > at ? inOrder(chars.slice(at, end)).join("") : chars[end++]!
    at = end
  }
  return text
}

let marks: CharSet | null = null

/** Whether no character would move to before its neighbour. Runs of one character are the most likely ones. */
function isInOrder(stretch: string): boolean {
  const knownPairs = new Set<number>()
  let before = -1
  for (let at = 0; at < stretch.length; ) {
    const code = stretch.codePointAt(at)!
    if (code !== before && before >= 0 && !knownPairs.has(before * 0x11_0000 + code)) {
      const [first, second] = [String.fromCodePoint(before), String.fromCodePoint(code)]
      if ((first + second).normalize("NFD") !== first.normalize("NFD") + second.normalize("NFD")) return false
      knownPairs.add(before * 0x11_0000 + code)
    }
    before = code
    at += code > 0xffff ? 2 : 1
  }
  return true
}

/** Marks by their classes; of one class as they stood. */
function inOrder(run: readonly string[]): readonly string[] {
  const places = new Map<string, number>()
  let last = ""
  for (const mark of [...new Set(run)].sort(orderOf)) {
    places.set(mark, (places.get(last) ?? 0) + (last !== "" && orderOf(last, mark) < 0 ? 1 : 0))
    last = mark
  }
  return [...run].sort((a, b) => places.get(a)! - places.get(b)!)
}

/** Which of two marks comes first, as `normalize` has them; 0: they are of one class. */
function orderOf(a: string, b: string): number {
  if ((a + b).normalize("NFD") !== a + b) return 1
  return (b + a).normalize("NFD") !== b + a ? -1 : 0
}

/** One normal form, ready to use. */
export class UnicodeForm {
  private readonly form: FormName
  private tables: FormTables | null = null
  private readonly known = new Map<string, string>()

  constructor(form: FormName) {
    this.form = form
  }

  /** Hot (bench/tokenize.ts): true when the text holds nothing that the form may touch. */
  leaves(text: string): boolean {
    this.tables ??= formTables(this.form)
    return !this.tables.gate.test(text)
  }

  /**
   * The form for the core, which knows no bounds for compatibility forms; null where a text in its form could spell one
   * of the `spellings`, which are cut out before. Of ASCII, NFC makes these three of characters that are not.
   */
  inCore(spellings: readonly string[]): CoreForm | null {
    if (this.form !== "NFC" || !spellings.every((spelling) => isAscii.test(spelling) && !/[;`K]/.test(spelling)))
      return null
    return { characters: () => formTables(this.form).ranges, formOf: (stretch) => this.formOf(stretch) }
  }

  normalize(from: AlignedText): AlignedText {
    const { text } = from
    this.tables ??= formTables(this.form)
    const { touched, firsts, gate } = this.tables
    let at = text.search(gate)
    if (at < 0) return from
    const edits: Edit[] = []
    let plain = ""
    let edge = 0
    while (at < text.length) {
      const code = text.codePointAt(at)!
      const size = code > 0xffff ? 2 : 1
      if (!touched.has(code)) {
        at += size
        continue
      }
      let end = at + size
      while (end < text.length && touched.has(text.codePointAt(end)!)) {
        end += text.codePointAt(end)! > 0xffff ? 2 : 1
      }
      const start = Math.max(edge, this.startBefore(text, at, firsts))
      const content = this.formOf(text.slice(start, end))
      if (from.starts === null) plain += text.slice(edge, start) + content
      else if (content !== text.slice(start, end)) {
        edits.push({ start, end, content, from: this.origins(text, start, end, content) })
      }
      edge = end
      at = end
    }
    if (from.starts === null) return { text: plain + text.slice(edge), starts: null, ends: null }
    return edited(from, edits)
  }

  /** The same few stretches come again and again, and looking them up is several times faster. */
  private formOf(stretch: string): string {
    if (stretch.length > knownUnitsMax) return withOrderedMarks(stretch).normalize(this.form)
    const known = this.known.get(stretch)
    if (known !== undefined) return known
    const content = stretch.normalize(this.form)
    if (this.known.size >= knownStretchesMax) this.known.clear()
    this.known.set(stretch, content)
    return content
  }

  /** Composition takes the character before along, when that is one that the reference composes. */
  private startBefore(text: string, at: number, firsts: CharSet): number {
    if (at === 0) return at
    const low = text.charCodeAt(at - 1)
    const start = low >= 0xdc00 && low <= 0xdfff && at >= 2 ? at - 2 : at - 1
    return firsts.has(text.codePointAt(start)!) ? start : at
  }

  /** For each unit of `content`: the unit of `text` whose alignment it takes, by the reference's own bookkeeping. */
  private origins(text: string, start: number, end: number, content: string): number[] {
    const inputs: number[] = []
    for (let i = start; i < end; i += text.codePointAt(i)! > 0xffff ? 2 : 1) inputs.push(i)
    let position = 0
    const origins: number[] = []
    for (const { char, change } of this.changes(text.slice(start, end), content)) {
      const origin = change > 0 ? (position === 0 ? start - 1 : inputs[position - 1]!) : (inputs[position] ?? end - 1)
      for (let k = 0; k < char.length; k++) origins.push(origin)
      if (change <= 0) position += 1 - change
    }
    return origins
  }

  private changes(input: string, content: string): Change[] {
    const decomposition = this.form === "NFKC" || this.form === "NFKD" ? "NFKD" : "NFD"
    /** Changes of the decomposed characters, waiting to be used, by character. */
    const waiting = new Map<string, number[]>()
    for (const char of input) {
      let change = 0
      for (const part of char.normalize(decomposition)) {
        const queue = waiting.get(part)
        if (queue === undefined) waiting.set(part, [change])
        else queue.push(change)
        change = 1
      }
    }
    const result: Change[] = []
    for (const char of content) {
      let change = 0
      let parts = 0
      for (const part of char.normalize("NFD")) {
        change += waiting.get(part)?.shift() ?? 0
        parts += 1
      }
      result.push({ char, change: change - (parts - 1) })
    }
    return result
  }
}

function unitEscape(unit: number): string {
  return `\\u${Math.min(unit, 0xffff).toString(16).padStart(4, "0")}`
}

function highSurrogate(code: number): number {
  return 0xd800 + ((code - 0x10000) >> 10)
}
