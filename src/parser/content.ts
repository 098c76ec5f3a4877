import type { Emission } from "./emission"

/** What gets the tokens that are no reasoning: plain text, or a machine that looks for calls. */
export interface ContentMachine {
  /** True inside a call: reasoning cannot begin there, its markers are part of the call's text. */
  readonly busy: boolean
  /** Hot (bench/fold.ts): one token that made `text[start, end)`. */
  token(id: number, text: string, start: number, end: number): void
  /** Reasoning begins: gives out what was held back, as text. Only called when not busy. */
  settle(): void
  /** The sequence ended: gives out what was held back. */
  finish(): void
}

/** Everything is text. */
export class PlainContent implements ContentMachine {
  readonly busy = false
  private readonly emission: Emission

  constructor(emission: Emission) {
    this.emission = emission
  }

  token(_id: number, text: string, start: number, end: number): void {
    this.emission.text(text.slice(start, end))
  }

  settle(): void {}

  finish(): void {}
}

/**
 * Where the marker's own text begins in a marker token's text `text[start, end)`: behind it may only stand nothing, but
 * bytes of an unfinished character before it come out in front. A token shown as nothing (special tokens skipped) or cut
 * by a stop string is all marker.
 */
export function markerStart(text: string, start: number, end: number, marker: string): number {
  const at = end - marker.length
  return at > start && text.startsWith(marker, at) ? at : start
}
