import type { Json } from "../../ir/conversation"

/**
 * A grammar that takes exactly the given texts: `root ::= "Yes" | "No"`. The engine's back end refuses `choice` itself
 * (ENGINE_PROTOCOL 6). Quotes, backslashes and control characters are escaped, since a line break would end the rule.
 */
export function choiceGrammar(choices: readonly string[]): string {
  return `root ::= ${choices.map((choice) => `"${choice.replace(needsEscape, escaped)}"`).join(" | ")}`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped
const needsEscape = /["\\\u0000-\u001f\u007f]/g

function escaped(character: string): string {
  switch (character) {
    case "\n":
      return "\\n"
    case "\r":
      return "\\r"
    case "\t":
      return "\\t"
    case '"':
    case "\\":
      return `\\${character}`
    default:
      return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
  }
}

/** A schema as JSON text; text stays as it is, and integers of any size keep their digits. Its depth was checked. */
export function jsonText(value: Json): string {
  return typeof value === "string" ? value : written(value)
}

function written(value: Json): string {
  if (typeof value === "bigint") return String(value)
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`
  const entries = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${written(each)}`)
  return `{${entries.join(",")}}`
}
