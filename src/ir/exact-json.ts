// Bun has it, and the types of the language's library do not know it yet (ECMA-262, "JSON.parse source text access").
const { rawJSON } = JSON as JSON & { rawJSON(text: string): object }

/**
 * Any value as JSON text. Integers beyond 2^53 are `bigint` here: clients send them (a schema's bounds, say) and get them
 * back in the echo, engines send them in transfer parameters. They keep their digits.
 */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    // Nearly no text holds one: only then is each value looked at.
    return JSON.stringify(value, (_, each) => (typeof each === "bigint" ? rawJSON(String(each)) : each))
  }
}
