/**
 * Chat templates: renders a second of CPU time of ours, npm @huggingface/jinja's interpreter and Python's jinja2 in
 * transformers' environment, in turns on the same variables. All are compiled before; reading JSON is not in it.
 *
 *     npx bun --no-install bench/template.ts [--python] [--check]
 *
 * Ours must be the text of the reference (with --python), and of the package where it renders at all.
 */
import { cpus } from "node:os"
import { join } from "node:path"
import { Template } from "@huggingface/jinja"
import { compileTemplate, type TemplateVariables } from "../src/prompt/template"
import { realTemplates } from "../test/prompt/template-corpus"
import { openOracle, oraclePython, stoppedClock } from "../test/prompt/template-oracle"

const isCheck = Bun.argv.includes("--check")
const withPython = Bun.argv.includes("--python")
const secondsEach = isCheck ? 0.01 : 0.3
const rounds = isCheck ? 1 : 5

/** The first ones of these that are here. */
const wanted = [
  "tokenizer-qwen3",
  "meta-llama-Llama-3.1-8B-Instruct",
  "GLM-4.7-Flash",
  "moonshotai-Kimi-K2",
  "google-gemma-4-31B-it",
  "tokenizer-mistral_nemo",
  "tokenizer-deepseek_v3",
  "tokenizer-qwen2_5",
]

const tool = (i: number) => ({
  type: "function",
  function: {
    name: `search_catalogue_${i}`,
    description: "Looks up an entry of the catalogue by its name, and says when it was last seen.",
    parameters: {
      type: "object",
      properties: {
        name: { type: "string", description: "Name of the entry" },
        days: { type: "integer", description: "How far back to look", minimum: 1, maximum: 14 },
        unit: { type: "string", enum: ["days", "weeks"] },
      },
      required: ["name"],
    },
  },
})

const question = {
  role: "user",
  content: "What was the weather like in Paris last week, and was it unusual? ".repeat(2),
}
const answer = {
  role: "assistant",
  content: "It was mild for the season, with some rain on two of the days. ".repeat(4),
}
const turns = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? question : answer))
const system = { role: "system", content: "You are a helpful assistant." }
const common = { add_generation_prompt: true, bos_token: "<s>", eos_token: "</s>", documents: null }

const conversations: { readonly [name: string]: TemplateVariables } = {
  short: { ...common, messages: [question], tools: null },
  "20 turns": { ...common, messages: [system, ...turns, question], tools: null },
  "20 turns, 10 tools": {
    ...common,
    messages: [system, ...turns, question],
    tools: Array.from({ length: 10 }, (_, i) => tool(i)),
  },
}

/** A way to render one conversation over and over. */
interface Peer {
  readonly text: string
  /** Renders a CPU second of one round. */
  readonly round: () => Promise<number>
}

class PythonPeer {
  private readonly child: Bun.Subprocess<"pipe", "pipe", "inherit">
  private readonly lines: AsyncIterator<string>

  constructor(python: string) {
    const script = join(import.meta.dir, "peers/template_peer.py")
    this.child = Bun.spawn([python, "-B", script], { stdin: "pipe", stdout: "pipe", stderr: "inherit" })
    this.lines = linesOf(this.child.stdout)
  }

  async ask(template: string, variables: TemplateVariables): Promise<{ text: string; rate: number }> {
    this.child.stdin.write(
      `${JSON.stringify({ template, context: JSON.stringify(variables), seconds: secondsEach })}\n`,
    )
    this.child.stdin.flush()
    const { value } = await this.lines.next()
    const said: { text: string; renders: number; seconds: number } = JSON.parse(String(value))
    return { text: said.text, rate: said.renders / said.seconds }
  }

  end(): void {
    this.child.kill()
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const bytes of stream) {
    rest += decoder.decode(bytes, { stream: true })
    const lines = rest.split("\n")
    rest = lines.pop() ?? ""
    yield* lines
  }
}

/** Renders a second of this process's CPU time. */
function rate(render: () => string): number {
  const before = process.cpuUsage()
  let renders = 0
  let micros = 0
  do {
    for (let i = 0; i < 16; i++) render()
    renders += 16
    const { user, system } = process.cpuUsage(before)
    micros = user + system
  } while (micros < secondsEach * 1e6)
  return (renders / micros) * 1e6
}

function oursOf(template: string, variables: TemplateVariables): Peer {
  const compiled = compileTemplate(template, { clock: { ...stoppedClock, now: () => new Date() } })
  if (!compiled.ok) throw new Error(compiled.error.message)
  const render = (): string => {
    const rendered = compiled.value.render(variables)
    if (!rendered.ok) throw new Error(rendered.error.message)
    return rendered.value
  }
  return { text: render(), round: async () => rate(render) }
}

function packageOf(template: string, variables: TemplateVariables): Peer | null {
  try {
    const parsed = new Template(template)
    // The package takes any object.
    const render = (): string => parsed.render(variables as Record<string, unknown>)
    return { text: render(), round: async () => rate(render) }
  } catch {
    return null
  }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!
const templates = wanted
  .flatMap((name) => realTemplates().filter((each) => each.name === name))
  .slice(0, isCheck ? 2 : 5)
if (templates.length === 0) throw new Error("no templates; npm ci --prefix test/vocab brings some")
const reference = withPython ? await openOracle() : null
const python = withPython ? new PythonPeer(oraclePython) : null

console.log(
  `${new Date().toISOString().slice(0, 10)}, ${cpus()[0]?.model}, Bun ${Bun.version}, ${reference ?? "no Python"}; renders a CPU second, median of ${rounds}\n`,
)
console.log("| template | conversation | µs | ours | package | × | jinja2 | × |")
console.log("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
for (const { name, text } of templates) {
  for (const [conversation, variables] of Object.entries(conversations)) {
    const ours = oursOf(text, variables)
    const theirs = packageOf(text, variables)
    const rates = { ours: [] as number[], package: [] as number[], python: [] as number[] }
    await ours.round()
    await theirs?.round()
    for (let i = 0; i < rounds; i++) {
      rates.ours.push(await ours.round())
      if (theirs !== null) rates.package.push(await theirs.round())
      if (python === null) continue
      const said = await python.ask(text, variables)
      if (said.text !== ours.text) throw new Error(`${name}, ${conversation}: not the reference's text`)
      rates.python.push(said.rate)
    }
    if (theirs !== null && theirs.text !== ours.text)
      throw new Error(`${name}, ${conversation}: not the package's text`)
    const own = median(rates.ours)
    const cells = [rates.package, rates.python].flatMap((other) =>
      other.length === 0 ? ["–", "–"] : [median(other).toFixed(0), (own / median(other)).toFixed(1)],
    )
    console.log(`| ${name} | ${conversation} | ${(1e6 / own).toFixed(0)} | ${own.toFixed(0)} | ${cells.join(" | ")} |`)
  }
}
python?.end()
