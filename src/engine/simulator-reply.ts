/**
 * What the simulator says when no script tells it: a short text that repeats the last thing asked, so that a reader
 * sees at once that the road works and that no model is behind it.
 */

/** Prompt tokens that are looked at; a longer last turn is repeated from its end. */
const promptTailTokens = 2_048
/** UTF-16 units of the question that are repeated. */
const askedUnitsMax = 200

/** How chat templates open and close a user's turn. The one that opens last in the prompt counts. */
const userTurns: readonly { readonly opens: string; readonly closes: string }[] = [
  { opens: "<|im_start|>user\n", closes: "<|im_end|>" },
  { opens: "<|start_header_id|>user<|end_header_id|>", closes: "<|eot_id|>" },
  { opens: "<|start|>user<|message|>", closes: "<|end|>" },
  { opens: "<start_of_turn>user\n", closes: "<end_of_turn>" },
  { opens: "<|user|>", closes: "<|assistant|>" },
  { opens: "[INST]", closes: "[/INST]" },
]

/** Which of them is used depends on the seed. */
const openings: readonly string[] = ["You said: ", "You asked: ", "I was asked: "]
const closing = "\n\n(Written by the simulator; no model is running.)"
const nothingAsked = "an empty prompt"

/** The reply's text to the prompt's last user turn, or to its last characters when no turn is recognised. */
export function simulatedReply(
  promptTokenIds: Uint32Array,
  decode: (tokenIds: Uint32Array) => string,
  seed: number,
): string {
  const asked = lastAsked(decode(promptTokenIds.subarray(Math.max(0, promptTokenIds.length - promptTailTokens))))
  return openings[(seed >>> 0) % openings.length]! + (asked === "" ? nothingAsked : asked) + closing
}

/**
 * Ids of a text in which spelled-out special tokens stay ordinary text: the tokenizer only sees pieces that end right
 * behind each `<` or `[`, and no special token spans two pieces. Without this, repeating a question that quotes
 * `<tool_call>` would make one.
 */
export function encodeOrdinary(text: string, encode: (text: string) => Uint32Array): Uint32Array {
  const pieces = text.split(/(?<=[<[])/).map(encode)
  const ids = new Uint32Array(pieces.reduce((count, piece) => count + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    ids.set(piece, at)
    at += piece.length
  }
  return ids
}

function lastAsked(prompt: string): string {
  let start = 0
  let closes = ""
  for (const turn of userTurns) {
    const at = prompt.lastIndexOf(turn.opens)
    if (at === -1 || at + turn.opens.length <= start) continue
    start = at + turn.opens.length
    closes = turn.closes
  }
  if (start === 0) return lastUnits(beforeLastClose(prompt))
  const end = prompt.indexOf(closes, start)
  return firstUnits(prompt.slice(start, end === -1 ? prompt.length : end).trim())
}

/** A turn that began before the part looked at still ends in it. */
function beforeLastClose(prompt: string): string {
  const end = Math.max(...userTurns.map((turn) => prompt.lastIndexOf(turn.closes)))
  return (end > 0 ? prompt.slice(0, end) : prompt).replace(/<\|[^|<>]{0,64}\|>/g, " ").trim()
}

function firstUnits(text: string): string {
  return text.length <= askedUnitsMax ? text : `${wholeCharacters(text.slice(0, askedUnitsMax))}…`
}

function lastUnits(text: string): string {
  return text.length <= askedUnitsMax ? text : `…${wholeCharacters(text.slice(-askedUnitsMax))}`
}

/** Drops what cutting left of a character at either end. */
function wholeCharacters(text: string): string {
  return text.toWellFormed().replace(/^\ufffd+|\ufffd+$/g, "")
}
