/** Cross-origin rules of the server (`--allowed-origins` and its kin). `*` in a list allows everything. */
export interface CorsRules {
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly credentials: boolean
}

type Headers = { readonly [name: string]: string }

const none: Headers = {}
const anything = "*"
const allMethods = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY"]
/** Request headers that the fetch standard lets through without asking. */
const safeHeaders = ["Accept", "Accept-Language", "Content-Language", "Content-Type"]
const preflightSecondsMax = "600"
const preflightVary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"

/**
 * Headers that a reply gets. None without an `Origin`, except for `vary` where the answer depends on it; the default
 * list of origins is empty and allows nothing (SERVER 4).
 */
export function corsHeaders(rules: CorsRules, request: Request): Headers {
  if (rules.origins.length === 0) return none
  const origin = request.headers.get("origin")
  const echoes = echoesOrigin(rules)
  const vary: Headers = echoes ? { vary: "Origin" } : none
  if (origin === null || !allowsOrigin(rules, origin)) return vary
  return {
    ...vary,
    "access-control-allow-origin": echoes ? origin : anything,
    ...(rules.credentials && { "access-control-allow-credentials": "true" }),
  }
}

/**
 * The whole answer to a preflight, or null when the request is none (an OPTIONS without `Origin` or
 * `Access-Control-Request-Method`). What is not allowed is 400 with the reasons as text, as Starlette's middleware does.
 */
export function corsPreflight(rules: CorsRules, request: Request): Response | null {
  const origin = request.headers.get("origin")
  const method = request.headers.get("access-control-request-method")
  if (request.method !== "OPTIONS" || origin === null || method === null) return null
  const asked = request.headers.get("access-control-request-headers")
  const methods = rules.methods.includes(anything) ? allMethods : rules.methods
  const anyHeader = rules.headers.includes(anything)
  const allowedHeaders = [...new Set([...safeHeaders, ...rules.headers])].sort()

  const refused: string[] = []
  if (!allowsOrigin(rules, origin)) refused.push("origin")
  if (!methods.includes(method)) refused.push("method")
  if (!anyHeader && asked !== null && !allowsHeaders(allowedHeaders, asked)) refused.push("headers")

  const headers: { [name: string]: string } = {
    vary: preflightVary,
    "access-control-allow-methods": methods.join(", "),
    "access-control-max-age": preflightSecondsMax,
  }
  if (!anyHeader) headers["access-control-allow-headers"] = allowedHeaders.join(", ")
  else if (asked !== null) headers["access-control-allow-headers"] = asked
  if (!refused.includes("origin")) {
    headers["access-control-allow-origin"] = echoesOrigin(rules) ? origin : anything
    if (rules.credentials) headers["access-control-allow-credentials"] = "true"
  }
  if (refused.length === 0) return new Response("OK", { headers })
  return new Response(`Disallowed CORS ${refused.join(", ")}`, { status: 400, headers })
}

/** A plain `*` may not go with credentials, so those name the origin even where all are allowed. */
function echoesOrigin(rules: CorsRules): boolean {
  return rules.credentials || !rules.origins.includes(anything)
}

function allowsOrigin(rules: CorsRules, origin: string): boolean {
  return rules.origins.includes(anything) || rules.origins.includes(origin)
}

function allowsHeaders(allowed: readonly string[], asked: string): boolean {
  const names = new Set(allowed.map((name) => name.toLowerCase()))
  return asked.split(",").every((name) => names.has(name.trim().toLowerCase()))
}
