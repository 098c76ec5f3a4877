/** The pre-tokenizers of tokenizer.json: where a normalized text is cut into the pieces that BPE works on. */
import { err, ok, type Result } from "../result"
import { type AlignedText, prefixed, sliced } from "./aligned-text"
import type { ScannerFamily } from "./bpe-core"
import { CharSet } from "./char-set"
import { listOf, objectOf, stringOf, typeOf, type Unsupported } from "./json-shape"
import { type Pattern, readPattern } from "./pattern"
import type { ClassTable } from "./regex-syntax"
import { digitPattern, recognise, scannerPatterns } from "./scanner-family"
import { type SplitFailure, SplitRegex } from "./split-regex"

/** What happens to matches and to what lies between them. */
type Behavior = "Removed" | "Isolated" | "MergedWithPrevious" | "MergedWithNext" | "Contiguous"

/** One step: pieces in, pieces out. */
export type PreTokenizerStep = (
  pieces: readonly AlignedText[],
  context: PieceContext,
) => Result<AlignedText[], SplitFailure>

/** What a step may need to know about the segment. */
export interface PieceContext {
  /** The segment begins the text: nothing, and no added token, stands before it. */
  readonly startsText: boolean
}

/** A pre-tokenizer, read. */
export interface PreTokenizer {
  /** The WASM scanner that does all of it in one pass, or null: then `steps`, and BPE piece by piece. */
  readonly scanner: ScannerFamily | null
  /** Put before a segment that does not begin with a blank (ByteLevel's `add_prefix_space`), before the scanner. */
  readonly prefixBlank: boolean
  readonly steps: readonly PreTokenizerStep[]
  /** Pieces are bytes in GPT-2's spelling to BPE. */
  readonly byteLevel: boolean
}

/** What ByteLevel splits by, unless it is told not to. */
const gpt2Pattern = scannerPatterns.gpt2![0]!

const noSplit: PreTokenizer = { scanner: "whole", prefixBlank: false, steps: [], byteLevel: false }

/** Reads the `pre_tokenizer` of a tokenizer.json. `mayScan` false: as steps, also where there is a scanner for it. */
export function readPreTokenizer(
  value: unknown,
  classes: ClassTable,
  mayScan = true,
): Result<PreTokenizer, Unsupported> {
  if (value === null || value === undefined) return ok(noSplit)
  const items = flattened(value)
  if (items.length === 0) return ok(noSplit)
  const scanned = mayScan ? scannerFor(items) : null
  if (scanned !== null) return ok(scanned)
  const steps: PreTokenizerStep[] = []
  let byteLevel = false
  for (const item of items) {
    if (byteLevel) return unsupported("a pre-tokenizer behind ByteLevel")
    const shape = objectOf(item)
    if (typeOf(item) === "ByteLevel") {
      byteLevel = true
      if (shape?.add_prefix_space === true) {
        steps.push((pieces) => ok(pieces.map((piece) => (piece.text.startsWith(" ") ? piece : prefixed(piece, " ")))))
      }
      if (shape?.use_regex !== false) {
        const regex = SplitRegex.create(gpt2Pattern, classes)
        if (!regex.ok) return unsupported(regex.error.message)
        steps.push(splitStep(regex.value, "Isolated", false))
      }
      continue
    }
    const step = readStep(item, classes)
    if (!step.ok) return step
    steps.push(step.value)
  }
  return ok({ scanner: null, prefixBlank: false, steps, byteLevel })
}

/** What a scanner does in one pass; null when there is none for these. It needs no steps, which take long to make. */
function scannerFor(items: readonly unknown[]): PreTokenizer | null {
  if (typeOf(items[items.length - 1]) !== "ByteLevel") return null
  const patterns: string[] = []
  let prefixBlank = false
  for (const [i, item] of items.entries()) {
    if (typeOf(item) !== "ByteLevel") {
      const pattern = plainPattern(item, items.length === 2)
      if (pattern === null) return null
      patterns.push(pattern)
      continue
    }
    if (i < items.length - 1) return null
    const shape = objectOf(item)
    prefixBlank = shape?.add_prefix_space === true
    // Behind a split it would put a blank before each piece.
    if (prefixBlank && i > 0) return null
    if (shape?.use_regex !== false) patterns.push(gpt2Pattern)
  }
  const scanner = patterns.length === 0 ? "whole" : recognise(patterns)
  return scanner === null ? null : { scanner, prefixBlank, steps: [], byteLevel: true }
}

