import type { Json } from "./conversation"

/**
 * What belongs to a prompt beside its ids, in the words of a token-in service (RENDER 5 and 7). A prompt has one of the
 * two at most.
 */
export interface PromptMedia {
  /**
   * Raw media, `{type, url, uuid?}` each, in the order of the prompt, which has one placeholder for each: whoever
   * generates fetches, processes and expands them. null = none.
   */
  readonly contentParts: readonly { readonly [name: string]: Json }[] | null
  /** What a renderer's processors made of media; the prompt's placeholders are expanded. null = none. */
  readonly features: { readonly [name: string]: Json } | null
}
