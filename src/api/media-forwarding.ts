/**
 * Media of a request → `content_parts` of a token-in service (RENDER 5). Nothing is fetched, decoded or copied here: whoever
 * has the model's processors does that. What they could not take is refused, with its place.
 */
import type { Json } from "../ir/conversation"
import type { PromptMedia } from "../ir/prompt-media"
import { err, ok, type Result } from "../result"
import type { MediaUse } from "./content-part"
import { type InvalidRequest, invalid } from "./errors"
import { isRecord } from "./schema"

/** UTF-16 units of an address that is to be fetched. */
const addressUnitsMax = 16_384
/** UTF-16 units of what a client calls an item. */
const uuidUnitsMax = 1_024
/** How the bytes of an item begin when they come in its URL; what follows is left unread. */
const dataUrlStart = /^data:(?:[a-z]+\/[\w.+-]+)?(?:;[\w.=+-]+)*;base64,/i
const dataUrlStartUnits = 256
const audioFormat = /^[\w.+-]{1,32}$/

/** The media in order, ready to be sent; null = there are none. */
export function forwardedMedia(uses: readonly MediaUse[], param: string): Result<PromptMedia | null, InvalidRequest> {
  const contentParts: { readonly [name: string]: Json }[] = []
  for (const use of uses) {
    const part = contentPart(use)
    if (!part.ok) return err(invalid(param, `${use.place}: ${part.error}`))
    contentParts.push(part.value)
  }
  return ok(contentParts.length === 0 ? null : { contentParts, features: null })
}

function contentPart({ kind, type, part }: MediaUse): Result<{ readonly [name: string]: Json }, string> {
  if (part.type === "text" || kind === "file" || type.endsWith("_embeds") || type === "image_pil") {
    return err(`${type} parts cannot be forwarded; send the item as an image, audio or video URL.`)
  }
  const { source, uuid } = part
  const url = mediaUrl(source)
  if (url === null) {
    return err(
      `a ${type} part needs its URL or its data: items that an engine may know by their uuid cannot be told from here.`,
    )
  }
  const fault = urlFault(url)
  if (fault !== null) return err(fault)
  if (uuid !== undefined && uuid.length > uuidUnitsMax) return err(`uuid may have ${uuidUnitsMax} characters.`)
  return ok({ type: `${kind}_url`, url, ...(uuid !== undefined && { uuid }) })
}

/** Where the item is: a URL as the client wrote it, or one that holds the bytes. */
function mediaUrl(source: Json): string | null {
  if (!isRecord(source)) return null
  const { url, data, format } = source
  if (typeof url === "string") return url
  if (typeof data !== "string" || typeof format !== "string") return null
  return audioFormat.test(format) ? `data:audio/${format};base64,${data}` : null
}

function urlFault(url: string): string | null {
  const start = url.slice(0, dataUrlStartUnits)
  if (/^data:/i.test(start)) return dataUrlStart.test(start) ? null : "a data URL must hold base64: data:TYPE;base64,…"
  if (!/^https?:\/\//i.test(start)) return "a URL must be http, https or data."
  if (url.length > addressUnitsMax) return `a URL may have ${addressUnitsMax} characters.`
  return URL.canParse(url) ? null : "the URL cannot be read."
}
