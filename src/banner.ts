/** What the server says on its standard output when it starts. The last line is the one that scripts wait for. */
import type { Config } from "./config"
import { engineArguments, type HandshakeAddress } from "./engine/process/engine-arguments"
import { joinShellWords, quoteShellWord } from "./engine/process/shell-words"
import type { ModelProfile } from "./model/profile"

/** What the running server says about itself. */
export interface Listening {
  readonly url: string
  readonly reasoningParser: string
  readonly toolCallParser: string
  /** `tcp://HOST:PORT` that vLLM's engines dial; null = there are none. */
  readonly engineAddress: string | null
  /** Whether engines that others started find the next process of this server by themselves. */
  readonly enginesOutlive: boolean
}

/** Lines of the start-up banner. */
export function bannerLines(config: Config, profile: ModelProfile, server: Listening): string[] {
  const url = server.url.replace(/\/$/, "")
  const names = config.servedModelNames.length > 0 ? config.servedModelNames : [profile.name]
  const from = config.model === null ? "built-in profile" : profile.root
  return [
    `serving ${names.join(", ")} (${from}), window ${profile.contextTokensMax} tokens`,
    `parsers: ${server.reasoningParser} for reasoning, ${server.toolCallParser} for tool calls`,
    ...engineLines(config, profile, server),
    ...(config.enableScaleOut ? [] : [scaleOutLine]),
    `try: ${curlLine(config, profile, names[0]!, url)}`,
    `listening on ${url}`,
  ]
}

const rendererLine = "no engine: prompts become token ids, and token ids answers; nothing is generated"

/** Their routes answer 403; here an operator learns it before a client does. */
const scaleOutLine = "scale-out routes are off: --enable-scale-out turns them on"

const simulatorLine = "engine simulator: answers are simulated, no model computes them"

/** Who computes. */
function engineLines(config: Config, profile: ModelProfile, server: Listening): string[] {
  if (config.role === "render") return [rendererLine]
  switch (config.engine) {
    case "simulator":
      return [simulatorLine]
    case "http":
      return [`engine http: token ids go to ${config.http.urls.join(", ")}`]
    case "vllm":
      return vllmLines(config, profile, server)
  }
}

/** Which engines come by themselves, and how the others are started. */
function vllmLines(config: Config, profile: ModelProfile, server: Listening): string[] {
  const { vllm } = config
  const here = vllm.command?.engines ?? 0
  const elsewhere = vllm.dataParallelSize - here
  const at = dialedAddress(config, server.engineAddress)
  const on = `tcp://${at.host.includes(":") ? `[${at.host}]` : at.host}:${at.port}`
  const lines: string[] = []
  if (here > 0) lines.push(`engine vllm: ${counted(here)} started here, ready when the model is loaded (${on})`)
  if (elsewhere > 0) {
    const start = ["vllm", "serve", config.model ?? profile.root, ...engineArguments(vllm, at, elsewhere, here)]
    lines.push(`engine vllm: waiting for ${counted(elsewhere)} on ${on}; start: ${joinShellWords(start)}`)
    // An engine says HELLO once in its life (ENGINE_PROTOCOL 1), and neither side's log would tell why nothing happens.
    const fate = server.enginesOutlive ? "comes back by itself" : "must be started again"
    lines.push(`engine vllm: an engine that served an earlier process of this server ${fate}`)
  }
  return lines
}

/** What an engine has to dial. Of a wildcard only the operator knows the name that engines see. */
function dialedAddress(config: Config, address: string | null): HandshakeAddress {
  const { vllm } = config
  const port = Number(/:(\d+)$/.exec(address ?? "")?.[1] ?? vllm.rpcPort)
  return { host: ["0.0.0.0", "::"].includes(vllm.address) ? "HOST" : vllm.address, port }
}

function counted(engines: number): string {
  return engines === 1 ? "1 engine" : `${engines} engines`
}

/** One shell line that asks the server something. The key itself is never printed. */
function curlLine(config: Config, profile: ModelProfile, model: string, url: string): string {
  const chat = config.chatTemplate !== null || Object.keys(profile.chatTemplates).length > 0
  const body = chat
    ? { model, messages: [{ role: "user", content: "Hello" }] }
    : { model, prompt: "Hello", max_tokens: 32 }
  const action = config.role === "render" && config.enableScaleOut ? "/render" : ""
  const route = `${config.rootPath}/v1/${chat ? "chat/completions" : "completions"}${action}`
  // A wildcard address is where we listen, not where one can connect on every system.
  const base =
    config.uds === null ? url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]") : "http://localhost"
  const words = ["curl", `${base}${route}`, "-H 'Content-Type: application/json'"]
  if (config.uds !== null) words.splice(1, 0, `--unix-socket ${quoteShellWord(config.uds)}`)
  if (config.apiKeys.length > 0) words.push('-H "Authorization: Bearer $VLLM_API_KEY"')
  words.push(`-d ${quoteShellWord(JSON.stringify(body))}`)
  return words.join(" ")
}
