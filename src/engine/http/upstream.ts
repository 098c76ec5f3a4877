/** One remote token-in service, and what is known of it. */
export class Upstream {
  /** Without a slash at the end. */
  readonly url: string
  /** Sequences of ours that it computes now. */
  running = 0
  /** When a connection or a look at its health failed, and no look worked since; null = it is there. Milliseconds. */
  downSince: number | null = null

  constructor(url: string) {
    this.url = url
  }

  /** Whether it is there, as far as anybody looked. */
  get healthy(): boolean {
    return this.downSince === null
  }
}

/**
 * The upstream for a new sequence: of the healthy ones that were not tried yet the one with the fewest running, by turns
 * where several have as few. With none healthy the others are tried too: they may be back before anybody looked. Null
 * when all were tried.
 */
export function chooseUpstream(
  upstreams: readonly Upstream[],
  tried: ReadonlySet<Upstream>,
  turn: number,
): Upstream | null {
  let best: Upstream | null = null
  for (let i = 0; i < upstreams.length; i++) {
    const each = upstreams[(turn + i) % upstreams.length]!
    if (tried.has(each)) continue
    if (best === null || (each.healthy && !best.healthy)) best = each
    else if (each.healthy === best.healthy && each.running < best.running) best = each
  }
  return best
}
