import { TemplateError } from "./run"

const simple: { readonly [char: string]: string } = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
}
const hexLengths: { readonly [char: string]: number } = { x: 2, u: 4, U: 8 }
const escapes = /\\(?:([0-7]{1,3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gsu

/** The value of a text literal between its quotes: Python's escapes; unknown ones stay as they are. */
export function unescapeLiteral(literal: string): string {
  if (!literal.includes("\\")) return literal
  return literal.replace(escapes, (whole: string, octal, x, u, wide, char) => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
    const hex = x ?? u ?? wide
    if (hex !== undefined) return codePoint(Number.parseInt(hex, 16))
    if (char in hexLengths) throw new TemplateError(`truncated \\${char} escape`)
    if (char === "N") throw new TemplateError("character names (\\N) are not supported")
    // Python's detour through ASCII spells a character beyond it behind a backslash: the backslash is escaped by it.
    return simple[char] ?? (char > "\x7f" ? `\\${spelledOut(char)}` : whole)
  })
}

function codePoint(code: number): string {
  if (code > 0x10ffff) throw new TemplateError("illegal Unicode character")
  return String.fromCodePoint(code)
}

function spelledOut(char: string): string {
  const code = char.codePointAt(0) ?? 0
  if (code <= 0xff) return `x${code.toString(16).padStart(2, "0")}`
  return code <= 0xffff ? `u${code.toString(16).padStart(4, "0")}` : `U${code.toString(16).padStart(8, "0")}`
}
