import type { EngineLink } from "./engine-link"

/** Share of the KV cache from which on waiting requests weigh more. Source: vLLM 0.32.0, choice of a DP rank. */
const cacheShareThatWeighs = 0.5
/** How much. Same source. */
const waitingWeight = 6

/**
 * Which engine gets a request: the one with the least to do, by what it reported and by what we know to run in it,
 * whichever is more (a report is a step old). Those with equal loads take turns. Source: ENGINE_PROTOCOL 12.
 */
export class EngineChoice {
  private turn = 0

  /** The best of those that are ready; null when none is. */
  choose(links: readonly (EngineLink | null)[]): EngineLink | null {
    let best: EngineLink | null = null
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < links.length; i++) {
      const link = links[(this.turn + i) % links.length]!
      if (link?.state !== "ready") continue
      const score = loadOf(link)
      if (score >= least) continue
      best = link
      least = score
    }
    if (best !== null) this.turn = (best.rank + 1) % links.length
    return best
  }
}

function loadOf(link: EngineLink): number {
  const { load } = link
  const pressure = Math.max(0, load.kvCacheUsage - cacheShareThatWeighs)
  return Math.max(link.running.size, load.running + load.waiting) + load.waiting * waitingWeight * pressure
}
