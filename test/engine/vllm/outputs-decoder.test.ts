import { describe, expect, test } from "bun:test"
import { OutputFields } from "../../../src/engine/vllm/output-fields"
import type { OutputsBatch } from "../../../src/engine/vllm/outputs-batch"
import { isEngineDead, OutputsDecoder } from "../../../src/engine/vllm/outputs-decoder"
import { RequestIds } from "../../../src/engine/vllm/request-id"
import { Finish } from "../../../src/ir/engine"
import { logprobsOf, messageOf, outputOf } from "../../support/engine-outputs"
import { float, intAs, type Packable, pack } from "../../support/message-pack"
import { cellsMade } from "../../support/objects-made"
import { decodedMeaning, recordedMeaning } from "../../support/packed-meaning"
import { seededRandom } from "../../support/random"
import { capturesExist, goldenMessages, type RecordedMessage, recordedMessages } from "../../support/recorded-frames"

const ids = new RequestIds(0xc0ffee00)

function newDecoder() {
  const decoder = new OutputsDecoder(ids)
  return { decoder, fields: new OutputFields(decoder.batch, ids) }
}

/** The outputs as plain values. */
function outputsOf(batch: OutputsBatch): unknown {
  return Array.from({ length: batch.count }, (_, i) => ({
    slot: batch.slot[i],
    serial: batch.slot[i] === -1 ? null : batch.serial[i],
    tokenIds: [...batch.tokenIds.subarray(batch.start[i], batch.end[i])],
    finish: batch.finish[i],
    stopTokenId: batch.stopTokenId[i],
    present: batch.present[i],
  }))
}

function decodeOutputs(body: Uint8Array): unknown {
  const { decoder } = newDecoder()
  const decoded = decoder.decode([body])
  return decoded.ok ? outputsOf(decoded.value) : decoded.error.message
}

const plain = { finish: -1, stopTokenId: -1, present: 0 }

function checkRecording(message: RecordedMessage): void {
  const { decoder, fields } = newDecoder()
  if (message.decoded === null) {
    expect(isEngineDead(message.frames)).toBe(true)
    expect(decoder.decode(message.frames).ok).toBe(false)
    return
  }
  expect(isEngineDead(message.frames)).toBe(false)
  const decoded = decoder.decode(message.frames)
  if (!decoded.ok) throw new Error(decoded.error.message)
  expect(decodedMeaning(decoded.value, fields)).toEqual(recordedMeaning(message))
  // Recorded ids are not of this process.
  expect([...decoded.value.slot.subarray(0, decoded.value.count)].every((slot) => slot === -1)).toBe(true)
}

describe("messages of a real engine say what Python read from them", () => {
  for (const message of goldenMessages()) test(message.title, () => checkRecording(message))

  test.skipIf(!capturesExist)("all recorded messages of ../shared/engine/captures", () => {
    const messages = recordedMessages("output PULL")
    expect(messages.length).toBeGreaterThan(200)
    for (const message of messages) checkRecording(message)
  })
})

