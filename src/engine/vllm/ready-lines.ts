import type { EngineLink } from "./engine-link"

/**
 * What the log tells of an engine that takes requests from now on; before its link says that it is proven. `returns` = it
 * was lost meanwhile; `contextTokensMax` is the served model's window.
 */
export function readyLines(link: EngineLink, returns: boolean, contextTokensMax: number): string[] {
  const { facts, label } = link
  const isFromBefore = link.isReturning && !link.isProven
  if (returns && !isFromBefore) return [`${label} is back`]
  const news = isFromBefore ? "is back from an earlier process of this server" : "is ready"
  const lines = [[`${label} ${news}`, ...known(link)].join(", ")]
  if (isFromBefore && link.toldBy === "nobody") {
    lines.push(`${label} does not say what it is: its window is taken to be the model's, ${contextTokensMax} tokens`)
  }
  if (facts.contextTokensMax !== null && facts.contextTokensMax < contextTokensMax) {
    lines.push(`the window is ${label}'s, ${facts.contextTokensMax} tokens, not ${contextTokensMax}`)
  }
  return lines
}

function known({ facts: { version, contextTokensMax, sequencesMax } }: EngineLink): string[] {
  return [
    version === null ? null : `vLLM ${version}`,
    contextTokensMax === null ? null : `window ${contextTokensMax}`,
    sequencesMax === null ? null : `${sequencesMax} sequences at once`,
  ].filter((each) => each !== null)
}
