import { jsonString } from "./json-string"

const encoder = new TextEncoder()

/**
 * Frames that differ in one text: `head`, the text as JSON, `tail`, and where events are numbered the number and `end`.
 * Made once for an item; its bytes are copied into each frame, so that only the text is encoded.
 */
export class DeltaFrame {
  readonly head: Uint8Array
  readonly tail: Uint8Array
  /** Behind the number. */
  readonly end: Uint8Array
  private readonly strings: readonly [head: string, tail: string, end: string]

  constructor(head: string, tail: string, end = "") {
    this.strings = [head, tail, end]
    this.head = encoder.encode(head)
    this.tail = encoder.encode(tail)
    this.end = encoder.encode(end)
  }

  /** The frame as a string, for those who gather frames instead of sending them. `number` -1 = not numbered. */
  with(text: string, number: number): string {
    const [head, tail, end] = this.strings
    return number < 0 ? `${head}${jsonString(text)}${tail}` : `${head}${jsonString(text)}${tail}${number}${end}`
  }
}

/** Hot (bench/fold.ts): takes one whole frame. `number` -1 = not numbered. */
export type WriteDelta = (frame: DeltaFrame, text: string, number: number) => void
