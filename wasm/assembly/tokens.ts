/** The vocabulary's tokens as the host packed them: all bytes one behind the other, by id. */

/** No token, no rank. */
export const NONE: u32 = 0xffff_ffff

/** Ids are below this. */
export let tokenCount: u32 = 0
/** u32 × (tokenCount + 1): where each token's bytes start; equal neighbours = no token. */
export let tokenStarts: usize = 0
export let tokenBytes: usize = 0

/** `starts` and `bytes` stay in use; behind `bytes` at least 16 more bytes can be read. */
export function setTokens(starts: usize, bytes: usize, count: u32): void {
  tokenStarts = starts
  tokenBytes = bytes
  tokenCount = count
}

// @ts-ignore: decorator
@inline
export function tokenLength(id: u32): u32 {
  return load<u32>(tokenStarts + (<usize>id << 2), 4) - load<u32>(tokenStarts + (<usize>id << 2))
}
