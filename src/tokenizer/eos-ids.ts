import type { Tokenizer } from "./tokenizer"

/**
 * The ids that end a reply: that of the tokenizer's own token first (`eosToken`, spelled out; null when it names none),
 * then what the model's files say, without repeats. Source: PARSERS 7.
 */
export function eosIds(
  eosToken: string | null,
  tokenizer: Pick<Tokenizer, "tokenToId">,
  others: readonly number[],
): readonly number[] {
  const own = eosToken === null ? -1 : tokenizer.tokenToId(eosToken)
  return own < 0 ? others : [own, ...others.filter((id) => id !== own)]
}
