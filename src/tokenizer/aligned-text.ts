/**
 * Text that a normalizer or pre-tokenizer has changed, with where each unit came from: the alignments of HF's
 * `NormalizedString`. Alignments are null unless offsets were asked for, so the fast road pays nothing.
 */
export interface AlignedText {
  readonly text: string
  /** For UTF-16 unit i of `text`: the original character it stands for is `[starts[i], ends[i])`, in UTF-16 units. */
  readonly starts: Uint32Array | null
  readonly ends: Uint32Array | null
}

/** A replacement of `[start, end)`. Units of `content` take the alignment of unit `from`, or each of its own. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly content: string
  readonly from: number | readonly number[]
}

/** The text as it came, aligned to itself when `aligned`. */
export function originalText(text: string, aligned: boolean, shift = 0): AlignedText {
  if (!aligned) return { text, starts: null, ends: null }
  const starts = new Uint32Array(text.length)
  const ends = new Uint32Array(text.length)
  for (let i = 0; i < text.length; ) {
    const size = text.codePointAt(i)! > 0xffff ? 2 : 1
    for (let k = i; k < i + size; k++) {
      starts[k] = shift + i
      ends[k] = shift + i + size
    }
    i += size
  }
  return { text, starts, ends }
}

/** Units `[start, end)`; shares the alignments. */
export function sliced(from: AlignedText, start: number, end: number): AlignedText {
  if (start === 0 && end === from.text.length) return from
  return {
    text: from.text.slice(start, end),
    starts: from.starts === null ? null : from.starts.subarray(start, end),
    ends: from.ends === null ? null : from.ends.subarray(start, end),
  }
}

/** Applies edits, which are in order and do not overlap. */
export function edited(from: AlignedText, edits: readonly Edit[]): AlignedText {
  if (edits.length === 0) return from
  let text = ""
  let last = 0
  for (const { start, end, content } of edits) {
    text += from.text.slice(last, start) + content
    last = end
  }
  text += from.text.slice(last)
  if (from.starts === null || from.ends === null) return { text, starts: null, ends: null }
  const starts = new Uint32Array(text.length)
  const ends = new Uint32Array(text.length)
  let at = 0
  let copied = 0
  const copyUntil = (end: number): void => {
    starts.set(from.starts!.subarray(copied, end), at)
    ends.set(from.ends!.subarray(copied, end), at)
    at += end - copied
  }
  for (const edit of edits) {
    copyUntil(edit.start)
    for (let i = 0; i < edit.content.length; i++, at++) {
      const unit = typeof edit.from === "number" ? edit.from : edit.from[i]!
      starts[at] = from.starts[unit] ?? 0
      ends[at] = from.ends[unit] ?? 0
    }
    copied = edit.end
  }
  copyUntil(from.text.length)
  return { text, starts, ends }
}

/** Puts `prefix` before the text; it counts as part of the first character. */
export function prefixed(from: AlignedText, prefix: string): AlignedText {
  if (from.text === "") return from
  return edited(from, [{ start: 0, end: 0, content: prefix, from: 0 }])
}
