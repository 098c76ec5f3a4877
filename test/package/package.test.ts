/**
 * The package, installed from its tarball: its types under strict compilers, its command, and one suite
 * (consumer/suite.ts) in Node's own runner, in Bun and in Chromium. Each case of the suite counts where it ran.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { run } from "../support/python-environment"
import { serve } from "../support/serve"
import { findChromium, reportOf } from "./chromium"
import { installPackage } from "./installed"

/** How a case ended; `error` is null when it passed. */
interface Outcome {
  readonly name: string
  readonly error: string | null
}

// Most cases start a runtime or two.
const testMsMax = 60_000
setDefaultTimeout(testMsMax)

const root = join(import.meta.dir, "../..")
const tsc = join(root, "node_modules/.bin/tsc")
const node = Bun.which("node")
const hasNode = node !== null && Bun.which("npm") !== null
const chromium = findChromium()
if (!chromium.ok) console.log(`package: ${chromium.error}`)

const readme = readFileSync(join(root, "README.md"), "utf8")
const section = /^## Tokenizer for JavaScript\n([\s\S]*?)^## /m.exec(readme)?.[1] ?? ""
const scripts = blocks("js")
const pages = blocks("html")

// The cases of the suite become tests here, so they have run before.
const installed = hasNode ? await installPackage() : null
// Hundreds of megabytes: deleting them takes a while too.
afterAll(() => installed?.remove(), testMsMax)
const built = installed === null ? null : await compile(["--module", "nodenext"])
const inBun = built === null ? null : await outcomesInBun()
const names = inBun?.map(({ name }) => name) ?? []

describe.skipIf(installed === null)("types", () => {
  test("compile in a strict project with Node's resolution", () => expect(built).toBe(""))

  for (const [resolution, module] of [
    ["node16", "node16"],
    ["bundler", "preserve"],
  ] as const) {
    test(`and with ${resolution}`, async () => {
      expect(await compile(["--noEmit", "--module", module, "--moduleResolution", resolution])).toBe("")
    })
  }
})

describe.skipIf(installed === null)("the command", () => {
  test("serves from the installed package", async () => {
    const command = [node!, join(installed!.project, "node_modules/.bin/sluice"), "serve"]
    await using server = await serve([], { command })
    const body = JSON.stringify({ prompt: "Hello, world!" })
    const headers = { "content-type": "application/json" }
    const reply = await fetch(`${server.url}/tokenize`, { method: "POST", body, headers })
    expect(await reply.json()).toMatchObject({ tokens: [13225, 11, 2375, 0] })
    expect(await server.stop()).toBe(0)
  })
})

ran("Node's own runner", "needs Node", installed === null ? null : await outcomesInNode())
ran("Bun", "needs Node", inBun)
ran("headless Chromium", "needs Chromium", installed !== null && chromium.ok ? await outcomesInChromium() : null)

describe.skipIf(installed === null)("README.md", () => {
  test("has its examples found", () => expect([scripts.length, pages.length]).toEqual([2, 1]))

  for (const [i, script] of scripts.entries()) {
    for (const [runtime, command] of [
      ["Node", [node!]],
      ["Bun", [process.execPath, "--no-install"]],
    ] as const) {
      test(`example ${i + 1} prints in ${runtime} what it says`, async () => {
        const file = written(`readme-${i}.js`, script)
        expect(await printed([...command, file])).toBe(said(script))
      })
    }
  }

  test("example 1 prints what it says when Bun has bundled it, with the WASM beside it", async () => {
    const file = written("readme-bundled.js", scripts[0]!)
    await run(process.execPath, "build", "--target=bun", `--outdir=${installed!.consumer}/bundle`, file)
    expect(await printed([process.execPath, "bundle/readme-bundled.js"])).toBe(said(scripts[0]!))
  })

  describe.skipIf(!chromium.ok)("page", () => {
    test(chromium.ok ? "shows the ids" : "needs Chromium", async () => {
      const observer = `<script>
        new MutationObserver(() => report(document.body.lastChild.textContent)).observe(document.body, { childList: true })
      </script>`
      const path = chromium.ok ? chromium.value : ""
      expect(await reportOf(path, installed!.consumer, pages[0]! + observer)).toBe("9707 11 1879 0")
    })
  })
})

