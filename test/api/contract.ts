/**
 * What every Endpoint plug must hold, whatever its API looks like. Driven over HTTP against the simulator, whose scripts
 * say what the model writes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import type { SentEvent } from "../support/sent-events"
import { startTestServer, type TestServer, until } from "../support/test-server"

/** A reply in terms that all APIs share. */
export interface ReadReply {
  readonly text: string
  readonly finish: string
  readonly promptTokens: number
  readonly outputTokens: number
}

/** How the suite speaks to one API. */
export interface EndpointDriver {
  readonly path: string
  /** A minimal valid body that the model answers with `xargs`' script. */
  body(xargs: object, extra?: object): { [field: string]: unknown }
  /** The field that limits the reply. */
  readonly limitField: string
  /** The field that holds the prompt, as a body without it is refused. */
  readonly promptField: string
  readWhole(json: unknown): ReadReply
  readStream(events: readonly SentEvent[]): ReadReply
  /** Fields to set so that a stream tells its usage. */
  readonly usageExtra: object
  /** What the stream's events must look like, beyond what `readStream` needs. */
  checkGrammar(events: readonly SentEvent[]): void
  /** Whether these events end with a failure, and show nothing of the engine's own words. */
  endsInFailure(events: readonly SentEvent[]): boolean
}

