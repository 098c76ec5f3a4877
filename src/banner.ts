/** What the server says on its standard output when it starts. The last line is the one that scripts wait for. */
import type { Config } from "./config"
import type { ModelProfile } from "./model/profile"

/** What the running server says about itself. */
export interface Listening {
  readonly url: string
  readonly reasoningParser: string
  readonly toolCallParser: string
}

/** Lines of the start-up banner. */
export function bannerLines(config: Config, profile: ModelProfile, server: Listening): string[] {
  const url = server.url.replace(/\/$/, "")
  const names = config.servedModelNames.length > 0 ? config.servedModelNames : [profile.name]
  const from = config.model === null ? "built-in profile" : profile.root
  return [
    `serving ${names.join(", ")} (${from}), window ${profile.contextTokensMax} tokens`,
    `parsers: ${server.reasoningParser} for reasoning, ${server.toolCallParser} for tool calls`,
    `engine ${config.engine}: answers are simulated, no model computes them`,
    `try: ${curlLine(config, profile, names[0]!, url)}`,
    `listening on ${url}`,
  ]
}

/** One shell line that asks the server something. The key itself is never printed. */
function curlLine(config: Config, profile: ModelProfile, model: string, url: string): string {
  const chat = config.chatTemplate !== null || Object.keys(profile.chatTemplates).length > 0
  const body = chat
    ? { model, messages: [{ role: "user", content: "Hello" }] }
    : { model, prompt: "Hello", max_tokens: 32 }
  const route = `${config.rootPath}/v1/${chat ? "chat/completions" : "completions"}`
  // A wildcard address is where we listen, not where one can connect on every system.
  const base =
    config.uds === null ? url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]") : "http://localhost"
  const words = ["curl", `${base}${route}`, "-H 'Content-Type: application/json'"]
  if (config.uds !== null) words.splice(1, 0, `--unix-socket ${shellQuoted(config.uds)}`)
  if (config.apiKeys.length > 0) words.push('-H "Authorization: Bearer $VLLM_API_KEY"')
  words.push(`-d ${shellQuoted(JSON.stringify(body))}`)
  return words.join(" ")
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