/** A file of the consumer's project. */
function written(name: string, text: string): string {
  const path = join(installed!.consumer, name)
  writeFileSync(path, text)
  return path
}

/** What a command prints in the consumer's project; throws when it fails or complains. */
async function printed(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { cwd: installed!.consumer, stdout: "pipe", stderr: "pipe" })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0 || errors !== "") throw new Error(`${command.join(" ")}:\n${out}${errors}`)
  return out
}

/** What an example says that it prints. */
function said(script: string): string {
  const lines = [...script.matchAll(/^ *console\.log\(.*\) \/\/ (.*)$/gm)].map((match) => `${match[1]}\n`)
  if (lines.length === 0) throw new Error("the example prints nothing")
  return lines.join("")
}

/** The section's code blocks in one language. */
function blocks(language: string): string[] {
  return [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)]
    .filter((match) => match[1] === language)
    .map((match) => match[2]!)
}

/** One test for each case of the suite that ran in a runtime, and one that all of them did. */
function ran(runtime: string, need: string, outcomes: readonly Outcome[] | null): void {
  describe(`the suite in ${runtime}`, () => {
    test.skipIf(outcomes === null)(outcomes === null ? need : "runs to its end", () => {
      expect(names.length).toBeGreaterThan(0)
      expect(outcomes!.map(({ name }) => name)).toEqual(names)
    })
    for (const { name, error } of outcomes ?? []) test(name, () => expect(error).toBeNull())
  })
}

/** What the compiler says about the consumer's project: nothing when it is content. */
function compile(flags: readonly string[]): Promise<string> {
  return run(tsc, "--project", installed!.consumer, ...flags).catch(String)
}

/** Node's runner writes TAP: a line for each test, and after one that failed what it threw. */
async function outcomesInNode(): Promise<Outcome[]> {
  const child = Bun.spawn([node!, "--test", "--test-reporter=tap", "in-node.js"], {
    cwd: installed!.consumer,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  })
  const tap = await new Response(child.stdout).text()
  await child.exited
  const lines = [...tap.matchAll(/^(not )?ok \d+ - (.*)\n([\s\S]*?)(?=^# Subtest|^1\.\.)/gm)]
  const outcomes = lines.map(([, not, name, rest]) => ({ name: name!, error: not === undefined ? null : rest! }))
  const passed = /^# pass (\d+)$/m.exec(tap)?.[1]
  const isWhole = Number(passed) === outcomes.filter(({ error }) => error === null).length
  return isWhole ? outcomes : [{ name: "Node's closing lines", error: tap }]
}

async function outcomesInBun(): Promise<Outcome[]> {
  return outcomesOf(await printed([process.execPath, "--no-install", "in-bun.js"]).then(parsed, String))
}

async function outcomesInChromium(): Promise<Outcome[]> {
  if (!chromium.ok) return []
  const { consumer } = installed!
  const manifest = JSON.parse(readFileSync(join(consumer, "node_modules/sluice/package.json"), "utf8"))
  const module = join("/node_modules/sluice", manifest.exports["./tokenizer"].default)
  const page = `<script type="module">import("/in-browser.js").catch((error) => report({ error: String(error) }))</script>`
  return outcomesOf(await reportOf(chromium.value, consumer, page, { "sluice/tokenizer": module }))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A list of outcomes as it came, else one failure that shows what came instead. */
function outcomesOf(value: unknown): Outcome[] {
  const isOutcome = (each: unknown): each is Outcome =>
    typeof each === "object" && each !== null && "name" in each && "error" in each
  if (Array.isArray(value) && value.every(isOutcome)) return value
  return [{ name: "the runtime's report", error: JSON.stringify(value) }]
}
