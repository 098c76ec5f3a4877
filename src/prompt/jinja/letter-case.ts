/** Python's letter cases where JavaScript has none of its own: title case, swapped case, folding and the tests. */

/** Letters that are two in one have a title form between the cases. */
const titleForms: { readonly [char: string]: string } = {
  Ǆ: "ǅ",
  ǆ: "ǅ",
  ǅ: "ǅ",
  Ǉ: "ǈ",
  ǉ: "ǈ",
  ǈ: "ǈ",
  Ǌ: "ǋ",
  ǌ: "ǋ",
  ǋ: "ǋ",
  Ǳ: "ǲ",
  ǳ: "ǲ",
  ǲ: "ǲ",
}

function titled(char: string): string {
  const known = titleForms[char]
  if (known !== undefined) return known
  // ß becomes "SS" as a capital, of which a title keeps only the first large.
  const [first = "", ...rest] = char.toUpperCase()
  return first + rest.join("").toLowerCase()
}

/** Python's `str.capitalize`. */
export function capitalize(value: string): string {
  const [first = ""] = value
  // Lowered as a whole, since a sigma at the end of a word has a form of its own.
  return titled(first) + value.toLowerCase().slice(first.toLowerCase().length)
}

/** Python's `str.title`: a capital behind everything that has no case. */
export function titleCase(value: string): string {
  return value.replace(/\p{Cased}+/gu, capitalize)
}

/** Python's `str.swapcase`. */
export function swapCase(value: string): string {
  // Title forms, between the cases, stay as they are.
  return value.replace(/[\p{Uppercase}\p{Lowercase}]/gu, (char) =>
    /\p{Uppercase}/u.test(char) ? char.toLowerCase() : char.toUpperCase(),
  )
}

/** Python's `str.casefold`: for comparing without case. */
export function caseFold(value: string): string {
  return value.replace(/[^\0-\x7f]/gu, (char) => (char === "ı" ? char : char.toUpperCase().toLowerCase())).toLowerCase()
}

/** Python's `str.isupper`. */
export function isUpper(value: string): boolean {
  return /\p{Uppercase}/u.test(value) && !/[\p{Lowercase}\p{Lt}]/u.test(value)
}

/** Python's `str.islower`. */
export function isLower(value: string): boolean {
  return /\p{Lowercase}/u.test(value) && !/[\p{Uppercase}\p{Lt}]/u.test(value)
}

/** Python's `str.istitle`. */
export function isTitle(value: string): boolean {
  return /\p{Cased}/u.test(value) && !/\p{Cased}[\p{Uppercase}\p{Lt}]|(?<!\p{Cased})\p{Lowercase}/u.test(value)
}
