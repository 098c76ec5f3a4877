/** Features of media in a request to generate → what an engine is sent of each item (RENDER 7, ENGINE_PROTOCOL 13). */
import type { Json } from "../../ir/conversation"
import type { HeldTexts } from "../../ir/held-texts"
import { err, ok, type Result } from "../../result"
import { type MediaFields, readMediaItem } from "./media-item"
import type { MessagePackWriter } from "./message-pack-writer"

/** One item, in the order of the prompt. */
export interface MediaFeature {
  readonly modality: string
  /** Names the item's content: engines keep what they computed under it. */
  readonly hash: string
  /** Its placeholders in the prompt, in tokens. */
  readonly offset: number
  readonly length: number
  readonly fields: MediaFields
}

/** Items of one request, and UTF-16 units of a hash. */
const mediaItemsMax = 4_096
const hashUnitsMax = 1_024

/** What a request's features are read against. */
export interface FeatureRules {
  readonly promptTokens: number
  /** Those that the model takes, where requests are trusted with them. */
  readonly modalities: readonly string[]
  readonly held: HeldTexts | null
}

/** The items, or why the engine must not be sent them. `features` has passed the API's schema, which is not trusted here. */
export function readFeatures(
  features: { readonly [name: string]: Json },
  rules: FeatureRules,
): Result<readonly MediaFeature[], string> {
  const items: MediaFeature[] = []
  const places = recordOf(features.mm_placeholders)
  for (const [modality, spans] of Object.entries(places)) {
    if (!rules.modalities.includes(modality)) return err(`the model takes no ${modality.slice(0, 64)}`)
    for (const [index, span] of listOf(spans).entries()) {
      const item = readItem(features, modality, index, recordOf(span), rules)
      if (!item.ok) return err(`${modality} ${index}: ${item.error}`)
      items.push(item.value)
    }
  }
  if (items.length > mediaItemsMax) return err(`there may be ${mediaItemsMax} items`)
  items.sort((a, b) => a.offset - b.offset)
  const overlaps = items.some((item, i) => i > 0 && item.offset < items[i - 1]!.offset + items[i - 1]!.length)
  return overlaps ? err("placeholders overlap") : ok(items)
}

/** Writes the list of items as ADD has it. */
export function writeFeatures(writer: MessagePackWriter, items: readonly MediaFeature[]): void {
  writer.array(items.length)
  for (const { modality, hash, offset, length, fields } of items) {
    writer.map(5)
    writer.string("data")
    writer.map(fields.size)
    for (const [name, bytes] of fields) {
      writer.string(name)
      writer.raw(bytes)
    }
    writer.string("modality")
    writer.string(modality)
    writer.string("identifier")
    writer.string(hash)
    writer.string("mm_position")
    writer.map(3)
    writer.string("offset")
    writer.int(offset)
    writer.string("length")
    writer.int(length)
    writer.string("is_embed")
    writer.nil()
    writer.string("mm_hash")
    writer.string(hash)
  }
}

function readItem(
  features: { readonly [name: string]: Json },
  modality: string,
  index: number,
  { offset, length }: { readonly [name: string]: Json },
  { promptTokens, held }: FeatureRules,
): Result<MediaFeature, string> {
  if (!isCount(offset, 0) || !isCount(length, 1) || offset + length > promptTokens) {
    return err("its placeholder lies outside of the prompt")
  }
  const of = (name: string): Json => listOf(recordOf(features[name])[modality] ?? null)[index] ?? null
  const hash = of("mm_hashes")
  if (typeof hash !== "string" || hash === "" || hash.length > hashUnitsMax) return err("it has no hash")
  const own = readFields(of("kwargs_data"), held)
  if (!own.ok) return own
  const known = readFields(of("mm_metadata"), held)
  if (!known.ok) return known
  // What was kept beside the tensors is what counts, as in vLLM.
  const fields = new Map([...own.value, ...known.value])
  if (fields.size === 0) {
    return err("it has no kwargs_data: what the engine may have of it in its cache cannot be told from here")
  }
  return ok({ modality, hash, offset, length, fields })
}

const noFields: MediaFields = new Map()

function readFields(text: Json, held: HeldTexts | null): Result<MediaFields, string> {
  if (text === null) return ok(noFields)
  if (typeof text !== "string") return err("its data are no text")
  const bytes = decodeBase64(held === null ? text : held.restore(text))
  return bytes === null ? err("its data are not base64") : readMediaItem(bytes)
}

function decodeBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, "base64")
  // The decoder passes over what it does not know.
  const digits = text.endsWith("==") ? text.length - 2 : text.endsWith("=") ? text.length - 1 : text.length
  return text.length % 4 === 0 && Math.floor((digits * 3) / 4) === bytes.length ? bytes : null
}

function isCount(value: Json | undefined, least: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least
}

function recordOf(value: Json | undefined): { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {}
}

function listOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : []
}
