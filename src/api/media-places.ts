/** Where bodies hold what is only passed on, so that long texts there need not be read (http/media-body). */
import type { BodyPath } from "../http/media-body"
import type { PromptRoom } from "./room"

/** Says of a place in a body whether its text is only passed on. */
export type PassesOn = (path: BodyPath) => boolean

/** `*` stands for any index; the parts of a path are joined by points. */
const partPlaces = [
  "image_url",
  "image_url.url",
  "audio_url",
  "audio_url.url",
  "video_url",
  "video_url.url",
  "input_audio.data",
]
const conversationPlaces: ReadonlySet<string> = new Set(
  ["messages.*.content.*", "input.*.content.*", "input.*.output.*"].flatMap((parts) =>
    partPlaces.map((place) => `${parts}.${place}`),
  ),
)

/** Of the bodies of chat and Responses. */
const passesOnInConversation: PassesOn = (path) => conversationPlaces.has(pattern(path))

/** Of the bodies that derender chat and Responses: the request's media were for the prompt. */
const passesOnInDerender: PassesOn = ([request, ...path]) =>
  (request === "chat_request" || request === "responses_request") && passesOnInConversation(path)

/** Of a GenerateRequest. */
const passesOnInGenerate: PassesOn = (path) => {
  const [field, name] = path
  if (field === "content_parts") return pattern(path) === "content_parts.*.url"
  return field === "features" && path.length === 4 && (name === "kwargs_data" || name === "mm_metadata")
}

/**
 * Where the bodies of chat and Responses hold media that can be generated from here; null = bodies are read whole, and
 * have no more room than others.
 */
export function servedMedia({ facts, mediaRefusal }: Pick<PromptRoom, "facts" | "mediaRefusal">): PassesOn | null {
  return mediaRefusal === null && facts.mediaKinds.length > 0 ? passesOnInConversation : null
}

/** The same where prompts are only rendered. */
export function renderedMedia({ facts }: Pick<PromptRoom, "facts">): PassesOn | null {
  return facts.mediaKinds.length > 0 ? passesOnInConversation : null
}

/** The same where those bodies stand in ones to derender. */
export function derenderedMedia({ facts }: Pick<PromptRoom, "facts">): PassesOn | null {
  return facts.mediaKinds.length > 0 ? passesOnInDerender : null
}

/** Of bodies to generate from. The simulator takes no media whatever the model does; of other engines each says itself. */
export function generatedMedia({ config }: Pick<PromptRoom, "config">): PassesOn | null {
  return config.engine === "simulator" ? null : passesOnInGenerate
}

function pattern(path: BodyPath): string {
  return path.map((step) => (typeof step === "number" ? "*" : step)).join(".")
}
