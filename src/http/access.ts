import { createHash, timingSafeEqual } from "node:crypto"

/** What begins a path that needs a key (SERVER 4). All other routes are open. */
const guardedPrefixes = ["/v1", "/v2", "/inference", "/cohere"]

/**
 * Checks `Authorization` headers against the server's keys; with no keys everyone passes. Digests are compared in
 * constant time and all of them each time, so that time tells nothing about the keys (SERVER 4).
 */
export function createKeyCheck(apiKeys: readonly string[]): (authorization: string | null) => boolean {
  if (apiKeys.length === 0) return () => true
  const digests = apiKeys.map(digest)
  return (authorization) => {
    const token = bearerToken(authorization)
    if (token === null) return false
    const given = digest(token)
    let known = false
    for (const each of digests) known = timingSafeEqual(each, given) || known
    return known
  }
}

/**
 * Whether a path needs a key once the proxy's prefix is gone. Paths that only differ in escapes or leading slashes are
 * guarded alike, whatever the router makes of them.
 */
export function isGuarded(path: string): boolean {
  const plain = decoded(path).replace(/^\/+/, "/")
  return guardedPrefixes.some((prefix) => plain.startsWith(prefix))
}

function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest()
}

/** The scheme's case does not matter; the token is everything behind one space. */
function bearerToken(authorization: string | null): string | null {
  if (authorization === null) return null
  const space = authorization.indexOf(" ")
  if (space === -1 || authorization.slice(0, space).toLowerCase() !== "bearer") return null
  return authorization.slice(space + 1)
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
