/**
 * Where our answers differ from the recorded ones on purpose. Each entry says why and turns the recorded answer into
 * the expected one; what users can notice stands in docs/differences.md too. The recordings are vLLM 0.32's; the rules
 * followed here are 0.33's and those of its Rust front end where the two front ends differ.
 */
import type { Loose, Transcript } from "./support/transcripts"

/** A recorded answer, normalized. `stream` is a folded stream, or the joined events of Responses. */
export interface Answer {
  status: number
  body?: Loose
  stream?: Loose
}

/** One deliberate difference. */
export interface Difference {
  readonly reason: string
  /** Changes the recorded answer to what we answer; leaves it alone where the difference does not show. */
  readonly apply: (answer: Answer, transcript: Transcript) => void
}

/** Recordings that concern nothing that is built, with the reason. `*` stands for any text. */
export const notCompared: { readonly [pattern: string]: string } = {
  "derender_*": "the render server's routes are not built",
  "render_*": "the render server's routes are not built; their token ids are compared below",
  "generate*": "the token-in, token-out route is not built",
  "messages_*": "Anthropic's API is not built",
  get_docs: "a page of our own",
  get_openapi: "generated from our own schemas",
}

/** Reasoning tokens by script: only those count whose text comes out as reasoning. */
const reasoningTokens: { readonly [script: string]: number } = {
  reason: 11,
  reason_tool: 6,
  reason_text_tool: 2,
}

/** Params of faults that the recorded server reports without one. */
const namedParams: { readonly [name: string]: string } = {
  chat_image: "messages",
  err_bad_words: "bad_words",
  err_comp_empty_list: "prompt",
  err_comp_token_range: "prompt",
  err_min_tokens_gt: "min_tokens",
  err_n_zero: "n",
}

/** Requests that the recorded server takes and we refuse: type and param of our error. */
const refused: { readonly [name: string]: readonly [type: string, param: string, reason: string] } = {
  err_max_tokens_string: ["Bad Request", "max_tokens", 'exact types: "5" is not 5'],
  err_stream_string: ["Bad Request", "stream", 'exact types: "yes" is not true'],
  comp_use_beam: ["BadRequestError", "use_beam_search", "no beam search"],
  resp_logprobs: ["BadRequestError", "top_logprobs", "no output log probabilities on Responses, as in Rust"],
}

const opensThinking = /^reason(?!_nostart)/

