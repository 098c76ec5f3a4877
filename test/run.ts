/**
 * The whole test path: `npm test`, or `npm test -- unit bench` for some of its steps. Runs the steps one after another
 * (never two at once: timing must not see load), passes on what they print, and ends with one line that sums what the
 * runners counted themselves. Lint, types and each bench count as one check.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  add,
  allowedSkips,
  type Counts,
  closingCounts,
  closingLine,
  skippedTests,
  skipReason,
} from "../scripts/test-report"
import { installRealEngine } from "./real-engine/installation"

const root = join(import.meta.dir, "..")
const conformance = "test/conformance"
const vocab = "test/vocab"
const packageTests = "test/package"
const deploy = "test/deploy"
const realEngine = "test/real-engine"
const oracles = "test/oracles"
/** The Bun that runs this file runs the rest, so that a machine without one on its PATH behaves the same. */
const bun = process.execPath
const inCi = process.env.CI === "true" || process.env.CI === "1"
/** A step that takes longer hangs; its processes are ended and it counts as failed. */
const stepMinutesMax = 18
/** A real engine is started several times, and each start takes minutes on a busy machine. */
const engineMinutesMax = 20
/** In CI everything has to end within 45 minutes: on a machine where the rest took so long, the real engine is left out. */
const minutesBeforeEngineMax = 18

const none: Counts = { passed: 0, failed: 0, skipped: 0 }
const passed: Counts = { passed: 1, failed: 0, skipped: 0 }
const failed: Counts = { passed: 0, failed: 1, skipped: 0 }

const steps: { readonly [name: string]: () => Promise<Counts> } = {
  lint: () => check("lint", [tool("biome"), "check", "--error-on-warnings"]),
  types: () => check("types", [tool("tsc"), "--noEmit"]),
  unit: runUnit,
  conformance: runConformance,
  package: () => bunTest("package", testFiles(isIn(packageTests)), 60_000),
  deploy: runDeploy,
  engine: runEngine,
  bench: runBenches,
}

process.exitCode = await main(process.argv.slice(2))

async function main(wanted: readonly string[]): Promise<number> {
  const unknown = wanted.find((name) => !(name in steps))
  if (unknown !== undefined) {
    console.error(`no step "${unknown}"; steps: ${Object.keys(steps).join(" ")}`)
    return 2
  }
  let counts = none
  for (const [name, step] of Object.entries(steps)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    const startedAt = performance.now()
    const of = await step()
    counts = add(counts, of)
    console.log(`--- ${name}: ${closingLine(of)} [${((performance.now() - startedAt) / 1000).toFixed(1)} s]`)
  }
  if (counts.passed + counts.failed === 0) console.log("no check ran")
  console.log(closingLine(counts))
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1
}

/** A tool of the root's own dependencies, by path: what stands on PATH may be another version. */
function tool(name: string): string {
  return join(root, "node_modules/.bin", name)
}

function testFiles(wanted: (file: string) => boolean): string[] {
  return [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })]
    .filter((file) => !file.includes("node_modules/") && wanted(file))
    .sort()
}

function isIn(folder: string): (file: string) => boolean {
  return (file) => file.startsWith(`${folder}/`)
}

interface Ended {
  readonly code: number
  /** Standard error, which is where `bun test` writes its closing lines. */
  readonly errors: string
}

async function run(command: readonly string[], minutesMax = stepMinutesMax): Promise<Ended> {
  const child = Bun.spawn([...command], { cwd: root, stdin: "ignore", stdout: "inherit", stderr: "pipe" })
  let killing: Timer | undefined
  const deadline = setTimeout(() => {
    console.error(`ended after ${minutesMax} minutes: ${command.join(" ")}`)
    child.kill("SIGTERM") // `--no-orphans` then takes the servers along that tests and benches started
    killing = setTimeout(() => child.kill("SIGKILL"), 5_000)
  }, minutesMax * 60_000)
  const reader = child.stderr.getReader()
  const reading = pass(reader)
  const code = await child.exited
  clearTimeout(deadline)
  clearTimeout(killing)
  // A grandchild that lived on would hold the pipe open; what the child itself wrote is there by then.
  const letGo = setTimeout(() => reader.cancel(), 5_000)
  const errors = await reading
  clearTimeout(letGo)
  return { code, errors }
}

/** Passes standard error on while it comes, and gives all of it. */
async function pass(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text
    process.stderr.write(value)
    text += decoder.decode(value, { stream: true })
  }
}

async function check(title: string, command: readonly string[]): Promise<Counts> {
  console.log(`--- ${title}`)
  const { code } = await run(command)
  return code === 0 ? passed : failed
}

