import type { Json } from "../../ir/conversation"
import { type CallConstraint, inSequence, type ReasoningTag } from "../../ir/output-grammar"
import { err, ok, type Result } from "../../result"
import { type HarmonyIds, HarmonyParser } from "../harmony-parser"
import type { ParserFactory, ParserUnusable, Vocabulary } from "../parser"

/** The names that vLLM gives the two halves of this parser, which is one. */
export const harmonyReasoningName = "openai_gptoss"
export const harmonyToolName = "openai"

/**
 * gpt-oss: `<|channel|>analysis<|message|>It may rain.<|end|><|start|>assistant<|channel|>final<|message|>Take a
 * coat.<|return|>`. Reasoning and calls come together: all of a reply is in messages. Source: PARSERS 4.12.
 */
export function harmonyFactory(vocabulary: Vocabulary): Result<ParserFactory, ParserUnusable> {
  const found = {
    start: vocabulary.tokenToId("<|start|>"),
    channel: vocabulary.tokenToId("<|channel|>"),
    constrain: vocabulary.tokenToId("<|constrain|>"),
    message: vocabulary.tokenToId("<|message|>"),
    end: vocabulary.tokenToId("<|end|>"),
    call: vocabulary.tokenToId("<|call|>"),
    return: vocabulary.tokenToId("<|return|>"),
  }
  const missing = Object.entries(found).find(([, id]) => id < 0)?.[0]
  if (missing !== undefined) {
    const message = `the vocabulary has no token <|${missing}|>, which the parser needs`
    return err({ kind: "parser_unusable", message })
  }
  const ids: HarmonyIds = { ...found, analysis: vocabulary.tokenToId("analysis") }
  return ok({
    reasoning: harmonyReasoningName,
    tools: harmonyToolName,
    needsSpecialTokens: true,
    callTag: harmonyCallTag,
    reasoningTag: (promptTokenIds) => harmonyReasoningTag(ids, promptTokenIds),
    textTag: harmonyTextTag,
    create: (start) => new HarmonyParser(ids, start),
  })
}

/** Nothing for the three tokens that also end a reply: an engine does not take those inside of a grammar. */
const ends: Json = ["<|end|>", ""]
const anyText: Json = { type: "any_text" }
const nextMessage: Json = { type: "const_string", value: "<|start|>assistant" }

/** How content that is JSON is announced: trained and written both ways. */
const jsonTypes = [" json", " <|constrain|>json"]
const channels = ["<|channel|>commentary", "<|channel|>analysis", "<|channel|>final"]

function tag(begin: string, content: Json, end: Json): Json {
  return { type: "tag", begin, content, end }
}

/** A message of a channel, and the beginning of the one that must follow; or neither. */
function optionalMessage(channel: string): Json {
  const message = tag(`<|channel|>${channel}<|message|>`, anyText, "<|end|>")
  return { type: "optional", content: inSequence([message, nextMessage]) }
}

/**
 * Calls, the recipient before or behind the channel, with a word to the user first if the model likes; or else a final
 * answer. A call ends the reply, so that there is never more than one. Source: vLLM 0.33.0, structural tags of Harmony.
 */
function harmonyCallTag({ functions, allowsText }: CallConstraint): Json {
  const messages = functions.flatMap(({ name, parameters }) =>
    channels.flatMap((channel) =>
      [` to=functions.${name}${channel}`, `${channel} to=functions.${name}`].flatMap((begin) =>
        jsonTypes.map((type) =>
          tag(`${begin}${type}<|message|>`, { type: "json_schema", json_schema: parameters }, ends),
        ),
      ),
    ),
  )
  if (allowsText) for (const type of ["", ...jsonTypes]) messages.push(finalMessage(type, anyText))
  return inSequence([optionalMessage("commentary"), { type: "or", elements: messages }])
}

/** The final answer, held to a format. */
function harmonyTextTag(format: Json): Json {
  const isJson =
    typeof format === "object" && format !== null && !Array.isArray(format) && format.type === "json_schema"
  if (!isJson) return finalMessage("", format)
  return { type: "or", elements: jsonTypes.map((type) => finalMessage(type, format)) }
}

function finalMessage(type: string, content: Json): Json {
  return tag(`<|channel|>final${type}<|message|>`, content, ends)
}

/** Reasoning may come first; in a prompt that ends inside of a message it is that message, or lies behind. */
function harmonyReasoningTag(ids: HarmonyIds, prompt: Uint32Array): ReasoningTag {
  const messageAt = prompt.lastIndexOf(ids.message)
  const others = [ids.start, ids.end, ids.call, ids.return]
  const isOpen = messageAt >= 0 && others.every((id) => prompt.lastIndexOf(id) < messageAt)
  if (!isOpen) return { ended: false, formats: [optionalMessage("analysis")] }
  const isReasoning = prompt[prompt.lastIndexOf(ids.channel, messageAt) + 1] === ids.analysis
  return isReasoning
    ? { ended: false, formats: [tag("", anyText, "<|end|>"), nextMessage] }
    : { ended: true, formats: [] }
}