/** Runs the suite for one endpoint. */
export function endpointContract(name: string, driver: EndpointDriver): void {
  describe(`${name} as an Endpoint`, () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startTestServer({ simulator: { restartMs: 50 } })
    })
    afterAll(() => server.stop())

    const post = (xargs: object, extra: object = {}) => server.post(driver.path, driver.body(xargs, extra))
    const stream = (xargs: object, extra: object = {}) =>
      server.events(driver.path, driver.body(xargs, { ...driver.usageExtra, ...extra }))

    test("gives the same reply streamed and whole, with true counts", async () => {
      for (const script of [
        "One, two, three.",
        "Grüße 🎉 東京 नमस्ते 👩‍👩‍👧‍👦",
        "",
        " \n ",
        "a\u0000b\u2028c\u{10ffff}",
      ]) {
        for (const steps of [1, 3, [1, 2, 5]]) {
          const xargs = { sim_text: script, sim_tokens_per_step: steps }
          const whole = await post(xargs)
          expect(whole.status).toBe(200)
          const read = driver.readWhole(whole.json)
          expect(read.text).toBe(script)
          expect(read.finish).toBe("stop")
          const tokens = (await server.post("/tokenize", { prompt: script })).json.count
          expect(read.outputTokens).toBe(tokens + 1) // and the token that ends the reply
          const events = await stream(xargs)
          driver.checkGrammar(events)
          expect(driver.readStream(events)).toEqual(read)
        }
      }
    })

    test("stops at the limit and says so", async () => {
      const extra = { [driver.limitField]: 3 }
      const xargs = { sim_text: "one two three four five six" }
      const read = driver.readWhole((await post(xargs, extra)).json)
      expect(read).toMatchObject({ text: "one two three", finish: "length", outputTokens: 3 })
      expect(driver.readStream(await stream(xargs, extra))).toEqual(read)
    })

    test("cuts at a stop string, whichever way the text is chunked", async () => {
      for (const steps of [1, 2, 9]) {
        const xargs = { sim_text: "alpha beta STOP gamma", sim_tokens_per_step: steps }
        const read = driver.readWhole((await post(xargs, { stop: ["STOP"] })).json)
        expect(read).toMatchObject({ text: "alpha beta ", finish: "stop" })
        expect(driver.readStream(await stream(xargs, { stop: "STOP" }))).toEqual(read)
      }
    })

    test("stops at a stop token, which counts but is not shown", async () => {
      const [alpha, beta] = (await server.post("/tokenize", { prompt: "alpha beta" })).json.tokens
      const xargs = { sim_token_ids: [alpha, beta, alpha] }
      const read = driver.readWhole((await post(xargs, { stop_token_ids: [beta] })).json)
      expect(read).toMatchObject({ text: "alpha", finish: "stop", outputTokens: 2 })
    })

    test("answers an engine's refusal with its words, and other failures with fixed ones", async () => {
      const internal = { message: "Internal server error", type: "InternalServerError", param: null, code: 500 }
      const retry = {
        message: "The engine cannot take this request now; please try again",
        type: "ServiceUnavailableError",
        param: null,
        code: 503,
      }
      const refused = { message: expect.any(String), type: "BadRequestError", code: 400 }
      const refusals: [object, object][] = [
        [{ sim_error: "validation" }, refused],
        [{ sim_error: "retryable" }, retry],
        [{ sim_error: "disconnect" }, internal],
        [{ sim_finish: "error" }, internal],
        [{ sim_text: "ab cd ef", sim_error: "disconnect", sim_fail_after_tokens: 2 }, internal],
      ]
      for (const [xargs, error] of refusals) {
        const reply = await post(xargs)
        expect({ xargs, ...reply.json }).toMatchObject({ xargs, error })
        expect(reply.status).toBe(reply.json.error.code)
      }
    })

    test("tells a failure in mid-stream as an event, and ends the stream", async () => {
      for (const xargs of [
        { sim_text: "ab cd ef", sim_error: "disconnect", sim_fail_after_tokens: 2 },
        { sim_text: "ab cd ef", sim_error: "retryable", sim_fail_after_tokens: 1 },
        { sim_text: "ab cd ef", sim_finish: "error" },
        { sim_error: "retryable" },
      ]) {
        const events = await stream(xargs)
        expect({ xargs, failed: driver.endsInFailure(events) }).toEqual({ xargs, failed: true })
      }
    })

    test("refuses scripts that contradict themselves before anything is streamed", async () => {
      for (const xargs of [
        { sim_text: "a", sim_token_ids: [1] },
        { sim_unknown: 1 },
        { sim_text: 5 },
        { sim_token_ids: [1e9] },
        { sim_step_ms: "fast" },
      ]) {
        for (const isStream of [false, true]) {
          const reply = await post(xargs, { stream: isStream })
          expect({ xargs, status: reply.status, param: reply.json?.error.param }).toEqual({
            xargs,
            status: 400,
            param: "vllm_xargs",
          })
        }
      }
    })

    test("frees the engine within 100 ms when a client leaves, running or waiting, streaming or not", async () => {
      const busy = await startTestServer({ simulator: { sequencesMax: 1 } })
      const slow = { sim_text: "word ".repeat(500), sim_step_ms: 20 }
      /** Opens a request; gives what makes its client leave. */
      const open = async (isStream: boolean): Promise<() => Promise<void>> => {
        const leaving = new AbortController()
        const body = JSON.stringify(driver.body(slow, { stream: isStream }))
        const headers = { "content-type": "application/json" }
        const { signal } = leaving
        const request = fetch(busy.url + driver.path, { method: "POST", headers, body, signal })
        const held = request.then((response) => (isStream ? response.body!.getReader().read() : null)).catch(() => {})
        return async () => {
          leaving.abort()
          await request.catch(() => {})
          await held
        }
      }
      for (const isStream of [true, false]) {
        for (const state of ["running", "waiting"] as const) {
          // A busy machine may be late once; a server that is late by itself is late every time.
          const took: number[] = []
          while (took.length < 5 && !took.some((ms) => ms < 100)) {
            const other = state === "waiting" ? await open(true) : async () => {}
            if (state === "waiting") await until(async () => (await busy.counts()).running === 1)
            const leave = await open(isStream)
            await until(async () => (await busy.counts())[state] === 1)
            const leftAt = performance.now()
            void leave()
            await until(async () => (await busy.counts())[state] === 0)
            took.push(performance.now() - leftAt)
            await other()
            await until(async () => {
              const { running, waiting, inside } = await busy.counts()
              return running === 0 && waiting === 0 && inside === 0
            })
          }
          expect(Math.min(...took)).toBeLessThan(100)
        }
      }
      await busy.stop()
    })

    test("takes null as absent, and lets unknown fields pass", async () => {
      const extra = {
        temperature: null,
        stop: null,
        stream: null,
        model: null,
        seed: null,
        frobnicate: { a: 1 },
        top_k: null,
      }
      expect((await post({ sim_text: "ok" }, extra)).status).toBe(200)
      expect((await post({ sim_text: "ok" }, { model: "" })).status).toBe(200)
    })

    test("never coerces: a wrong type is a 400 that names the field", async () => {
      const wrong: [string, unknown][] = [
        ["temperature", "1"],
        ["top_k", 1.5],
        ["stream", "true"],
        ["seed", 2 ** 70],
        ["stop", 5],
        ["model", 5],
        ["stop_token_ids", ["1"]],
        [driver.limitField, "5"],
        [driver.promptField, 5],
        [driver.promptField, undefined],
      ]
      for (const [field, value] of wrong) {
        if (field === driver.promptField && value === undefined && driver.path === "/v1/completions") continue
        const reply = await post({}, { [field]: value })
        expect({ field, status: reply.status, error: reply.json.error }).toMatchObject({
          field,
          status: 400,
          error: { type: "Bad Request", param: field, code: 400 },
        })
      }
    })

    test("refuses values outside of their range, with the field as param", async () => {
      const outside: [string, unknown][] = [
        ["temperature", 2.1],
        ["temperature", -1],
        ["top_p", 0],
        ["top_p", 1.1],
        ["top_k", -2],
        ["min_p", 2],
        ["presence_penalty", 3],
        ["frequency_penalty", -3],
        ["repetition_penalty", 0],
        ["stop", ""],
        ["stop", ["a", ""]],
        ["stop", Array.from({ length: 129 }, () => "x")],
        ["min_tokens", -1],
        ["logit_bias", { x: 1 }],
        ["logit_bias", { "99999999": 1 }],
        ["allowed_token_ids", []],
        ["allowed_token_ids", [99_999_999]],
        ["bad_words", [""]],
        ["structured_outputs", { regex: "a", grammar: "b" }],
        ["structured_outputs", {}],
        ["cache_salt", ""],
        [driver.limitField, 0],
      ]
      for (const [field, value] of outside) {
        const reply = await post({}, { [field]: value })
        expect({ field, value, status: reply.status, error: reply.json.error }).toMatchObject({
          field,
          value,
          status: 400,
          error: { type: "BadRequestError", param: field, code: 400 },
        })
      }
    })

    test("takes 64-bit integers exactly", async () => {
      const body = JSON.stringify(driver.body({ sim_text: "ok" })).slice(0, -1)
      for (const seed of ["9223372036854775807", "-9223372036854775808"]) {
        expect((await server.post(driver.path, `${body},"seed":${seed}}`)).status).toBe(200)
      }
      const tooWide = await server.post(driver.path, `${body},"seed":9223372036854775808}`)
      expect(tooWide.json.error).toMatchObject({ type: "Bad Request", param: "seed" })
    })

    test("does not know other models", async () => {
      const reply = await post({}, { model: "nope" })
      expect({ status: reply.status, error: reply.json.error }).toMatchObject({
        status: 404,
        error: { type: "NotFoundError", param: "model", code: 404 },
      })
    })

    test("says in the log why the engine would not have a request", async () => {
      await post({ sim_unknown: 1 }, { request_id: "refused" })
      expect(server.log.at(-1)).toMatch(/-?refused, 0 tokens, engine_validation$/)
    })

    test("fails everything that runs when the engine dies, and serves again once it is back", async () => {
      const slow = post({ sim_text: "word ".repeat(100), sim_step_ms: 5 })
      await until(async () => (await server.counts()).running === 1)
      const fatal = await post({ sim_error: "fatal" })
      expect([fatal.status, (await slow).status]).toEqual([500, 500])
      expect((await server.get("/health")).status).toBe(503)
      await until(async () => (await server.get("/health")).status === 200)
      expect((await post({ sim_text: "ok" })).status).toBe(200)
    })

    test("says which engine answers", async () => {
      const replies = [await post({}), await post({}, { stream: true }), await post({}, { model: "nope" })]
      expect(replies.map((reply) => reply.headers.get("x-sluice-engine"))).toEqual(Array(3).fill("simulator"))
    })
  })
}
