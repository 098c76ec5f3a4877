import type { HistoryCall, Json } from "../../ir/conversation"
import { templateValue, templateVariables } from "../jinja/json-value"
import { isText, plainText, type Value } from "../jinja/value"
import { isObject } from "../json-object"
import { pythonJsonText } from "../python-json"
import { tokens } from "./tokens"

/** Names of the tags around calls: each version has its own. */
export interface DsmlTags {
  readonly calls: string
  readonly call: string
  readonly parameter: string
}

/** V3.2: `<｜DSML｜function_calls>`. */
export const v32Tags: DsmlTags = { calls: "function_calls", call: "invoke", parameter: "parameter" }
/** V4: `<｜DSML｜tool_calls>`. */
export const v4Tags: DsmlTags = { calls: "tool_calls", call: "invoke", parameter: "parameter" }
/** V4.1: `<｜DSML｜ calls>`. */
export const v41Tags: DsmlTags = { calls: " calls", call: " invoke", parameter: " parameter" }

/** An opening tag; `rest` are its attributes. */
export function openTag(name: string, rest = ""): string {
  return `<${tokens.dsml}${name}${rest}>`
}

/** Its end. */
export function closeTag(name: string): string {
  return `</${tokens.dsml}${name}>`
}

/**
 * Calls of an assistant's turn, "" when there are none:
 * `<｜DSML｜invoke name="f">⏎<｜DSML｜parameter name="city" string="true">Bern</｜DSML｜parameter>⏎</｜DSML｜invoke>` for each,
 * with the tag of all of them around. Texts stand as they are, all else as JSON.
 */
export function callsText(calls: readonly HistoryCall[], tags: DsmlTags): string {
  if (calls.length === 0) return ""
  const texts = calls.map(({ name, arguments: given }) => {
    return `${openTag(tags.call, ` name="${name}"`)}\n${argumentsText(given, tags)}\n${closeTag(tags.call)}`
  })
  return `\n\n${openTag(tags.calls)}\n${texts.join("\n")}\n${closeTag(tags.calls)}`
}

function argumentsText(given: Json, tags: DsmlTags): string {
  if (!isObject(given)) return ""
  const parameters: string[] = []
  templateVariables(given).forEach((value, name) => {
    const isString = isText(value)
    const opening = openTag(tags.parameter, ` name="${String(name)}" string="${isString}"`)
    parameters.push(`${opening}${isString ? plainText(value) : written(value)}${closeTag(tags.parameter)}`)
  })
  return parameters.join("\n")
}

/** A value that is more than is written as JSON. Never leaves the folder: the renderer makes a refusal of it. */
export class JsonTooLarge extends Error {}

/** A value of a request as Python's `json.dumps` writes it, characters outside ASCII as they are. Throws `JsonTooLarge`. */
export function jsonText(value: Json): string {
  return written(templateValue(value))
}

function written(value: Value): string {
  const text = pythonJsonText(value)
  if (!text.ok) throw new JsonTooLarge(text.error.message)
  return text.value
}
