/** Tokens beside the ranks, spelled out → id. Both kinds are found in text; only the special ones can be skipped. */
export interface ExtraTokens {
  readonly special: { readonly [token: string]: number }
  readonly added: { readonly [token: string]: number }
}

/** The special tokens of o200k_harmony, beside the ranks of o200k_base. Source: tiktoken's `openai_public.py`. */
export function harmonyTokens(): ExtraTokens {
  const special: { [token: string]: number } = {
    "<|startoftext|>": 199_998,
    "<|endoftext|>": 199_999,
    "<|endofprompt|>": 200_018,
    "<|return|>": 200_002,
    "<|constrain|>": 200_003,
    "<|channel|>": 200_005,
    "<|start|>": 200_006,
    "<|end|>": 200_007,
    "<|message|>": 200_008,
    "<|call|>": 200_012,
  }
  for (const id of [200_000, 200_001, 200_004, 200_009, 200_010, 200_011]) special[`<|reserved_${id}|>`] = id
  for (let id = 200_013; id < 201_088; id++) special[`<|reserved_${id}|>`] = id
  return { special, added: {} }
}