/** Every difference, in the order in which they are applied. */
export const differences: readonly Difference[] = [
  {
    reason: "a value of another JSON type is refused, not converted; what has no engine here is refused",
    apply: (answer, { name }) => {
      const error = refused[name]
      if (error === undefined) return
      delete answer.stream
      answer.status = 400
      answer.body = { error: { type: error[0], param: error[1], code: 400 } }
    },
  },
  {
    reason: "`param` of a wrong or missing field is the top-level field; null where the body as a whole is wrong",
    apply: ({ body }) => {
      const param: unknown = body?.error?.param
      if (typeof param !== "string" || !/^body\b/.test(param)) return
      body.error.param = param.split(".")[1] ?? null
    },
  },
  {
    reason: "of several faulty fields `param` names the first in the order of our schema",
    apply: ({ body }, { name }) => {
      if (name === "err_multi_errors") body.error.param = "temperature"
    },
  },
  {
    reason: "a rule that a field breaks is reported with the field's name",
    apply: ({ body }, { name }) => {
      if (name in namedParams) body.error.param = namedParams[name]
    },
  },
  {
    reason: "`messages: null` is a wrong type, not an accident while iterating",
    apply: ({ body }, { name }) => {
      if (name === "err_no_messages") body.error = { type: "Bad Request", param: "messages", code: 400 }
    },
  },
  {
    reason: "Responses errors have the types of the other endpoints, as in Rust",
    apply: ({ body }) => {
      if (body?.error?.type !== "invalid_request_error") return
      body.error.type = body.error.code === 404 ? "NotFoundError" : "BadRequestError"
    },
  },
  {
    reason: "unknown routes and methods have the usual error envelope",
    apply: (answer) => {
      if (typeof answer.body?.detail !== "string") return
      answer.body = { error: { type: answer.body.detail, param: null, code: answer.status } }
    },
  },
  {
    reason: "the version is our own",
    apply: ({ body }, { name }) => {
      if (name === "get_version") body.version = "0.1.0"
    },
  },
  {
    reason: "0.33 shows `weight_versions` on every choice of a whole reply",
    apply: ({ body }) => {
      for (const choice of body?.choices ?? []) choice.weight_versions = null
    },
  },
  {
    reason: "`created_cache_tokens` is a number on completions too",
    apply: ({ body }) => {
      const details = body?.usage?.prompt_tokens_details
      if (body?.object === "text_completion" && details) details.created_cache_tokens = 0
    },
  },
  {
    reason: "prompt ids are given to those who ask for them (`return_token_ids`), with `echo` as without",
    apply: ({ stream }, { name }) => {
      if (name === "comp_echo_stream") delete stream.choices[0].prompt_token_ids
    },
  },
  {
    reason: "the opening delta of a call has empty `arguments`, as OpenAI's",
    apply: ({ stream }) => {
      if (stream?.shape === undefined) return
      const opening: string[] = stream.shape.callOpening
      stream.shape.callOpening = opening.map((keys) => keys.replace(/ name$/, " arguments name"))
    },
  },
  {
    reason: "a call that is no JSON stays the call that was begun, in whole replies as in streams",
    apply: ({ body, stream }, { script }) => {
      if (script !== "tool_bad") return
      // An end marker inside a JSON string does not end the call, and this string never ends.
      const cut = '{"city": "Par\n</tool_call>'
      if (stream !== undefined) {
        stream.choices[0].message.tool_calls[0].arguments = cut
        stream.choices[0].finish_reason = "stop" // a call that never ended
      }
      if (body === undefined) return
      const [choice] = body.choices
      choice.message.content = null
      const call = { name: "get_weather", arguments: cut }
      choice.message.tool_calls = [{ id: "call 1", type: "function", function: call }]
    },
  },
  {
    reason: "a forced choice is read in the model's own call syntax; a JSON list is text, and the finish is `stop`",
    apply: ({ body }, { name }) => {
      if (/^chat_tools_required(_two)?$/.test(name)) body.choices[0].finish_reason = "stop"
    },
  },
  {
    reason: "whether a reply begins as reasoning is read from the prompt; framing white space is no text",
    apply: ({ body, stream }, transcript) => {
      if (!thinks(transcript)) return
      const script = transcript.script ?? "plain"
      for (const choice of (body ?? stream)?.choices ?? []) reframe(choice.message, script)
      const usage = (body ?? stream)?.usage
      if (usage) usage.completion_tokens_details.reasoning_tokens = reasoningTokens[script] ?? 0
    },
  },
  {
    reason: "the same on Responses, where a reply without `<think>` is thus a message",
    apply: (answer, transcript) => {
      if (!transcript.request.path.startsWith("/v1/responses") || answer.status !== 200) return
      const script = transcript.script ?? "plain"
      const seen = (text: string): string => (opensThinking.test(script) ? text.replace(/^\n+|\n+$/g, "") : text)
      const change = opensThinking.test(script) ? unframed(seen) : asMessages
      if (answer.stream !== undefined) answer.stream = change(answer.stream)
      if (answer.body !== undefined) answer.body.output = change(answer.body.output)
      for (const response of responsesOf(answer)) {
        if (response.usage === null) continue
        response.usage.output_tokens_details.reasoning_tokens = reasoningTokens[script] ?? 0
      }
    },
  },
  {
    reason: "`error` and the echoed cache and safety fields are always there, null where unset",
    apply: (answer) => {
      for (const response of responsesOf(answer)) {
        response.error = null
        response.safety_identifier = null
        response.prompt_cache_key = null
        response.prompt_cache_options = null
        response.prompt_cache_retention = null
      }
    },
  },
  {
    reason: "`reasoning` and `text` are echoed as they came; tools with name, description, parameters and strict",
    apply: (answer) => {
      for (const response of responsesOf(answer)) {
        if (response.reasoning !== null) response.reasoning = { effort: response.reasoning.effort }
        if (response.text !== null) {
          const { type, name, schema } = response.text.format
          response.text = { format: { type, name, schema } }
        }
        response.tools = response.tools.map(({ type, name, description, parameters, strict }: Loose) => {
          return { type, name, description, parameters, strict }
        })
      }
    },
  },
  {
    reason: "usage details are numbers alone: the Agents SDK for JavaScript refuses lists among them",
    apply: (answer) => {
      for (const { usage } of responsesOf(answer)) {
        for (const details of [usage?.input_tokens_details, usage?.output_tokens_details]) {
          for (const key of Object.keys(details ?? {})) if (key.endsWith("_per_turn")) delete details[key]
        }
      }
    },
  },
  {
    reason: "items carry no null keys of one SDK's newest types",
    apply: (answer) => {
      for (const item of itemsOf(answer)) {
        for (const key of ["phase", "async", "caller", "namespace"]) delete item[key]
      }
    },
  },
  {
    reason: "a finished item is `completed`, in whole replies as in streams; an open one has an empty list",
    apply: (answer) => {
      for (const item of itemsOf(answer)) {
        item.status ??= "completed"
        if (item.content === null) item.content = []
      }
    },
  },
  {
    reason: "a reply cut by the limit ends in `response.incomplete`, and its last item is incomplete",
    apply: ({ stream }, { name }) => {
      if (name !== "resp_length_stream") return
      const terminal = stream.at(-1)
      terminal.type = "response.incomplete"
      terminal.response.output.at(-1).status = "incomplete"
      stream.at(-2).item.status = "incomplete"
    },
  },
]