async function bunTest(
  title: string,
  files: readonly string[],
  testMsMax: number,
  minutesMax = stepMinutesMax,
): Promise<Counts> {
  console.log(`--- ${title}: ${files.length} files`)
  if (files.length === 0) return none
  const folder = mkdtempSync(join(tmpdir(), "sluice-test-"))
  const report = join(folder, "report.xml")
  const paths = files.map((file) => `./${file}`)
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`]
  const command = [bun, "--no-install", "test", "--no-orphans", `--timeout=${testMsMax}`, ...reporter, ...paths]
  const { code, errors } = await run(command, minutesMax)
  const junit = existsSync(report) ? readFileSync(report, "utf8") : ""
  rmSync(folder, { recursive: true })

  const counts = closingCounts(errors)
  if (counts === null) {
    console.log(`${title}: the runner ended (code ${code}) without its closing lines`)
    return failed
  }
  const problems = judgeSkips(title, counts.skipped, skippedTests(junit))
  if (code !== 0 && counts.failed === 0) {
    console.log(`${title}: exit code ${code} though no test failed`)
    return add(counts, failed)
  }
  return add(counts, { passed: 0, failed: problems, skipped: 0 })
}

/** Prints every skip with its reason; gives how many are failures. */
function judgeSkips(title: string, skipped: number, names: readonly string[]): number {
  if (names.length !== skipped) {
    console.log(`${title}: ${skipped} tests were skipped but the report names ${names.length}`)
    return 1
  }
  const allowed = allowedSkips(readFileSync(join(root, "test/skips.txt"), "utf8"))
  let problems = 0
  for (const name of names) {
    const reason = skipReason(name, allowed)
    console.log(`skipped: ${name}: ${reason ?? "no line of test/skips.txt allows it"}`)
    if (reason === null && inCi) problems += 1
  }
  return problems
}

/** Installs a package of the tests' own when its lock file changed since the last install; false when that failed. */
async function installed(folder: string, what: string): Promise<boolean> {
  const lock = readFileSync(join(root, folder, "package-lock.json"))
  const digest = createHash("sha256").update(lock).digest("hex")
  const stamp = join(root, folder, "node_modules/.installed-lock")
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return true
  console.log(`--- installing ${what}`)
  const { code } = await run(["npm", "ci", "--no-audit", "--no-fund", "--prefix", folder])
  if (code === 0) writeFileSync(stamp, digest)
  return code === 0
}

/** The vocabularies, and what answers are compared with, live in packages of their own too. */
async function runUnit(): Promise<Counts> {
  if (!(await installed(vocab, "the vocabularies"))) return failed
  if (!(await installed(oracles, "the oracles"))) return failed
  return bunTest(
    "unit",
    testFiles((file) => ![conformance, packageTests, deploy, realEngine].some((folder) => isIn(folder)(file))),
    20_000,
  )
}

/** The clients live in a package of their own. */
async function runConformance(): Promise<Counts> {
  if (!(await installed(conformance, "the clients"))) return failed
  const types = await check("conformance types", [tool("tsc"), "--noEmit", "--project", conformance])
  const tests = await bunTest("conformance", testFiles(isIn(conformance)), 60_000)
  return add(types, tests)
}

/** So do the schemas of Kubernetes and Compose. The image's test installs the product once more. */
async function runDeploy(): Promise<Counts> {
  if (!(await installed(deploy, "the schemas"))) return failed
  return bunTest("deploy", testFiles(isIn(deploy)), 60_000)
}

/** vLLM's CPU build is installed once, outside of the runner, whose tests cannot wait that long. */
async function runEngine(): Promise<Counts> {
  const startedAt = performance.now()
  if (inCi && startedAt > minutesBeforeEngineMax * 60_000) {
    console.log(`--- no real engine: the steps before it took more than ${minutesBeforeEngineMax} minutes`)
    return { passed: 0, failed: 0, skipped: 1 }
  }
  const installed = await installRealEngine(console.log)
  if (!installed.ok) console.log(`--- no real engine: ${installed.error}`)
  else console.log(`--- real engine installed [${((performance.now() - startedAt) / 1000).toFixed(1)} s]`)
  return bunTest("engine", testFiles(isIn(realEngine)), 180_000, engineMinutesMax)
}

/** Each file that lies in bench/ itself is a bench and knows `--check`: a small run with its answers checked. */
async function runBenches(): Promise<Counts> {
  if (!(await installed(vocab, "the vocabularies"))) return failed
  const benches = readdirSync(join(root, "bench"))
    .filter((name) => name.endsWith(".ts"))
    .sort()
  let counts = none
  for (const name of benches) {
    const command = [bun, "--no-install", "--no-orphans", `bench/${name}`, "--check"]
    counts = add(counts, await check(`bench/${name} --check`, command))
  }
  return counts
}
