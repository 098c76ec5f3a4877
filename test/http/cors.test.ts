import { describe, expect, test } from "bun:test"
import { type CorsRules, corsHeaders, corsPreflight } from "../../src/http/cors"

const closed: CorsRules = { origins: [], methods: ["*"], headers: ["*"], credentials: false }
const open: CorsRules = { ...closed, origins: ["*"] }
const some: CorsRules = { ...closed, origins: ["https://a.test", "https://b.test"] }
const url = "http://server.test/v1/models"

function reply(rules: CorsRules, origin: string | null): unknown {
  return corsHeaders(rules, new Request(url, { headers: origin === null ? {} : { origin } }))
}

async function preflight(rules: CorsRules, headers: { [name: string]: string }): Promise<unknown> {
  const response = corsPreflight(rules, new Request(url, { method: "OPTIONS", headers }))
  if (response === null) return null
  const sent: { [name: string]: string } = {}
  for (const [name, value] of response.headers) if (name !== "content-type") sent[name] = value
  return { status: response.status, text: await response.text(), headers: sent }
}

describe("replies", () => {
  test("of the default rules have no headers for anyone", () => {
    expect(reply(closed, "https://a.test")).toEqual({})
    expect(reply(closed, null)).toEqual({})
  })

  test("to everyone name no origin, unless credentials go along", () => {
    expect(reply(open, "https://a.test")).toEqual({ "access-control-allow-origin": "*" })
    expect(reply(open, null)).toEqual({})
    expect(reply({ ...open, credentials: true }, "https://a.test")).toEqual({
      vary: "Origin",
      "access-control-allow-origin": "https://a.test",
      "access-control-allow-credentials": "true",
    })
  })

  test("to listed origins name the one that asks, and always vary", () => {
    expect(reply(some, "https://b.test")).toEqual({ vary: "Origin", "access-control-allow-origin": "https://b.test" })
    expect(reply(some, "https://c.test")).toEqual({ vary: "Origin" })
    expect(reply(some, null)).toEqual({ vary: "Origin" })
  })
})

describe("preflights", () => {
  const ask = { origin: "https://a.test", "access-control-request-method": "POST" }
  const vary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
  const methods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"

  test("are only OPTIONS with an origin and a method", async () => {
    expect(corsPreflight(open, new Request(url, { headers: ask }))).toBeNull()
    expect(await preflight(open, { origin: "https://a.test" })).toBeNull()
    expect(await preflight(open, { "access-control-request-method": "POST" })).toBeNull()
  })

  test("of allowed origins mirror the headers asked for", async () => {
    expect(await preflight(open, { ...ask, "access-control-request-headers": "content-type, x-mine" })).toEqual({
      status: 200,
      text: "OK",
      headers: {
        vary,
        "access-control-allow-methods": methods,
        "access-control-max-age": "600",
        "access-control-allow-headers": "content-type, x-mine",
        "access-control-allow-origin": "*",
      },
    })
    expect(await preflight({ ...some, credentials: true }, ask)).toEqual({
      status: 200,
      text: "OK",
      headers: {
        vary,
        "access-control-allow-methods": methods,
        "access-control-max-age": "600",
        "access-control-allow-origin": "https://a.test",
        "access-control-allow-credentials": "true",
      },
    })
  })

  test("of the default rules are refused with 400 and the reason", async () => {
    expect(await preflight(closed, { ...ask, "access-control-request-headers": "content-type" })).toEqual({
      status: 400,
      text: "Disallowed CORS origin",
      headers: {
        vary,
        "access-control-allow-methods": methods,
        "access-control-max-age": "600",
        "access-control-allow-headers": "content-type",
      },
    })
  })

  test("name everything that is not allowed", async () => {
    const strict: CorsRules = { origins: ["https://a.test"], methods: ["GET"], headers: ["X-Mine"], credentials: false }
    const asked = { ...ask, "access-control-request-headers": "x-mine, X-Other" }
    expect(await preflight(strict, asked)).toEqual({
      status: 400,
      text: "Disallowed CORS method, headers",
      headers: {
        vary,
        "access-control-allow-methods": "GET",
        "access-control-max-age": "600",
        "access-control-allow-headers": "Accept, Accept-Language, Content-Language, Content-Type, X-Mine",
        "access-control-allow-origin": "https://a.test",
      },
    })
    const fine = { ...ask, "access-control-request-method": "GET", "access-control-request-headers": "x-mine,accept" }
    expect(await preflight(strict, fine)).toMatchObject({ status: 200, text: "OK" })
  })
})