describe("outputs", () => {
  test("have 18 or 19 elements, and more do no harm", () => {
    const parts = { requestId: ids.make("a", 3, 7), tokenIds: [11], fields: { 5: 1 } }
    const expected = [{ ...plain, slot: 3, serial: 7, tokenIds: [11], finish: Finish.length }]
    const later = [...outputOf(parts, 19), "new", [1, { x: null }], float(2)]
    for (const output of [outputOf(parts, 18), outputOf(parts, 19), later]) {
      expect(decodeOutputs(messageOf([output]))).toEqual(expected)
    }
  })

  test("may end after the token ids, and a message after any field", () => {
    const id = ids.make("a", 1, 2)
    const expected = [{ ...plain, slot: 1, serial: 2, tokenIds: [5] }]
    for (const message of [
      [0, [[id, [5]]]],
      [0, [[id, [5], null]], null],
      [0, [[id, [5]]], null, 2.5, null],
    ]) {
      expect(decodeOutputs(pack(message as Packable))).toEqual(expected)
    }
    expect(decodeOutputs(pack([3]))).toEqual([])
    expect(decodeOutputs(pack([]))).toEqual([])
    expect(decodeOutputs(pack([0, [[id]]]))).toBe("an output has two fields at least")
  })

  test("have none, one or many token ids, of any width", () => {
    const tokenIds = [0, 127, 128, 255, 256, 65_535, 65_536, 151_935, intAs(0xce, 5), intAs(0xcf, 6), intAs(0xd0, 7)]
    const wide = [intAs(0xd1, 8), intAs(0xd2, 9), intAs(0xd3, 10), intAs(0xcc, 1), intAs(0xcd, 2), 4_294_967_295]
    const all = [...tokenIds, ...wide]
    const values = [0, 127, 128, 255, 256, 65_535, 65_536, 151_935, 5, 6, 7, 8, 9, 10, 1, 2, 4_294_967_295]
    const many = Array.from({ length: 70_000 }, (_, i) => i)
    const body = pack([0, [outputOf({ requestId: "", tokenIds: [] }), outputOf({ requestId: "", tokenIds: all })]])
    expect(decodeOutputs(body)).toEqual([
      { ...plain, slot: -1, serial: null, tokenIds: [] },
      { ...plain, slot: -1, serial: null, tokenIds: values },
    ])
    expect(decodeOutputs(pack([0, [outputOf({ requestId: "", tokenIds: many })]]))).toEqual([
      { ...plain, slot: -1, serial: null, tokenIds: many },
    ])
  })

  test("are malformed with a token id that is none", () => {
    for (const odd of [-1, 4_294_967_296, intAs(0xd3, -2), float(3), "3", null, true, [1]]) {
      const body = pack([0, [outputOf({ requestId: "a", tokenIds: [1, odd] })]])
      expect(decodeOutputs(body)).toBe("a token id was expected")
    }
  })

  test("of other processes, and damaged ids, have slot -1", () => {
    const ours = ids.make("chatcmpl-é", 0xabcde, 0x1234567)
    const theirs = new RequestIds(0xc0ffee01).make("chatcmpl-é", 1, 1)
    const cases = [ours, theirs, ours.slice(0, -1), `${ours}0`, ours.slice(-21), ours.slice(-22), "", "plain-1"]
    const upper = `${ours.slice(0, -1)}F`
    const outputs = [...cases, upper].map((requestId) => outputOf({ requestId, tokenIds: [] }))
    const { decoder } = newDecoder()
    const decoded = decoder.decode([messageOf(outputs)])
    const slots = decoded.ok ? [...decoded.value.slot.subarray(0, decoded.value.count)] : []
    expect(slots).toEqual([0xabcde, -1, -1, -1, -1, 0xabcde, -1, -1, -1])
    // Only what another process of this server made is told apart, with the place of its id.
    const { strangers, frames } = decoder.batch
    const [row, start, end] = strangers
    expect([strangers.length, row, new TextDecoder().decode(frames[0]!.subarray(start, end))]).toEqual([3, 1, theirs])
    decoder.decode([messageOf([])])
    expect(strangers).toEqual([])
  })

  test("end for the reasons of the protocol; new ones are errors, and words are no stop token", () => {
    const of = (finish: Packable, stop: Packable): readonly Packable[] =>
      outputOf({ requestId: "", tokenIds: [], fields: { 5: finish, 6: stop } })
    const outputs = [
      ...[0, 1, 2, 3, 4].map((finish) => of(finish, null)),
      of(5, null),
      of(-1, null),
      of("odd", null),
      of(0, 151_643),
      of(0, intAs(0xd3, 7)),
      of(0, 2 ** 40),
      of(4, "repetition_detected"),
    ]
    const { decoder } = newDecoder()
    const decoded = decoder.decode([messageOf(outputs)])
    if (!decoded.ok) throw new Error(decoded.error.message)
    const { finish, stopTokenId, count } = decoded.value
    expect([...finish.subarray(0, count)]).toEqual([0, 1, 2, 3, 4, 3, 3, 3, 0, 0, 0, 4])
    expect([...stopTokenId.subarray(0, count)]).toEqual([-1, -1, -1, -1, -1, -1, -1, -1, 151_643, 7, -1, -1])
  })

  test("keep a bit for each rare field", () => {
    const fields = Object.fromEntries([2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18].map((at) => [at, [1]]))
    const body = messageOf([outputOf({ requestId: "", tokenIds: [], fields }, 19)])
    const bits = Object.keys(fields).reduce((sum, at) => sum + 2 ** Number(at), 0)
    expect(decodeOutputs(body)).toEqual([{ ...plain, slot: -1, serial: null, tokenIds: [], present: bits }])
  })

  test("of a message larger than any before it are all there", () => {
    const tokenIds = (i: number): number[] => [i, i * 100, 3].slice(0, i % 4)
    const outputs = Array.from({ length: 1_500 }, (_, i) =>
      outputOf({ requestId: ids.make("a", i, 7 * i), tokenIds: tokenIds(i) }),
    )
    const expected = outputs.map((_, i) => ({ ...plain, slot: i, serial: 7 * i, tokenIds: tokenIds(i) }))
    expect(decodeOutputs(messageOf(outputs))).toEqual(expected)
  })

  test("of one message say nothing about the next", () => {
    const { decoder, fields } = newDecoder()
    const full = outputOf({
      requestId: ids.make("a", 1, 1),
      tokenIds: [1, 2],
      fields: { 2: logprobsOf(1, 2), 5: 0, 6: 9 },
    })
    const first = pack([4, Array(300).fill(full), { num_running_reqs: 1 }, 1.5, [1, null, null], ["x"], 1, 2])
    expect(decoder.decode([first]).ok).toBe(true)
    expect(decoder.decode([pack([0, [outputOf({ requestId: "b", tokenIds: [3] })]])]).ok).toBe(true)
    const { batch } = decoder
    expect(outputsOf(batch)).toEqual([{ ...plain, slot: -1, serial: null, tokenIds: [3] }])
    const own = [batch.schedulerStatsAt, batch.utilityAt, batch.finishedRequestsAt, batch.waveComplete, batch.startWave]
    expect([batch.engineIndex, batch.timestamp, ...own]).toEqual([0, -1, -1, -1, -1, -1, -1])
    expect(fields.logprobs(0)).toEqual({ ok: true, value: null })
    expect(fields.logprobs(1)).toEqual({ ok: true, value: null })
  })
})

