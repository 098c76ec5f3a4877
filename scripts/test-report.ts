/**
 * Reads what `bun test` says about a run: the counts in its closing lines, and from the JUnit file the names of the
 * tests that did not run. Pure functions over text; `test/run.ts` does the running.
 */

/** Checks that ran, by outcome. A todo counts as skipped. */
export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Adds two sums. */
export function add(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped }
}

/** The plain closing line of a whole run. */
export function closingLine(counts: Counts): string {
  return `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`
}

const closingRow = /^ *(\d+) (pass|fail|skip|todo|error|filtered out|expect\(\) calls|snapshots?\b.*)/

/**
 * The counts in the block that ends with `Ran N tests across M files`. Only that block is read, so a test that prints
 * such a line cannot change the sum. Null when the runner died before writing it.
 * Errors between tests are already in Bun's `fail` row, though not in its JUnit file: that is why this reads the text.
 */
export function closingCounts(output: string): Counts | null {
  const lines = output.split("\n")
  let at = lines.findLastIndex((line) => /^Ran \d+ tests? across \d+ files?\./.test(line))
  if (at === -1) return null
  const rows = new Map<string, number>()
  for (at -= 1; at >= 0; at -= 1) {
    const row = closingRow.exec(lines[at]!)
    if (row === null) break
    rows.set(row[2]!, Number(row[1]))
  }
  return {
    passed: rows.get("pass") ?? 0,
    failed: rows.get("fail") ?? 0,
    skipped: (rows.get("skip") ?? 0) + (rows.get("todo") ?? 0),
  }
}

/** A test that did not run, as `file: group > name`. */
export type SkippedTest = string

/** Names of skipped and todo tests in a JUnit file as Bun 1.4.5 writes it (innermost group first in `classname`). */
export function skippedTests(junit: string): SkippedTest[] {
  const names: SkippedTest[] = []
  for (const match of junit.matchAll(/<testcase ([^>]*)>\s*<skipped\b/g)) {
    const attributes = match[1]!
    const groups = attribute(attributes, "classname").split(" > ").reverse()
    const path = [...groups, attribute(attributes, "name")].filter((part) => part !== "")
    names.push(`${attribute(attributes, "file")}: ${path.join(" > ")}`)
  }
  return names
}

function attribute(attributes: string, name: string): string {
  const match = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)
  return match === null ? "" : unescapeXml(match[1]!)
}

const entities: { readonly [name: string]: string } = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" }

function unescapeXml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal, hex, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    return entities[name] ?? whole
  })
}

/** One line of test/skips.txt. */
export interface AllowedSkip {
  /** `file: name`, where `*` stands for any text. */
  readonly pattern: string
  readonly reason: string
}

/** Reads test/skips.txt: `pattern # reason` a line; empty lines and lines that begin with `#` are comments. */
export function allowedSkips(text: string): AllowedSkip[] {
  const skips: AllowedSkip[] = []
  for (const line of text.split("\n")) {
    if (line.trim() === "" || line.startsWith("#")) continue
    const at = line.lastIndexOf(" # ")
    if (at === -1) throw new Error(`test/skips.txt: no reason in: ${line}`)
    skips.push({ pattern: line.slice(0, at).trim(), reason: line.slice(at + 3).trim() })
  }
  return skips
}

/** Why this test may be skipped, or null when nothing allows it. */
export function skipReason(test: SkippedTest, allowed: readonly AllowedSkip[]): string | null {
  return allowed.find(({ pattern }) => wildcard(pattern).test(test))?.reason ?? null
}

function wildcard(pattern: string): RegExp {
  const escaped = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"))
  return new RegExp(`^${escaped.join(".*")}$`, "s")
}
