import { err, ok, type Result } from "../../result"

/**
 * Cuts a command line into words as a POSIX shell does: blanks part words, single quotes keep everything, double quotes
 * keep everything but a backslash before `"`, `\`, `$`, a backquote or a line end, and a backslash keeps the next
 * character. Nothing else is special: no variables, no globs, no pipes. Fails with a few words.
 * Source: POSIX.1-2024, Shell Command Language, 2.2.
 */
export function splitShellWords(text: string): Result<string[], string> {
  const words: string[] = []
  // null between words: "" is a word when it was quoted.
  let word: string | null = null
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]!
    if (/[ \t\r\n]/.test(unit)) {
      if (word !== null) words.push(word)
      word = null
    } else if (unit === "'") {
      const end = text.indexOf("'", at + 1)
      if (end === -1) return err("a single quote that is closed")
      word = (word ?? "") + text.slice(at + 1, end)
      at = end
    } else if (unit === '"') {
      word ??= ""
      for (at++; text[at] !== '"'; at++) {
        if (at >= text.length) return err("a double quote that is closed")
        if (text[at] !== "\\" || !/["\\$`\n]/.test(text[at + 1] ?? "")) word += text[at]
        else if (text[++at] !== "\n") word += text[at]
      }
    } else if (unit === "\\") {
      if (++at >= text.length) return err("a character behind the last backslash")
      // A backslash before a line end joins the lines.
      if (text[at] !== "\n") word = (word ?? "") + text[at]
    } else {
      word = (word ?? "") + unit
    }
  }
  if (word !== null) words.push(word)
  return ok(words)
}

/** One line that a shell reads as these words, for people to copy. */
export function joinShellWords(words: readonly string[]): string {
  return words.map(quoteShellWord).join(" ")
}

/** The word as a shell reads it back, in quotes only where it needs them. */
export function quoteShellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