describe("a message", () => {
  test("has numbers of any width", () => {
    const { decoder } = newDecoder()
    const body = pack([intAs(0xcd, 2), [], null, float(0.5, 32), null, null, intAs(0xcf, 4), intAs(0xd1, 5), "default"])
    const decoded = decoder.decode([body])
    if (!decoded.ok) throw new Error(decoded.error.message)
    const { engineIndex, timestamp, waveComplete, startWave } = decoded.value
    expect({ engineIndex, timestamp, waveComplete, startWave }).toEqual({
      engineIndex: 2,
      timestamp: 0.5,
      waveComplete: 4,
      startWave: 5,
    })
    const whole = decoder.decode([pack([0, [], null, 7])])
    expect(whole.ok && whole.value.timestamp).toBe(7)
  })

  test("is malformed without frames, with something behind it, and with counts that it cannot hold", () => {
    const { decoder } = newDecoder()
    const faultOf = (...frames: readonly Uint8Array[]): unknown => {
      const decoded = decoder.decode(frames)
      return decoded.ok ? "none" : decoded.error
    }
    expect(faultOf()).toEqual({ kind: "malformed_frame", message: "the message has no frame", at: 0 })
    expect(faultOf(new Uint8Array(0))).toEqual({ kind: "malformed_frame", message: "an array was expected", at: 0 })
    expect(faultOf(Uint8Array.of(0x90, 0xc0))).toEqual({
      kind: "malformed_frame",
      message: "bytes stand behind the message",
      at: 1,
    })
    for (const count of [
      [0x92, 0x00, 0xdd, 0xff, 0xff, 0xff, 0xff],
      [0xdd, 0xff, 0xff, 0xff, 0xff, 0x00],
      [0x91, 0xdf, 0xff, 0xff, 0xff, 0xff],
      [0x92, 0x00, 0x91, 0x92, 0xa1, 0x61, 0xdd, 0x7f, 0xff, 0xff, 0xff],
    ]) {
      expect(decoder.decode([Uint8Array.from(count)]).ok).toBe(false)
    }
    expect(decoder.batch.count).toBe(0)
    expect(decoder.batch.tokenIds.length).toBe(256)
  })

  test("cut at any byte, or with any bit wrong, gives a fault or a batch, never an exception", () => {
    const random = seededRandom(5)
    const { decoder, fields } = newDecoder()
    const messages = goldenMessages().filter(({ decoded, frames }) => decoded !== null && frames.length === 1)
    for (const { frames } of messages) {
      const body = frames[0]!
      let whole = 0
      for (let size = 0; size < body.length; size++) if (decoder.decode([body.subarray(0, size)]).ok) whole += 1
      expect(whole).toBe(0)
      for (let round = 0; round < 200; round++) {
        const damaged = body.slice()
        for (let flips = 0; flips <= round % 3; flips++) {
          const at = Math.floor(random() * damaged.length)
          damaged[at] = damaged[at]! ^ (1 << Math.floor(random() * 8))
        }
        readAll(decoder, fields, [damaged])
      }
    }
    for (let round = 0; round < 10_000; round++) {
      const noise = Uint8Array.from({ length: Math.floor(random() * 40) }, () => Math.floor(random() * 256))
      noise[0] = 0x99
      noise[1] = 0
      readAll(decoder, fields, [noise])
    }
  })

  test("of a million outputs leaves no objects and no strings behind", () => {
    const outputs = Array.from({ length: 256 }, (_, i) =>
      outputOf({ requestId: ids.make("chatcmpl-0123456789abcdef", i, i), tokenIds: [i * 500] }),
    )
    const frames = [messageOf(outputs)]
    const { decoder } = newDecoder()
    const made = cellsMade(() => {
      for (let count = 0; count < 1_000_000; count += 256) decoder.decode(frames)
    })
    expect(made.objects + made.strings).toBeLessThanOrEqual(100)
    expect(decoder.batch.count).toBe(256)
  })
})

/** Reads everything that a client could ask for. */
function readAll(decoder: OutputsDecoder, fields: OutputFields, frames: readonly Uint8Array[]): void {
  const decoded = decoder.decode(frames)
  if (!decoded.ok) {
    expect(decoder.batch.count).toBe(0)
    return
  }
  fields.schedulerStats()
  fields.utility()
  fields.finishedRequests()
  for (let i = 0; i < decoded.value.count; i++) {
    fields.logprobs(i)
    fields.promptLogprobs(i)
    fields.events(i)
    fields.prefillStats(i)
    fields.kvTransferParams(i)
    fields.ecTransferParams(i)
    fields.error(i)
    fields.multimodalMisses(i)
  }
}
