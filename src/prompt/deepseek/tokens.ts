/** Control tokens of DeepSeek's formats. Source: the encoders in vLLM 0.33.0, which are DeepSeek's own. */
export const tokens = {
  bos: "<｜begin▁of▁sentence｜>",
  eos: "<｜end▁of▁sentence｜>",
  user: "<｜User｜>",
  assistant: "<｜Assistant｜>",
  /** V4.1 only. */
  system: "<｜System｜>",
  /** V4 only. */
  latestReminder: "<｜latest_reminder｜>",
  thinkStart: "<think>",
  thinkEnd: "</think>",
  /** Begins every tag of a call. */
  dsml: "｜DSML｜",
  /** Stands for an image: V4 and V4.1. */
  image: "<｜deepseek_image｜>",
} as const

/** Tokens without which a vocabulary cannot write any of the formats. */
export const requiredTokens = [tokens.bos, tokens.eos, tokens.user, tokens.assistant] as const

/** Quick instructions of V4 and V4.1: what a turn asks of the model besides a reply, and the token that asks it. */
export const taskTokens: ReadonlyMap<string, string> = new Map([
  ["action", "<｜action｜>"],
  ["query", "<｜query｜>"],
  ["authority", "<｜authority｜>"],
  ["domain", "<｜domain｜>"],
  ["title", "<｜title｜>"],
  ["read_url", "<｜read_url｜>"],
])

/** Names of tokens in the formats of earlier models, which vocabularies go on to hold. */
const earlierNames = [
  ...["fim▁begin", "fim▁hole", "fim▁end", "search▁begin", "search▁end", "tool▁sep"],
  ...["calls", "call", "outputs", "output"].flatMap((what) => [`tool▁${what}▁begin`, `tool▁${what}▁end`]),
]

/**
 * Tokens that begin turns, calls and results in DeepSeek's chat templates (V3, R1), whose vocabulary does not flag them
 * as special. Tags of thinking are not among them: they stay as the reference has them.
 */
export const turnTokens: readonly string[] = [
  ...[tokens.user, tokens.assistant],
  ...earlierNames.map((name) => `<｜${name}｜>`),
]

/** All tokens that steer the models, as far as a vocabulary has them. Most of them are no special tokens to it. */
export const controlTokens: readonly string[] = [
  ...Object.values(tokens),
  ...taskTokens.values(),
  ...earlierNames.map((name) => `<｜${name}｜>`),
]
