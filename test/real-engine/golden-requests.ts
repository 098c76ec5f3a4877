/**
 * Requests whose answers by vLLM's own server, with the same engine and model, stand in golden.json (record.ts). Greedy
 * unless a seed says otherwise, and short: an answer must not hang on the last bit of a CPU's arithmetic.
 */

/** A request that is sent as it stands. */
export interface GoldenRequest {
  readonly path: "/v1/chat/completions" | "/v1/completions" | "/v1/responses"
  readonly body: { readonly [field: string]: unknown }
}

/** The name that requests call the model by. */
export const servedName = "smol"

/** Small models are sure of patterns, and of little else. */
const counting = turns("1 2 3", "4 5 6", "7 8 9", "10 11 12", "13 14 15")
const alphabet = turns("Write the letters of the alphabet, separated by spaces.")
const scripts = turns(...Array<string>(5).fill("🌍 é 世界 🌍 é 世界"))
const weather = '{"city": "Oslo", "unit": "celsius"}'
const asked = turns(...Array<string>(5).fill(weather))
const numbers = "1, 2, 3, 4, 5,"
const letters = "a b c d e f g"
/** " h", " i" and " q": what comes next behind the letters, and what comes later. */
const [h, i, q] = [294, 2056, 7329]
const city = {
  type: "object",
  properties: { city: { type: "string", maxLength: 20 }, unit: { type: "string", enum: ["celsius", "fahrenheit"] } },
  required: ["city", "unit"],
  additionalProperties: false,
}

/** User and assistant take turns; the user begins. */
function turns(...contents: readonly string[]): { readonly role: string; readonly content: string }[] {
  return contents.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content }))
}

function chat(body: object, messages: unknown = counting): GoldenRequest {
  return {
    path: "/v1/chat/completions",
    body: { model: servedName, messages, temperature: 0, max_completion_tokens: 24, ...body },
  }
}

function completion(prompt: unknown, body: object = {}): GoldenRequest {
  return { path: "/v1/completions", body: { model: servedName, prompt, temperature: 0, max_tokens: 12, ...body } }
}

function response(input: unknown, body: object = {}): GoldenRequest {
  return {
    path: "/v1/responses",
    body: { model: servedName, input, temperature: 0, max_output_tokens: 24, store: false, ...body },
  }
}

/** All of them by name. */
export const goldenRequests: { readonly [name: string]: GoldenRequest } = {
  chat: chat({}, alphabet),
  "chat: several turns": chat({}),
  "chat: a system message": chat({}, [{ role: "system", content: "You continue sequences." }, ...counting]),
  "chat: other scripts": chat({}, scripts),
  "chat: cut at its limit": chat({ max_completion_tokens: 3 }),
  "chat: logprobs": chat({ logprobs: true, top_logprobs: 1 }),
  "chat: prompt logprobs": chat({ prompt_logprobs: 0, max_completion_tokens: 2 }),
  "chat: a stop string": chat({ stop: ["nothing", "7 1"] }),
  "chat: a stop string that is kept": chat({ stop: " 17", include_stop_str_in_output: true }),
  "chat: penalties": chat({ frequency_penalty: 0.2, presence_penalty: 0.2, repetition_penalty: 1.05 }),
  "chat: JSON by a schema": chat(
    {
      max_completion_tokens: 40,
      response_format: { type: "json_schema", json_schema: { name: "weather", strict: true, schema: city } },
    },
    asked,
  ),
  "chat: any JSON object": chat({ response_format: { type: "json_object" }, max_completion_tokens: 40 }, asked),
  "chat: a regex": chat({ structured_outputs: { regex: "(16|61) 1[0-9]( 1[0-9])? red" } }),
  "chat: a choice": chat({ structured_outputs: { choice: ["1", 'the "city" of\nParis', "16 17 18"] } }),
  "chat: a grammar": chat({ structured_outputs: { grammar: 'root ::= "16" (" " n)* "."\nn ::= "17" | "18" | "red"' } }),
  completion: completion(numbers),
  "completion: two prompts": completion([numbers, letters]),
  "completion: token ids": completion([33, 28, 216, 34, 28, 216, 35, 28, 216, 36, 28], { return_token_ids: true }),
  "completion: echo and logprobs": completion(letters, { echo: true, logprobs: 0, max_tokens: 3 }),
  "completion: prompt logprobs": completion(numbers, { prompt_logprobs: 0, max_tokens: 2 }),
  "completion: logprobs of given tokens": completion(letters, {
    logprobs: 1,
    logprob_token_ids: [i, q],
    max_tokens: 2,
  }),
  "completion: a stop token id": completion(letters, { stop_token_ids: [i] }),
  "completion: bad words": completion(letters, { bad_words: ["h"], allowed_token_ids: [h, i, q], max_tokens: 1 }),
  "completion: bias": completion(letters, {
    logit_bias: { [h]: -100 },
    allowed_token_ids: [h, i, q],
    max_tokens: 1,
  }),
  response: response(counting),
  "response: text": response(alphabet[0]!.content),
  "response: instructions": response(counting, { instructions: "You continue sequences." }),
  "response: JSON by a schema": response(asked, {
    max_output_tokens: 40,
    text: { format: { type: "json_schema", name: "weather", strict: true, schema: city } },
  }),
  "response: cut at its limit": response(counting, { max_output_tokens: 3 }),
}