/** Whether the recorded server looked for reasoning in this reply. */
function thinks({ request, response }: Transcript): boolean {
  if (request.path !== "/v1/chat/completions" || response.status !== 200) return false
  return request.body?.chat_template_kwargs?.enable_thinking !== false
}

function reframe(message: Loose, script: string): void {
  const { reasoning, content } = message
  if (!opensThinking.test(script)) {
    const marker = script === "reason_nostart" ? "</think>" : ""
    message.content = (reasoning ?? "") + marker + (content ?? "")
    message.reasoning = null
    return
  }
  message.reasoning = reasoning.replace(/^\n/, "").replace(/\n$/, "") || null
  // A line end before a call frames the call.
  message.content = content?.replace(/^\n\n/, "").replace(/\n$/, message.tool_calls?.length > 0 ? "" : "\n") || null
}

/** All response objects of an answer; none where it is another endpoint's. */
function responsesOf({ body, stream }: Answer): Loose[] {
  if (body?.object === "response") return [body]
  return Array.isArray(stream) ? stream.flatMap(({ response }) => (response === undefined ? [] : [response])) : []
}

function itemsOf(answer: Answer): Loose[] {
  const items = responsesOf(answer).flatMap(({ output }) => output)
  const events = Array.isArray(answer.stream) ? answer.stream : []
  return [...items, ...events.flatMap(({ item }) => (item === undefined ? [] : [item]))]
}

/** Applies `seen` to every text of items and events. */
function unframed(seen: (text: string) => string): (value: Loose) => Loose {
  const walk = (value: Loose): Loose => {
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== "object" || value === null) return value
    const entries = Object.entries<Loose>(value).map(([key, inner]) => [
      key,
      (key === "text" || key === "delta") && typeof inner === "string" ? seen(inner) : walk(inner),
    ])
    return Object.fromEntries(entries)
  }
  return walk
}

/** Reasoning items and events as those of a message with the same text (RESPONSES 9 and 10). */
function asMessages(value: Loose): Loose {
  if (Array.isArray(value)) return value.map(asMessages)
  if (typeof value !== "object" || value === null) return value
  if (value.type === "reasoning_text") return { ...value, type: "output_text", annotations: [], logprobs: null }
  if (value.type === "reasoning") {
    const content = value.content === null ? [] : asMessages(value.content)
    return { type: "message", id: asMessageId(value.id), role: "assistant", status: value.status, content }
  }
  const changed: Loose = {}
  for (const [key, inner] of Object.entries<Loose>(value)) {
    changed[key] = key === "item_id" ? asMessageId(inner) : asMessages(inner)
  }
  const spoken = /^response\.reasoning_text\.(delta|done)$/.exec(value.type ?? "")
  if (spoken !== null) {
    changed.type = `response.output_text.${spoken[1]}`
    changed.logprobs = []
  }
  // A part that only opens has a list.
  if (value.type === "response.content_part.added") changed.part.logprobs = []
  return changed
}

function asMessageId(id: string): string {
  return id.replace(/^rs /, "msg ")
}
