import { expect, test } from "bun:test"
import { createKeyCheck, isGuarded } from "../../src/http/access"

test("any of the keys passes as a bearer token, whatever the scheme's case; nothing else does", () => {
  const passes = createKeyCheck(["first key", "secönd"])
  for (const header of ["Bearer first key", "bearer secönd", "BEARER first key"]) {
    expect([header, passes(header)]).toEqual([header, true])
  }
  for (const header of [
    ...[null, "", "Bearer", "Bearer ", "Bearer first", "Bearer first key ", "Bearer  first key"],
    ...["Basic first key", "first key", "Bearerfirst key", "Bearer third", `Bearer ${"x".repeat(100_000)}`],
  ]) {
    expect([header, passes(header)]).toEqual([header, false])
  }
})

test("a server without keys lets everyone in, one with an empty key does not", () => {
  expect(createKeyCheck([])(null)).toBe(true)
  expect(createKeyCheck([""])(null)).toBe(false)
})

test("the model routes are guarded, the routes around them are open", () => {
  for (const path of [
    ...["/v1/models", "/v1", "/v2/embed", "/inference/v1/generate", "/cohere/v2/chat", "/v1beta"],
    ...["//v1/models", "/%76%31/models", "/v1/%zz"],
  ]) {
    expect([path, isGuarded(path)]).toEqual([path, true])
  }
  for (const path of ["/", "/health", "/tokenize", "/detokenize", "/metrics", "/load", "/V1/models", "/x/v1/models"]) {
    expect([path, isGuarded(path)]).toEqual([path, false])
  }
})