function unsupported(message: string): Result<never, Unsupported> {
  return err({ kind: "unsupported", message })
}

function flattened(value: unknown): readonly unknown[] {
  if (typeOf(value) !== "Sequence") return [value]
  return (listOf(objectOf(value)?.pretokenizers) ?? []).flatMap((item) => flattened(item))
}

/** The regex of a Split that cuts before and behind each match, or keeps just the matches of one that covers all. */
function plainPattern(item: unknown, alone: boolean): string | null {
  const shape = objectOf(item)
  if (typeOf(item) === "Digits" && shape?.individual_digits === true) return digitPattern
  if (typeOf(item) !== "Split") return null
  const pattern = stringOf(objectOf(shape?.pattern)?.Regex)
  const isolated = shape?.behavior === "Isolated"
  // The families' patterns match every character, so what lies between their matches is empty. DeepSeek's first two
  // do not, and they are always isolated.
  const kept = alone && shape?.behavior === "Removed" && shape.invert === true
  return isolated || kept ? pattern : null
}

function readStep(item: unknown, classes: ClassTable): Result<PreTokenizerStep, Unsupported> {
  const shape = objectOf(item)
  const type = typeOf(item)
  switch (type) {
    case "Split": {
      const pattern = readPattern(shape?.pattern, classes)
      if (!pattern.ok) return pattern
      const behavior = behaviorOf(shape?.behavior)
      if (behavior === null) return unsupported(`the split behavior ${String(shape?.behavior)}`)
      return ok(splitStep(pattern.value, behavior, shape?.invert === true))
    }
    case "Digits":
      return classStep("Digits", shape?.individual_digits === true ? "Isolated" : "Contiguous", classes)
    case "Punctuation": {
      const behavior = shape?.behavior === undefined ? "Isolated" : behaviorOf(shape.behavior)
      if (behavior === null) return unsupported(`the split behavior ${String(shape?.behavior)}`)
      return classStep("Punctuation", behavior, classes)
    }
    case "WhitespaceSplit":
      return classStep("WhiteSpaceSplit", "Removed", classes)
    case "Whitespace": {
      const regex = SplitRegex.create("\\w+|[^\\w\\s]+", classes)
      return regex.ok ? ok(splitStep(regex.value, "Removed", true)) : unsupported(regex.error.message)
    }
    case "CharDelimiterSplit": {
      const pattern = readPattern({ String: shape?.delimiter }, classes)
      return pattern.ok ? ok(splitStep(pattern.value, "Removed", false)) : pattern
    }
    case "Metaspace":
      return metaspaceStep(shape ?? {})
    default:
      return unsupported(`the pre-tokenizer ${type === "" ? JSON.stringify(item).slice(0, 80) : type}`)
  }
}

function behaviorOf(value: unknown): Behavior | null {
  switch (value) {
    case "Removed":
    case "Isolated":
    case "MergedWithPrevious":
    case "MergedWithNext":
    case "Contiguous":
      return value
    default:
      return null
  }
}

/** Splits at single characters of a class. */
function classStep(name: string, behavior: Behavior, classes: ClassTable): Result<PreTokenizerStep, Unsupported> {
  const ranges = classes(name)
  if (ranges === null) return unsupported(`the class ${name}, for which there is no table`)
  const set = new CharSet(ranges)
  const pattern: Pattern = {
    matches: (text, out) => {
      for (let at = 0; at < text.length; ) {
        const code = text.codePointAt(at)!
        const size = code > 0xffff ? 2 : 1
        if (set.has(code)) out.push(at, at + size)
        at += size
      }
      return ok(null)
    },
  }
  return ok(splitStep(pattern, behavior, false))
}

