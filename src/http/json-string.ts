/**
 * A text as JSON. Characters that JSON leaves as they are but some clients take for line breaks (Python's `splitlines`
 * does) are escaped, so that an event stays one line for everybody.
 */
export function jsonString(text: string): string {
  const json = JSON.stringify(text)
  return lineBreakers.test(text) ? oneLine(json) : json
}

/** JSON text with those characters escaped; they can only stand inside its strings. */
export function oneLine(json: string): string {
  return lineBreakers.test(json) ? json.replaceAll(everyLineBreaker, escapedUnit) : json
}

const lineBreakers = /[\u0085\u2028\u2029]/
const everyLineBreaker = /[\u0085\u2028\u2029]/g

function escapedUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
}
