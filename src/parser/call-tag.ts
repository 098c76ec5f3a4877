import type { Json } from "../ir/conversation"
import type { CallConstraint } from "../ir/output-grammar"

/** How a call is spelled: `begin` name `afterName` arguments `end`. */
export interface CallForm {
  readonly begin: string
  readonly afterName: string
  readonly end: string
}

/**
 * The format of a structural tag (xgrammar's language, which vLLM's engines take) for calls in a family's own syntax:
 * what the model was trained to write stays what it writes, and the arguments follow their schema. `start` is the text
 * with which all forms begin. Source: vLLM 0.32.0, structural tags of its tool parsers; keys with their default are left
 * out.
 */
export function callTag(start: string, forms: readonly CallForm[], constraint: CallConstraint): Json {
  const { functions, allowsText, single } = constraint
  const tags = functions.flatMap(({ name, parameters }) =>
    forms.map((form) => ({
      type: "tag",
      begin: form.begin + JSON.stringify(name).slice(1, -1) + form.afterName,
      content: { type: "json_schema", json_schema: parameters },
      end: form.end,
    })),
  )
  return allowsText
    ? { type: "triggered_tags", triggers: [start], tags, at_least_one: false, stop_after_first: single }
    : { type: "tags_with_separator", tags, separator: "", at_least_one: true, stop_after_first: single }
}
