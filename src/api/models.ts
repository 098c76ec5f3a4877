import type { LoraAdapter } from "../ir/generate-request"
import type { ModelFacts } from "./endpoint"

/** GET /v1/models: one card for each served name, then one for each adapter (SERVER 3). */
export function listModels(facts: ModelFacts, newId: () => string, unixTime: () => number): object {
  return {
    object: "list",
    data: cards(facts).map((card) => ({
      id: card.id,
      object: "model",
      created: unixTime(),
      owned_by: "sluice",
      root: card.root,
      parent: card.parent,
      max_model_len: card.contextTokensMax,
      permission: [
        {
          id: `modelperm-${newId()}`,
          object: "model_permission",
          created: unixTime(),
          allow_create_engine: false,
          allow_sampling: true,
          allow_logprobs: true,
          allow_search_indices: false,
          allow_view: true,
          allow_fine_tuning: false,
          organization: "*",
          group: null,
          is_blocking: false,
        },
      ],
    })),
  }
}

interface Card {
  readonly id: string
  readonly root: string
  readonly parent: string | null
  readonly contextTokensMax: number | null
}

function cards({ names, root, contextTokensMax, adapters }: ModelFacts): Card[] {
  return [
    ...names.map((id) => ({ id, root, parent: null, contextTokensMax })),
    ...adapters.map(({ name, path, baseModelName }) => ({
      id: name,
      root: path,
      parent: baseModelName ?? names[0]!,
      contextTokensMax: null,
    })),
  ]
}

/** The adapter that a body names as its model; null = the served model. */
export function namedAdapter(body: unknown, facts: ModelFacts): LoraAdapter | null {
  const model: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "model") : null
  // The served model's own names come first.
  if (typeof model !== "string" || facts.names.includes(model)) return null
  return facts.adapters.find((adapter) => adapter.name === model) ?? null
}

/** Whether a request may name this model; null and "" mean the served one. */
export function isServed(model: string | null | undefined, facts: ModelFacts, anyName: boolean): boolean {
  if (anyName || model === null || model === undefined || model === "") return true
  return facts.names.includes(model) || facts.adapters.some((adapter) => adapter.name === model)
}
