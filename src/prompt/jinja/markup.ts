import { text } from "./repr"
import type { Run } from "./run"
import { Markup, type Value } from "./value"

const entities: { readonly [char: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
}

/** HTML's five special characters as entities. */
export function escapeHtml(plain: string): string {
  return plain.replace(/[&<>"']/g, (char) => entities[char] ?? char)
}

/** MarkupSafe's `escape`: what is escaped already stays as it is, everything else is printed and escaped. */
export function escaped(value: Value, run: Run): string {
  return value instanceof Markup ? value.text : escapeHtml(text(value, run))
}

const named: { readonly [name: string]: string } = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u{a0}" }

/** The text behind entities: numeric ones and the names that HTML's escaping makes. */
export function unescapeHtml(markup: string): string {
  return markup.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w+));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return named[name] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code > 0x10ffff || code === 0 || (code >= 0xd800 && code <= 0xdfff) ? "\u{fffd}" : String.fromCodePoint(code)
  })
}
