/**
 * Builds what the Dockerfile says without Docker: every stage is a folder, its COPY and RUN are done there, and absolute
 * paths become paths below it. What base images bring (Debian, Node, npm) is this machine's.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { repository } from "../support/serve"
import { type Instruction, parseDockerfile } from "./schemas"

/** The last stage, built, and what the image says about how it runs. Paths are as in the image. */
export interface Image {
  /** The folder that stands for `/`. */
  readonly root: string
  readonly workdir: string
  readonly user: string
  readonly env: { readonly [name: string]: string }
  readonly exposed: string
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
  readonly healthcheck: readonly string[]
  /** Words in which paths of the image are paths of this machine. */
  here(word: string): string
  remove(): void
}

/** The repository's Dockerfile. */
export const instructions: () => Instruction[] = () =>
  parseDockerfile(readFileSync(join(repository, "Dockerfile"), "utf8"))

interface Stage {
  readonly name: string
  readonly root: string
  workdir: string
}

/** Builds it in a folder below the system's temporary one. Throws with what a command wrote when it fails. */
export function buildImage(): Image {
  const folder = mkdtempSync(join(tmpdir(), "sluice-image-"))
  // The image's user has to get in.
  chmodSync(folder, 0o755)
  const context = join(folder, "context")
  sendContext(context)
  const stages: Stage[] = []
  const said = { user: "", exposed: "", entrypoint: [""], command: [""], healthcheck: [""] }
  let env: { [name: string]: string } = {}
  for (const { keyword, flags, given } of instructions()) {
    const stage = stages.at(-1)
    if (keyword === "FROM") {
      const root = join(folder, `stage-${stages.length}`)
      mkdirSync(root)
      stages.push({ name: /\sAS\s+(\S+)$/i.exec(given)?.[1] ?? "", root, workdir: "/" })
      env = {}
    } else if (stage === undefined) throw new Error(`${keyword} stands before FROM`)
    else if (keyword === "WORKDIR") {
      stage.workdir = given
      mkdirSync(below(stage.root, given), { recursive: true })
    } else if (keyword === "COPY")
      copy(stage, fromRoot(flags, stages) ?? context, given.split(/\s+/), flagValue(flags, "chmod"))
    else if (keyword === "RUN") run(stage, given)
    else if (keyword === "ENV") env = { ...env, ...Object.fromEntries(given.split(/\s+/).map(assignment)) }
    else if (keyword === "USER") said.user = given
    else if (keyword === "EXPOSE") said.exposed = given
    else if (keyword === "ENTRYPOINT") said.entrypoint = JSON.parse(given)
    else if (keyword === "CMD") said.command = JSON.parse(given)
    else if (keyword === "HEALTHCHECK") said.healthcheck = JSON.parse(given.replace(/^CMD\s+/, ""))
    else throw new Error(`this test does not know what ${keyword} does`)
  }
  const { root, workdir } = stages.at(-1)!
  const here = (word: string): string => word.replace(/^(--[\w-]+=)?\/(?!\/)/, (_, flag = "") => `${flag}${root}/`)
  return { root, workdir, env, ...said, here, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Copies what .dockerignore lets through, of which only lists that leave all out and take some back in are read. */
function sendContext(context: string): void {
  const [all, ...taken] = readFileSync(join(repository, ".dockerignore"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
  if (all !== "*" || taken.some((line) => !line.startsWith("!")))
    throw new Error(".dockerignore is no list of its kind")
  for (const line of taken) cpSync(join(repository, line.slice(1)), join(context, line.slice(1)), { recursive: true })
}

/** Where COPY takes from, when it is another stage. */
function fromRoot(flags: readonly string[], stages: readonly Stage[]): string | null {
  const name = flagValue(flags, "from")
  if (name === null) return null
  const stage = stages.find((each) => each.name === name)
  if (stage === undefined) throw new Error(`no stage is named ${name}`)
  return stage.root
}

function flagValue(flags: readonly string[], name: string): string | null {
  const start = `--${name}=`
  return flags.find((flag) => flag.startsWith(start))?.slice(start.length) ?? null
}

/** Into a folder (`to` ends with a slash) or as a file; a folder gives what is in it. As in Docker, links stay links. */
function copy(stage: Stage, source: string, words: readonly string[], mode: string | null): void {
  const to = words.at(-1)!
  const target = below(stage.root, to.startsWith("/") ? to : join(stage.workdir, to))
  for (const pattern of words.slice(0, -1)) {
    const found = globSync(below(source, pattern))
    if (found.length === 0) throw new Error(`COPY finds no ${pattern}`)
    for (const path of found) {
      const into = statSync(path).isDirectory() || !to.endsWith("/") ? target : join(target, basename(path))
      mkdirSync(dirname(into), { recursive: true })
      cpSync(path, into, { recursive: true, verbatimSymlinks: true })
      if (mode !== null) Bun.spawnSync(["chmod", "-R", mode, into])
    }
  }
}

function run(stage: Stage, command: string): void {
  const script = command.replace(/(^|\s)\/(?=\w)/g, `$1${stage.root}/`)
  const cwd = below(stage.root, stage.workdir)
  if (!existsSync(cwd)) mkdirSync(cwd, { recursive: true })
  const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-c", script], { cwd, stdin: "ignore" })
  if (exitCode !== 0) throw new Error(`RUN ${command} ended with ${exitCode}:\n${stdout}${stderr}`)
}

function below(root: string, path: string): string {
  return join(root, path)
}

function assignment(text: string): [string, string] {
  const at = text.indexOf("=")
  return [text.slice(0, at), text.slice(at + 1)]
}
