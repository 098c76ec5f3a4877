import { err, ok, type Result } from "../result"
import type { EncodeFailure, TextSegment, Tokenizer } from "../tokenizer/tokenizer"
import type { EncodeBounds, RenderedPrompt, TextTooLong } from "./renderer"

/** A text all of whose special tokens count. */
export function wholeText(text: string): readonly TextSegment[] {
  return [{ text, special: "token" }]
}

/** Encodes segments as one text; what cannot fit is refused before it costs time. */
export function encodeSegments(
  tokenizer: Tokenizer,
  segments: readonly TextSegment[],
  addSpecialTokens: boolean,
  { textBytesMax, tokensMax }: EncodeBounds,
): Result<RenderedPrompt, EncodeFailure | TextTooLong> {
  const text = segments.length === 1 ? segments[0]!.text : segments.map((each) => each.text).join("")
  const textBytes = Buffer.byteLength(text)
  if (textBytes > textBytesMax) return err({ kind: "text_too_long", textBytes, textBytesMax })
  const options = { addSpecialTokens, ...(tokensMax !== null && { tokensMax }) }
  const tokenIds =
    tokenizer.encodeSegments === undefined || segments.every(({ special }) => special === "token")
      ? tokenizer.encode(text, options)
      : tokenizer.encodeSegments(segments, options)
  return tokenIds.ok ? ok({ tokenIds: tokenIds.value, text }) : tokenIds
}
