import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { jsonLine } from "../../src/api/frames"
import { jsonText } from "../../src/ir/exact-json"
import { startTestServer, type TestServer } from "../support/test-server"

const beyond = "18446744073709551616"

test("integers beyond 2^53 keep their digits, and everything else is as JSON.stringify writes it", () => {
  expect(jsonText({ a: 2n ** 64n, b: [-(2n ** 63n), 1n], c: "\u2028" })).toBe(
    `{"a":${beyond},"b":[-9223372036854775808,1],"c":"\u2028"}`,
  )
  expect(jsonLine({ a: 2n ** 64n, c: "\u2028" })).toBe(`{"a":${beyond},"c":"\\u2028"}`)
  const value = { a: [1, 1.5, null, true, { b: "x", c: undefined }], d: "" }
  expect([jsonText(value), jsonLine(value)]).toEqual([JSON.stringify(value), JSON.stringify(value)])
})

describe("a body with integers beyond 2^53", () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startTestServer()
  })
  afterAll(() => server.stop())

  for (const fields of [
    `"tools":[{"type":"function","name":"f","parameters":{"maximum":${beyond}}}]`,
    `"text":{"format":{"type":"json_schema","name":"a","schema":{"maximum":${beyond}}}}`,
  ]) {
    test(`is answered with what it sent: ${fields.slice(0, 8)}`, async () => {
      const whole = await server.post("/v1/responses", `{"input":"Hi",${fields}}`)
      expect([whole.status, whole.text.includes(`"maximum":${beyond}`)]).toEqual([200, true])
      const stream = await server.post("/v1/responses", `{"input":"Hi","stream":true,${fields}}`)
      expect([stream.status, stream.text.split(`"maximum":${beyond}`).length]).toEqual([200, 4])
    })
  }
})
