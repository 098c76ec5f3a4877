/** Long texts that stay bytes: whatever is held, the body says what it would have said read whole. */
import { describe, expect, test } from "bun:test"
import { readJsonBody } from "../../src/http/body"
import { BodyBudget } from "../../src/http/body-budget"
import { type BodyPath, readMediaBody } from "../../src/http/media-body"
import { jsonText } from "../../src/ir/exact-json"

const claim = new BodyBudget(1_000_000_000).claim()
const limits = { bodyBytesMax: 2_000_000, mediaBodyBytesMax: 4_000_000, jsonDepthMax: 64, bodySecondsMax: 10 }
const passesOn = (path: BodyPath): boolean => path.at(-1) === "url"
const long = "data:image/png;base64,".padEnd(300_000, "iVBORw0KGgo+/=")

function post(body: string | Uint8Array): Request {
  const headers = { "content-type": "application/json" }
  return new Request("http://x/", { method: "POST", headers, body: new Blob([body as string]) })
}

/** What is passed on, put together again, and whether anything was held. */
async function passed(body: string): Promise<{ json: string; held: number }> {
  const read = await readMediaBody(post(body), limits, claim, passesOn)
  if (!read.ok) throw new Error(JSON.stringify(read.error))
  const { value, held } = read.value
  if (held === null) return { json: jsonText(value), held: 0 }
  const bytes = await new Response(held.body(jsonText(value))).bytes()
  expect(held.bodyBytes(jsonText(value))).toBe(bytes.length)
  return { json: new TextDecoder().decode(bytes), held: held.count }
}

async function plain(body: string): Promise<string> {
  const read = await readJsonBody(post(body), limits, claim)
  if (!read.ok) throw new Error(JSON.stringify(read.error))
  return jsonText(read.value)
}

describe("a body with a long text", () => {
  const cases: { readonly [name: string]: readonly [body: string, held: number] } = {
    "to be passed on": [`{"a": [1, {"url" : "${long}"}], "n": 9007199254740993}`, 1],
    "as the whole body": [`"${long}"`, 1],
    twice: [`[{"url":"${long}"},{"url":"${long}x"},"é"]`, 2],
    elsewhere: [`{"text":"${long}","url":"short"}`, 1],
    "in both places": [`{"text":"${long}","b":{"url":"${long}"}}`, 2],
    "as a key": [`{"${long}":{"url":1}}`, 0],
    "with escapes": [`{"url":"${long}\\u0041\\/"}`, 0],
    "with other than ASCII": [`{"url":"${long}é"}`, 0],
    "behind escaped quotes": [`{"a\\"":"\\\\","url":"${long}","z":"\\\\\\""}`, 1],
    "under __proto__": [`{"__proto__":{"url":"${long}"},"url":"${long}"}`, 2],
    "behind a byte order mark": [`\u{feff}{"url":"${long}"}`, 1],
  }
  for (const [name, [body, held]] of Object.entries(cases)) {
    test(`${name} says the same`, async () => {
      const read = await passed(body)
      expect(read.json === (await plain(body))).toBe(true)
      const isPassedOn = body.includes('"url":"data') || body.includes('"url" : "data')
      expect(read.held).toBe(isPassedOn ? held : 0)
    })
  }

  test("shows how it begins, and nothing that a client could write stands for it", async () => {
    const read = await readMediaBody(post(`{"a":{"url":"${long}"}}`), limits, claim, passesOn)
    if (!read.ok || read.value.held === null) throw new Error("not held")
    const { value, held } = read.value
    const { url } = (value as { a: { url: string } }).a
    expect([url.length < 256, url.startsWith(long.slice(0, 128))]).toEqual([true, true])
    expect(new TextDecoder().decode(held.bytesOf(url)!) === long).toBe(true)
    expect([held.bytesOf(long), held.bytesOf(`${url} `), held.parts("<x:0>")]).toEqual([null, null, ["<x:0>"]])
    expect(held.restore(`a${url}b`) === `a${long}b`).toBe(true)
  })

  test("that is no JSON, or no UTF-8, is refused as others are", async () => {
    const kindOf = async (body: string | Uint8Array) => {
      const read = await readMediaBody(post(body), limits, claim, passesOn)
      return read.ok ? "ok" : read.error.kind
    }
    expect(await kindOf(`{"url":"${long}\n"}`)).toBe("body_not_json")
    expect(await kindOf(`{"url":"\u0001${long}"}`)).toBe("body_not_json")
    expect(await kindOf(`{"url":"${long}`)).toBe("body_not_json")
    expect(await kindOf(`{"url":"${long}" x}`)).toBe("body_not_json")
    expect(await kindOf(Buffer.from(`{"url":"${long}","b":"\xff"}`, "latin1"))).toBe("body_not_utf8")
    expect(await kindOf(`{"url":"${long}","a":${"[".repeat(65)}${"]".repeat(65)}}`)).toBe("body_too_deep")
    expect(await kindOf(`{"url":"${"A".repeat(4_000_000)}"}`)).toBe("body_too_large")
    expect(await kindOf(`{"url":"${"A".repeat(3_900_000)}"}`)).toBe("ok")
    expect(await kindOf(`{"text":"${"A".repeat(2_100_000)}"}`)).toBe("body_too_large")
    expect(await kindOf(`{"text":"${"é".repeat(1_100_000)}"}`)).toBe("body_too_large")
  })
})

test("control characters are found wherever they stand in a word of memory", async () => {
  for (let at = 0; at < 9; at++) {
    for (const code of [0, 9, 31]) {
      const text = `${"A".repeat(at)}${String.fromCharCode(code)}${long}`
      const read = await readMediaBody(post(`{"url":"${text}","p":"${"x".repeat(at)}"}`), limits, claim, passesOn)
      expect([at, code, read.ok]).toEqual([at, code, false])
      const behind = await readMediaBody(post(`{"url":"${long}${text.slice(0, at + 1)}"}`), limits, claim, passesOn)
      expect([at, code, behind.ok]).toEqual([at, code, false])
    }
  }
})
