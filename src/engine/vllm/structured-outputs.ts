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
