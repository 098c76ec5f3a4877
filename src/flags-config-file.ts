/**
 * The file behind `--config`: a YAML mapping whose keys are flag names. Values become the texts that the command line
 * would hold, so that both are read by the same table.
 */
import { err, ok, type Result } from "./result"

/** One key with its value as text: the text itself for a scalar, else JSON. */
export interface ConfigFileEntry {
  readonly key: string
  readonly text: string
  /** The entries of a list of scalars, for flags that take several values; null for anything else. */
  readonly entries: readonly string[] | null
}

/**
 * Reads the text of a config file, or says in a few words what is wrong with it. Scalars keep their spelling, so that
 * an API key of digits stays what it is.
 */
export async function readConfigFile(text: string): Promise<Result<readonly ConfigFileEntry[], string>> {
  // Loaded here because most starts have no config file, and parsing YAML takes a large package.
  const { isMap, isScalar, isSeq, parseDocument } = await import("yaml")
  const document = parseDocument(text)
  const problem = document.errors[0]
  if (problem !== undefined) return err(`not YAML: ${problem.message.split("\n")[0]!.replace(/:$/, "")}`)
  if (document.contents === null) return ok([])
  if (!isMap(document.contents)) return err("expected a mapping of flag names to values")

  const textOf = (node: unknown): string | null => {
    if (!isScalar(node) || node.value === null) return null
    return typeof node.value === "string" ? node.value : (node.source ?? String(node.value))
  }
  let plain: { readonly [key: string]: unknown }
  try {
    plain = document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    return err(`not YAML: ${error instanceof Error ? error.message : "too many aliases"}`)
  }
  const entries: ConfigFileEntry[] = []
  for (const { key: keyNode, value } of document.contents.items) {
    const key = textOf(keyNode)
    if (key === null) return err("expected a mapping of flag names to values")
    const whole = plain[key]
    if (whole === null || whole === undefined) return err(`${key} has no value`)
    const items = isSeq(value) ? value.items.map(textOf) : null
    entries.push({
      key,
      text: textOf(value) ?? JSON.stringify(whole),
      entries: items === null || items.includes(null) ? null : items.filter((item) => item !== null),
    })
  }
  return ok(entries)
}
