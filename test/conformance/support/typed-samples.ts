/**
 * Checks JSON against the types of a package, as strictly as its compiler can: each value becomes an object literal of
 * its type, so that missing, surplus and wrong fields are all errors.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** A value from the wire and the exported type, by name, that it must have. */
export interface TypedSample {
  readonly type: string
  /** Named in a fault. */
  readonly title: string
  readonly value: unknown
}

const folder = join(import.meta.dir, "../.cache/typed-samples")
const compiler = join(import.meta.dir, "../../../node_modules/.bin/tsc")

/**
 * A field that may be missing may also be null: servers send null for what is unset, OpenAI's too, where the package's
 * types say `?`. All else stays as it is.
 */
const nullable = `type Nullable<T> = T extends readonly (infer Item)[]
  ? Nullable<Item>[]
  : T extends object
    ? { [Key in keyof T]: undefined extends T[Key] ? Nullable<T[Key]> | null : Nullable<T[Key]> }
    : T
`

/** The compiler's complaints, each with the title of its sample. `imports` brings the types into scope. */
export async function typeFaults(name: string, imports: string, samples: readonly TypedSample[]): Promise<string[]> {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${name}.ts`)
  const head = `${imports}\n${nullable}`
  const lines = samples.map(
    ({ type, value }, at) => `export const s${at}: Nullable<${type}> = ${JSON.stringify(value)}`,
  )
  writeFileSync(file, `${head}${lines.join("\n")}\n`)
  const flags = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--ignoreConfig",
    "--target",
    "esnext",
    "--module",
    "preserve",
  ]
  const child = Bun.spawn([compiler, ...flags, "--pretty", "false", file], { stdout: "pipe", stderr: "pipe" })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  if ((code === 0) !== (out === "") || errors !== "") throw new Error(`tsc ended with ${code}:\n${out}${errors}`)
  const headLines = head.split("\n").length - 1
  return out.split("\n").flatMap((line) => {
    const [, row, column, fault] = /\((\d+),(\d+)\): error (.*)$/.exec(line) ?? []
    if (row === undefined) return []
    const sample = samples[Number(row) - headLines - 1]
    const shown = lines[Number(row) - headLines - 1]?.slice(Math.max(0, Number(column) - 60), Number(column) + 60)
    return [`${sample?.title ?? "?"}: ${fault} at ${shown}`]
  })
}
