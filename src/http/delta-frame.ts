import { jsonString } from "./json-string"

const encoder = new TextEncoder()

/** Text that stands in many frames, and its bytes: encoded once. */
export class FramePart {
  readonly text: string
  readonly bytes: Uint8Array

  constructor(text: string) {
    this.text = text
    this.bytes = encoder.encode(text)
  }
}

const nothing = new FramePart("")

/**
 * Frames that differ in one text: `head`, the text as JSON, `tail`, and where events are numbered the number and `end`.
 * Made once for an item; its bytes are copied into each frame, so that only the text is encoded. Tail and end are the
 * same for all items of a kind, and shared: with hundreds of streams, what each has of its own is not in the cache.
 */
export class DeltaFrame {
  readonly head: FramePart
  readonly tail: FramePart
  /** Behind the number. */
  readonly end: FramePart

  constructor(head: string, tail: FramePart, end = nothing) {
    this.head = new FramePart(head)
    this.tail = tail
    this.end = end
  }

  /** The frame as a string, for those who gather frames instead of sending them. `number` -1 = not numbered. */
  with(text: string, number: number): string {
    const shown = `${this.head.text}${jsonString(text)}${this.tail.text}`
    return number < 0 ? shown : `${shown}${number}${this.end.text}`
  }
}

/** Hot (bench/fold.ts): takes one whole frame. `number` -1 = not numbered. */
export type WriteDelta = (frame: DeltaFrame, text: string, number: number) => void
