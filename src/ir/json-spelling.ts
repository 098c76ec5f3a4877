/**
 * What a JSON text says beyond the values that JavaScript makes of it, and what a chat template prints: that 14.0 is no
 * integer, and in which order keys like "2" came (objects list them first). It rides on the object or array itself,
 * under a hidden symbol that nothing else looks at, so that everybody between a body and a template goes on seeing plain JSON.
 */
export interface JsonSpelling {
  /** All keys in the order of the text, when some of them look like integers; else null. */
  readonly keys: readonly string[] | null
  /** Keys (places, in an array) of numbers that are integers in value and floats as they are written; else null. */
  readonly floats: ReadonlySet<string> | null
}

const spelling = Symbol("JSON spelling")

interface Spelled {
  readonly [spelling]?: JsonSpelling
}

/** Notes it on an object or array. */
export function noteSpelling(value: object, noted: JsonSpelling): void {
  Object.defineProperty(value, spelling, { value: noted, configurable: true })
}

/** What was noted, or null for values that say all by themselves. */
export function spellingOf(value: object): JsonSpelling | null {
  // Any object may carry the symbol; no type of ours lists it.
  return (value as Spelled)[spelling] ?? null
}

/** Takes over what was noted about floats, for a copy made key by key; numbers that took the place of floats are none. */
export function copyFloats(from: { readonly [key: string]: unknown }, to: { readonly [key: string]: unknown }): void {
  const noted = spellingOf(from)?.floats ?? none
  const before = spellingOf(to)?.floats ?? none
  if (noted.size === 0 && before.size === 0) return
  const kept = [...before].filter((key) => !(Object.hasOwn(from, key) && from[key] === to[key]))
  noteSpelling(to, { keys: null, floats: new Set([...kept, ...noted]) })
}

const none: ReadonlySet<string> = new Set()
