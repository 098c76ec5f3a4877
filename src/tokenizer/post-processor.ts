/** The post-processors of tokenizer.json: ids put around a text, and what becomes of offsets. */
import { err, ok, type Result } from "../result"
import { type JsonObject, listOf, objectOf, stringOf, typeOf, type Unsupported } from "./json-shape"

/** A post-processor for one text. */
export interface PostProcessor {
  /** Ids before and behind the text, with `addSpecialTokens`. */
  readonly before: readonly number[]
  readonly after: readonly number[]
  /** White space at the ends of a token is left out of its offsets; null: it stays. */
  readonly trimOffsets: { readonly addPrefixSpace: boolean } | null
}

const nothing: PostProcessor = { before: [], after: [], trimOffsets: null }

/** Reads the `post_processor` of a tokenizer.json. */
export function readPostProcessor(value: unknown): Result<PostProcessor, Unsupported> {
  if (value === null || value === undefined) return ok(nothing)
  const shape = objectOf(value) ?? {}
  switch (typeOf(value)) {
    case "ByteLevel":
      return ok({ ...nothing, trimOffsets: trimming(shape) })
    case "TemplateProcessing":
      return template(shape)
    case "RobertaProcessing":
    case "BertProcessing": {
      const cls = idOfPair(shape.cls)
      const sep = idOfPair(shape.sep)
      if (cls === null || sep === null) return unsupported("a post-processor without its cls and sep")
      const trims = typeOf(value) === "RobertaProcessing"
      return ok({ before: [cls], after: [sep], trimOffsets: trims ? trimming(shape) : null })
    }
    case "Sequence": {
      let all = nothing
      for (const item of listOf(shape.processors) ?? []) {
        const next = readPostProcessor(item)
        if (!next.ok) return next
        all = {
          before: [...next.value.before, ...all.before],
          after: [...all.after, ...next.value.after],
          trimOffsets: next.value.trimOffsets ?? all.trimOffsets,
        }
      }
      return ok(all)
    }
    default:
      return unsupported(`the post-processor ${typeOf(value)}`)
  }
}

function unsupported(message: string): Result<never, Unsupported> {
  return err({ kind: "unsupported", message })
}

function trimming(shape: JsonObject): { addPrefixSpace: boolean } | null {
  return shape.trim_offsets === false ? null : { addPrefixSpace: shape.add_prefix_space !== false }
}

/** `["</s>", 2]`. */
function idOfPair(value: unknown): number | null {
  const id = listOf(value)?.[1]
  return typeof id === "number" ? id : null
}

function template(shape: JsonObject): Result<PostProcessor, Unsupported> {
  const special = objectOf(shape.special_tokens) ?? {}
  const before: number[] = []
  const after: number[] = []
  let seen = false
  for (const item of listOf(shape.single) ?? []) {
    const sequence = objectOf(objectOf(item)?.Sequence)
    if (sequence !== null) {
      if (seen || sequence.id !== "A") return unsupported("a template that does not hold its text once")
      seen = true
      continue
    }
    const name = stringOf(objectOf(objectOf(item)?.SpecialToken)?.id)
    const ids = name === null ? null : listOf(objectOf(special[name])?.ids)
    if (ids === null || !ids.every((id) => typeof id === "number")) return unsupported("a template token without ids")
    for (const id of ids) (seen ? after : before).push(id)
  }
  return seen ? ok({ before, after, trimOffsets: null }) : unsupported("a template without its text")
}
