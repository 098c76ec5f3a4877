/**
 * The Codex CLI, set up as README.md says: the scripted model has it read a file through its shell tool and say what
 * stands there. A proxy adds the scripts and keeps the requests. The program cannot leave this machine: what is not
 * for 127.0.0.1 goes to a proxy that does not exist.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { z } from "zod"
import { missingPython, prepareEnvironment, run } from "../support/python-environment"
import { type Server, startServer } from "../support/server-process"
import { callText, script, thinking } from "./support/script"
import { type Reply, scriptingProxy } from "./support/scripting-proxy"

const environment = join(import.meta.dir, "codex/.venv")
const python = join(environment, "bin/python")
const prompt = "Read nonce.txt and tell me what it says."

const reason = missingPython()
if (reason !== null) console.log(`codex: skipped, ${reason}`)

/** Requests as far as they are looked at. */
const sent = z.object({
  instructions: z.string().optional(),
  tools: z.array(z.looseObject({ type: z.string() })),
  input: z.array(z.looseObject({ type: z.string(), role: z.string().optional() })),
})
const spoken = z.looseObject({ content: z.array(z.object({ type: z.string(), text: z.string() })) })
const callOutput = z.looseObject({ call_id: z.string(), output: z.string() })

/** First the shell tool; then the words that its output ends with. */
const replies: readonly Reply[] = [
  () => script(thinking("The file will tell.", callText("exec_command", { cmd: "cat nonce.txt" }))),
  (body) => {
    const { output } = callOutput.parse(sent.parse(body).input.at(-1))
    return script(thinking("There it is.", `It says ${output.trim().split(/\s/).at(-1)}.`))
  },
]

let program = ""
let work = ""

beforeAll(async () => {
  if (reason !== null) return
  await prepareEnvironment(environment, join(import.meta.dir, "codex/requirements.txt"))
  program = (await run(python, "-c", "import codex_cli_bin as c; print(c.bundled_codex_path())")).trim()
  work = mkdtempSync(join(tmpdir(), "sluice-codex-"))
}, 300_000)
afterAll(() => {
  if (work !== "") rmSync(work, { recursive: true, force: true })
})

/** The block of README.md that goes into config.toml. */
function readmeConfig(): string {
  const readme = readFileSync(join(import.meta.dir, "../../README.md"), "utf8")
  const [, config] = /^\*\*Codex CLI\*\*[^`]*`~\/\.codex\/config\.toml`\n\n```toml\n([\s\S]*?)^```/m.exec(readme) ?? []
  if (config === undefined) throw new Error("README.md shows no config.toml for Codex")
  return config
}

/** Runs one task in a folder of its own and gives Codex's events, the last of them first checked by its exit code. */
async function runTask(config: string, nonce: string) {
  const folder = mkdtempSync(join(work, "task-"))
  const home = join(folder, "home")
  mkdirSync(home)
  writeFileSync(join(home, "config.toml"), config)
  writeFileSync(join(folder, "nonce.txt"), `${nonce}\n`)
  const nowhere = "http://127.0.0.1:9"
  const child = Bun.spawn(
    [
      program,
      ...["exec", "--json", "--skip-git-repo-check", "--ephemeral", "--dangerously-bypass-approvals-and-sandbox"],
      ...["-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", "-C", folder, prompt],
    ],
    {
      timeout: 50_000,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: {
        ...{ PATH: process.env.PATH ?? "", HOME: home, CODEX_HOME: home },
        ...{ http_proxy: nowhere, https_proxy: nowhere, no_proxy: "127.0.0.1" },
      },
    },
  )
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`codex ended with ${code}:\n${out}${errors}`)
  const event = z.looseObject({ type: z.string(), item: z.looseObject({ type: z.string() }).optional() })
  return out
    .trim()
    .split("\n")
    .map((line) => event.parse(JSON.parse(line)))
}

/** Runs the task through a proxy of its own; both requests are looked at, and what Codex said of it. */
async function expectRead(server: Server, change: (config: string) => string): Promise<z.infer<typeof sent>> {
  const nonce = crypto.randomUUID()
  await using proxy = scriptingProxy(server.origin, replies)
  const config = change(readmeConfig()).replace("http://127.0.0.1:8000", proxy.origin)
  expect(config).toContain(proxy.origin)
  const events = await runTask(config, nonce)

  expect(events.at(-1)!.type).toBe("turn.completed")
  const done = events.flatMap(({ type, item }) => (type === "item.completed" && item !== undefined ? [item] : []))
  expect(done.at(-1)).toMatchObject({ type: "agent_message", text: `It says ${nonce}.` })
  expect(done.find(({ type }) => type === "command_execution")).toMatchObject({
    exit_code: 0,
    aggregated_output: expect.stringContaining(nonce),
  })

  expect(proxy.bodies).toHaveLength(2)
  const second = sent.parse(proxy.bodies[1])
  const shape = second.input.map(({ type, role }) => role ?? type)
  // What Codex tells about its surroundings may be a user message of its own, before the task.
  expect(shape.filter((kind, at) => kind !== "user" || shape[at - 1] !== "user")).toEqual([
    ...["developer", "developer", "user"],
    ...["reasoning", "function_call", "function_call_output"],
  ])
  const [reasoning, call, output] = second.input.slice(-3)
  expect(spoken.parse(second.input.at(-4)).content).toEqual([{ type: "input_text", text: prompt }])
  expect(reasoning).toMatchObject({
    content: [{ type: "reasoning_text", text: "The file will tell." }],
    encrypted_content: null,
  })
  expect(call).toMatchObject({ name: "exec_command", arguments: JSON.stringify({ cmd: "cat nonce.txt" }) })
  expect(output).toMatchObject({ call_id: call!.call_id, output: expect.stringContaining(nonce) })
  return second
}

describe.skipIf(reason !== null)("Codex, with the settings of README.md", () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(async () => {
    expect(await server.end()).toBe(0)
  })

  for (const time of ["once", "and again"]) {
    test(`reads a file with its shell tool and tells what stands there, ${time}`, async () => {
      const { tools } = await expectRead(server, (config) => config)
      expect([...new Set(tools.map(({ type }) => type))]).toEqual(["function"])
    })
  }
})

describe.skipIf(reason !== null)("Codex with sub-agents, on a server that takes namespaces", () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer("--responses-extensions", "namespace_tools")
  })
  afterAll(async () => {
    expect(await server.end()).toBe(0)
  })

  test("does the same beside a namespace of tools", async () => {
    const { tools } = await expectRead(server, (config) => config.replace("multi_agent = false", "multi_agent = true"))
    expect(tools.map(({ type }) => type)).toContain("namespace")
  })
})
