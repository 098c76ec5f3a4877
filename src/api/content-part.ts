/**
 * Content parts of messages, whichever API they came through: chat's and Responses' spellings become the same
 * `ContentPart`, media with their source. Whether media are taken is decided after that, in `mediaFault` alone; what
 * becomes of those that are is `media-forwarding`'s.
 */
import type { ContentPart, Json, MediaKind } from "../ir/conversation"
import { err, ok, type Result } from "../result"
import type { LowerContext } from "./endpoint"
import { type InvalidRequest, invalid } from "./errors"
import { isRecord } from "./schema"

/** One media part of a request: what it is, and where it stands. */
export interface MediaUse {
  readonly kind: MediaKind
  /** The client's own word, such as `input_image`. */
  readonly type: string
  /** Its place in the body, such as `input[2].content[0]`. */
  readonly place: string
  readonly role: string
  readonly part: ContentPart
}

/** A part that cannot be read. */
export type PartProblem =
  | { readonly kind: "unknown_type"; readonly type: string }
  | { readonly kind: "malformed"; readonly message: string }

/** Field that holds the text, by type of part. */
const textFields: { readonly [type: string]: string } = {
  text: "text",
  input_text: "text",
  output_text: "text",
  refusal: "refusal",
  thinking: "thinking",
}

const mediaKinds: { readonly [type: string]: MediaKind } = {
  image_url: "image",
  input_image: "image",
  image_embeds: "image",
  image_pil: "image",
  audio_url: "audio",
  input_audio: "audio",
  audio_embeds: "audio",
  video_url: "video",
  video_embeds: "video",
  input_file: "file",
}

function mediaKind(type: string): MediaKind | null {
  return Object.hasOwn(mediaKinds, type) ? mediaKinds[type]! : null
}

/**
 * One part. Media keep their source unread, in one shape for both APIs: `{url, detail?}` for images, `{data, format}` or
 * `{url}` for audio, `{url}` for video, the client's own fields for files and embeddings. Source: CHAT 2, RESPONSES 2.
 */
export function lowerPart(part: { readonly type: string }): Result<ContentPart, PartProblem> {
  const { type } = part
  const kind = mediaKind(type)
  if (kind !== null) {
    const source = mediaSource(type, part)
    if (!source.ok) return source
    const uuid: unknown = Reflect.get(part, "uuid")
    return ok({ type: kind, source: source.value, ...(typeof uuid === "string" && uuid !== "" && { uuid }) })
  }
  const field = Object.hasOwn(textFields, type) ? textFields[type]! : null
  if (field === null) return err({ kind: "unknown_type", type: type.slice(0, 64) })
  const text: unknown = Reflect.get(part, field)
  if (typeof text !== "string") return malformed(`a ${type} part needs a string '${field}'.`)
  if (type !== "thinking") return ok({ type: "text", text })
  return ok({ type: "text", text, thinking: Reflect.get(part, "closed") === false ? "open" : "closed" })
}

/** Why the media of a request are refused, naming the first that is; null when all are taken. */
export function mediaFault(
  uses: readonly MediaUse[],
  param: string,
  { model, mediaRefusal }: Pick<LowerContext, "model" | "mediaRefusal">,
): InvalidRequest | null {
  for (const { kind, type, place, role } of uses) {
    if (role === "assistant") return invalid(param, `${place}: an assistant's message cannot hold ${type} parts.`)
    if (!model.mediaKinds.includes(kind)) return invalid(param, `${place}: this model takes no ${type} parts.`)
    if (mediaRefusal !== null) return invalid(param, `${place}: ${type} parts cannot be taken here: ${mediaRefusal}.`)
  }
  return null
}

function malformed(message: string): Result<never, PartProblem> {
  return err({ kind: "malformed", message })
}

function mediaSource(type: string, part: object): Result<Json, PartProblem> {
  // Parts come from parsed JSON.
  const fields = part as { readonly [field: string]: Json }
  switch (type) {
    case "input_image": {
      if ((fields.file_id ?? null) !== null) return malformed("input_image by file_id needs stored files.")
      const { image_url: url, detail } = fields
      if (typeof url !== "string" || url === "") return malformed("input_image requires image_url.")
      const source: { [field: string]: Json } = { url }
      if (typeof detail === "string") source.detail = detail
      return ok(source)
    }
    case "input_audio": {
      const audio = fields.input_audio
      if (!isRecord(audio)) return malformed("input_audio needs an object 'input_audio' with data and format.")
      const { data, format } = audio
      if (typeof data !== "string" || data === "") return malformed("input_audio needs its data.")
      if (typeof format !== "string" || format === "") return malformed("input_audio needs its format.")
      return ok({ data, format })
    }
    case "input_file": {
      const { file_data, file_url, file_id, filename } = fields
      const source: { [field: string]: Json } = {}
      for (const [field, value] of Object.entries({ file_data, file_url, file_id, filename })) {
        if (typeof value === "string") source[field] = value
      }
      if (Object.keys(source).length === 0) return malformed("input_file needs file_data, file_url or file_id.")
      return ok(source)
    }
    default: {
      const given = fields[type] ?? null
      return ok(type.endsWith("_url") && typeof given === "string" ? { url: given } : given)
    }
  }
}
