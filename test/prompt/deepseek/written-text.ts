/** What we make of a body: the text alone, before any vocabulary. */
import type { DeepseekVersion } from "../../../src/prompt/deepseek/turn"
import { v4Text } from "../../../src/prompt/deepseek/v4"
import { v32Text } from "../../../src/prompt/deepseek/v32"
import { conversationOfBody } from "./bodies"
import type { DeepseekAnswer } from "./oracle"

/** A prompt's text, or the refusal's words. */
export function writtenText(version: DeepseekVersion, body: string): DeepseekAnswer {
  const conversation = conversationOfBody(body)
  const written = version === "v32" ? v32Text(conversation) : v4Text(conversation, version)
  return written.ok ? { text: written.value } : { error: written.error.message }
}
