/** The normalizers of tokenizer.json. Each works on aligned text, so that offsets can follow it. */
import { err, ok, type Result } from "../result"
import { type AlignedText, type Edit, edited, prefixed, sliced } from "./aligned-text"
import type { CoreForm } from "./bpe-core"
import { listOf, objectOf, stringOf, typeOf, type Unsupported } from "./json-shape"
import { type Pattern, readPattern } from "./pattern"
import type { ClassTable } from "./regex-syntax"
import type { SplitFailure } from "./split-regex"
import { UnicodeForm } from "./unicode-form"

const isAscii = /^\p{ASCII}*$/u

/** Changes text before it is cut into pieces. */
export interface Normalizer {
  (from: AlignedText): Result<AlignedText, SplitFailure>
  /** True when the text surely stays as it is. Absent: it takes as long to know as to do. */
  readonly leaves?: (text: string) => boolean
  /** ASCII stays as it is. */
  readonly leavesAscii?: boolean
  /** The same done by the core, which cuts `spellings` out before; null where it cannot. */
  readonly inCore?: (spellings: readonly string[]) => CoreForm | null
}

/** Reads the `normalizer` of a tokenizer.json; null for none. */
export function readNormalizer(value: unknown, classes: ClassTable): Result<Normalizer | null, Unsupported> {
  if (value === null || value === undefined) return ok(null)
  const shape = objectOf(value)
  const type = typeOf(value)
  switch (type) {
    case "Sequence":
      return sequence(listOf(shape?.normalizers) ?? [], classes)
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD": {
      const form = new UnicodeForm(type)
      const normalize = (from: AlignedText): Result<AlignedText, SplitFailure> => ok(form.normalize(from))
      return ok(
        Object.assign(normalize, {
          leaves: (text: string) => form.leaves(text),
          leavesAscii: true,
          inCore: (spellings: readonly string[]) => form.inCore(spellings),
        }),
      )
    }
    case "Replace": {
      const content = stringOf(shape?.content)
      if (content === null) return unsupported("a Replace without content")
      const pattern = readPattern(shape?.pattern, classes)
      if (!pattern.ok) return pattern
      const literal = stringOf(objectOf(shape?.pattern)?.String)
      const replace = (from: AlignedText): Result<AlignedText, SplitFailure> =>
        replaced(from, pattern.value, literal, content)
      if (literal === null) return ok(replace)
      const leavesAscii = !isAscii.test(literal)
      const inCore = (spellings: readonly string[]): CoreForm | null => replacementInCore(literal, content, spellings)
      return ok(Object.assign(replace, { leaves: (text: string) => !text.includes(literal), leavesAscii, inCore }))
    }
    case "Prepend": {
      const prefix = stringOf(shape?.prepend)
      return prefix === null ? unsupported("a Prepend without text") : ok((from) => ok(prefixed(from, prefix)))
    }
    case "Strip": {
      const space = classes("White_Space")
      if (space === null) return unsupported("a Strip without a table of white space")
      return ok((from) => ok(stripped(from, space, shape?.strip_left === true, shape?.strip_right === true)))
    }
    case "Lowercase":
      return ok((from) => ok(lowered(from)))
    default:
      return unsupported(`the normalizer ${type === "" ? JSON.stringify(value).slice(0, 80) : type}`)
  }
}

/**
 * One character for another, for the core: `▁` as a blank, in vocabularies whose blanks stand for themselves. Null where
 * it is not one that the core looks for, where its place takes more room, or where that could spell an added token.
 */
function replacementInCore(literal: string, content: string, spellings: readonly string[]): CoreForm | null {
  const code = literal.codePointAt(0) ?? 0
  if (code < 0x80 || String.fromCodePoint(code) !== literal || !literal.isWellFormed()) return null
  if (content === "" || content.length > 1 || spellings.some((spelling) => spelling.includes(content))) return null
  const all = [code, code]
  return { characters: () => ({ touched: all, firsts: [] }), formOf: (text) => text.replaceAll(literal, () => content) }
}

/** A short text, normalized; as it was when that takes too many steps. */
export function normalizedText(normalizer: Normalizer | null, text: string): string {
  const normalized = normalizer?.({ text, starts: null, ends: null })
  return normalized?.ok ? normalized.value.text : text
}

function unsupported(message: string): Result<never, Unsupported> {
  return err({ kind: "unsupported", message })
}

function sequence(items: readonly unknown[], classes: ClassTable): Result<Normalizer | null, Unsupported> {
  const steps: Normalizer[] = []
  for (const item of items) {
    const step = readNormalizer(item, classes)
    if (!step.ok) return step
    if (step.value !== null) steps.push(step.value)
  }
  if (steps.length <= 1) return ok(steps[0] ?? null)
  return ok((from) => {
    let text = from
    for (const step of steps) {
      const next = step(text)
      if (!next.ok) return next
      text = next.value
    }
    return ok(text)
  })
}

function replaced(
  from: AlignedText,
  pattern: Pattern,
  literal: string | null,
  content: string,
): Result<AlignedText, SplitFailure> {
  if (from.starts === null && literal !== null) {
    if (!from.text.includes(literal)) return ok(from)
    // A text with `$` would be read as a pattern; a function is called once for each match.
    const text = content.includes("$")
      ? from.text.replaceAll(literal, () => content)
      : from.text.replaceAll(literal, content)
    return ok({ text, starts: null, ends: null })
  }
  const found: number[] = []
  const searched = pattern.matches(from.text, found)
  if (!searched.ok) return searched
  const edits: Edit[] = []
  for (let i = 0; i < found.length; i += 2) {
    // The reference aligns all of the new text to the last character of what it replaces.
    edits.push({ start: found[i]!, end: found[i + 1]!, content, from: found[i + 1]! - 1 })
  }
  return ok(edited(from, edits))
}

function stripped(from: AlignedText, space: ArrayLike<number>, left: boolean, right: boolean): AlignedText {
  const isSpace = (unit: number): boolean => {
    for (let i = 0; i < space.length; i += 2) if (unit >= space[i]! && unit <= space[i + 1]!) return true
    return false
  }
  let start = 0
  let end = from.text.length
  if (left) while (start < end && isSpace(from.text.charCodeAt(start))) start += 1
  if (right) while (end > start && isSpace(from.text.charCodeAt(end - 1))) end -= 1
  return sliced(from, start, end)
}

/** Character by character, as the reference does: no final sigma. */
function lowered(from: AlignedText): AlignedText {
  const edits: Edit[] = []
  let at = 0
  for (const char of from.text) {
    const lower = char.toLowerCase()
    if (lower !== char) edits.push({ start: at, end: at + char.length, content: lower, from: at })
    at += char.length
  }
  return edited(from, edits)
}
