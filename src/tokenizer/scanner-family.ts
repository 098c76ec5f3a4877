/** Split patterns that have a scanner of their own in the WASM core, by the text that tokenizer files spell them with. */
import type { ScannerFamily } from "./bpe-core"

const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
const spaces = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
const lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

const gpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/** The `Digits` pre-tokenizer with `individual_digits`, as a pattern: its digits are a class of their own. */
export const digitPattern = "\\p{Digits}"

const cl100k = `${contractions}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${spaces}`

/**
 * Each family's patterns, applied one after another to the pieces of the one before. Exact texts: a pattern that is
 * spelled in another way goes through the general matcher, which is slower and just as right.
 */
export const scannerPatterns: { readonly [family in Exclude<ScannerFamily, "whole">]?: readonly string[] } = {
  gpt2: [gpt2],
  gpt2_digits: [digitPattern, gpt2],
  cl100k: [cl100k],
  llama3: [cl100k],
  qwen2: [`${contractions}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${spaces}`],
  qwen35: [
    `${contractions}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${spaces}`,
  ],
  o200k: [
    `[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+${contractions}?|` +
      `[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*${contractions}?|` +
      `\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${spaces}`,
  ],
  tekken: [
    `[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+|[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*|` +
      `\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${spaces}`,
  ],
  deepseek3: [
    "\\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" +
      " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
  ],
}

/** The family of a list of patterns, or null when none is spelled just so. */
export function recognise(patterns: readonly string[]): ScannerFamily | null {
  for (const [family, known] of Object.entries(scannerPatterns)) {
    const same =
      known !== undefined && known.length === patterns.length && known.every((each, i) => each === patterns[i])
    // Keys of the table are families.
    if (same) return family as ScannerFamily
  }
  return null
}
