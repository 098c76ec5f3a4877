import type { ModelFacts } from "./endpoint"

/** GET /v1/models: one card for each served name (SERVER 3). */
export function listModels(facts: ModelFacts, newId: () => string, unixTime: () => number): object {
  return {
    object: "list",
    data: facts.names.map((id) => ({
      id,
      object: "model",
      created: unixTime(),
      owned_by: "sluice",
      root: facts.root,
      parent: null,
      max_model_len: facts.contextTokensMax,
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

/** Whether a request may name this model; null and "" mean the served one. */
export function isServed(model: string | null | undefined, facts: ModelFacts, anyName: boolean): boolean {
  return anyName || model === null || model === undefined || model === "" || facts.names.includes(model)
}
