/**
 * Linear memory, handed out upwards and never freed one by one: tables first (they live as long as the instance), then
 * the window of text and ids, then scratch for long pieces. `release` goes back to a mark.
 */
let top: usize = (__heap_base + 63) & ~63

/** An address of `bytes` fresh bytes, aligned to a cache line; 0 when memory cannot grow. Not zeroed after `release`. */
export function reserve(bytes: usize): usize {
  const at = top
  const end = (<u64>at + <u64>bytes + 127) & ~63
  if (end > 0xfff0_0000) return 0
  const have = <u64>memory.size() << 16
  if (end > have) {
    const pages = <i32>((end - have + 0xffff) >> 16)
    if (memory.grow(pages) < 0) return 0
  }
  top = <usize>end
  return at
}

/** Where the next reservation starts. */
export function mark(): usize {
  return top
}

/** Gives back everything reserved since the mark. */
export function release(at: usize): void {
  top = at
}
