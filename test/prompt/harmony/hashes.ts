/** FNV-1a in 32 bits: which of hundreds of long answers changed, without keeping them. */
function hash(numbers: Iterable<number>): string {
  let state = 0x811c9dc5
  for (const number of numbers) state = Math.imul(state ^ number, 0x01000193)
  return (state >>> 0).toString(16).padStart(8, "0")
}

/** Of token ids. */
export function idsHash(ids: ArrayLike<number>): string {
  return hash(Array.from(ids))
}

/** Of a text's UTF-8 bytes. */
export function textHash(text: string): string {
  return hash(new TextEncoder().encode(text))
}