function metaspaceStep(shape: { readonly [key: string]: unknown }): Result<PreTokenizerStep, Unsupported> {
  const replacement = stringOf(shape.replacement) ?? "▁"
  // Files from before prepend_scheme say add_prefix_space.
  const scheme = stringOf(shape.prepend_scheme) ?? (shape.add_prefix_space === false ? "never" : "always")
  if (Array.from(replacement).length !== 1) return unsupported("a Metaspace replacement of several characters")
  if (scheme !== "always" && scheme !== "first" && scheme !== "never")
    return unsupported(`the prepend_scheme ${scheme}`)
  const split = shape.split !== false
  return ok((pieces, context) => {
    const result: AlignedText[] = []
    pieces.forEach((piece, i) => {
      // One character for another, so the alignments stay as they are when both are one unit.
      let text: AlignedText = { ...piece, text: piece.text.replaceAll(" ", replacement) }
      const isFirst = i === 0 && context.startsText
      const wants = scheme === "always" || (scheme === "first" && isFirst)
      if (wants && !text.text.startsWith(replacement)) text = prefixed(text, replacement)
      if (!split) {
        result.push(text)
        return
      }
      let start = 0
      for (let at = text.text.indexOf(replacement, 1); at >= 0; at = text.text.indexOf(replacement, at + 1)) {
        result.push(sliced(text, start, at))
        start = at
      }
      if (text.text !== "") result.push(sliced(text, start, text.text.length))
    })
    return ok(result)
  })
}

/** A step that cuts every piece by a pattern. Empty pieces go away, as in the reference. */
function splitStep(pattern: Pattern, behavior: Behavior, invert: boolean): PreTokenizerStep {
  return (pieces) => {
    const result: AlignedText[] = []
    for (const piece of pieces) {
      const found: number[] = []
      const searched = pattern.matches(piece.text, found)
      if (!searched.ok) return searched
      cutPiece(piece, found, behavior, invert, result)
    }
    return ok(result)
  }
}

function cutPiece(
  piece: AlignedText,
  found: readonly number[],
  behavior: Behavior,
  invert: boolean,
  out: AlignedText[],
): void {
  /** Matches and what lies between them, in order: start, end, 1 for a match. */
  const parts: [number, number, boolean][] = []
  let last = 0
  for (let i = 0; i < found.length; i += 2) {
    if (last < found[i]!) parts.push([last, found[i]!, invert])
    parts.push([found[i]!, found[i + 1]!, !invert])
    last = found[i + 1]!
  }
  if (last < piece.text.length) parts.push([last, piece.text.length, invert])
  for (const [start, end] of behaved(parts, behavior)) if (start < end) out.push(sliced(piece, start, end))
}

function behaved(parts: readonly [number, number, boolean][], behavior: Behavior): [number, number][] {
  const result: [number, number][] = []
  let previousMatch = false
  switch (behavior) {
    case "Removed":
      for (const [start, end, match] of parts) if (!match) result.push([start, end])
      return result
    case "Isolated":
      return parts.map(([start, end]) => [start, end])
    case "Contiguous":
      for (const [start, end, match] of parts) {
        const before = result[result.length - 1]
        if (match === previousMatch && before !== undefined) before[1] = end
        else result.push([start, end])
        previousMatch = match
      }
      return result
    case "MergedWithPrevious":
      for (const [start, end, match] of parts) {
        const before = result[result.length - 1]
        if (match && !previousMatch && before !== undefined) before[1] = end
        else result.push([start, end])
        previousMatch = match
      }
      return result
    case "MergedWithNext":
      for (const [start, end, match] of [...parts].reverse()) {
        const behind = result[result.length - 1]
        if (match && !previousMatch && behind !== undefined) behind[0] = start
        else result.push([start, end])
        previousMatch = match
      }
      return result.reverse()
  }
}
