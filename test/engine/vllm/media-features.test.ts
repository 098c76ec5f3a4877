/** What processors made of media, from a request to generate to the bytes that an engine gets. */
import { describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { AddEncoder } from "../../../src/engine/vllm/add-encoder"
import { type FeatureRules, readFeatures } from "../../../src/engine/vllm/media-features"
import { readMediaItem } from "../../../src/engine/vllm/media-item"
import type { Json } from "../../../src/ir/conversation"
import { HeldTexts } from "../../../src/ir/held-texts"
import { addRequest } from "../../support/add-request"
import { extension, float, inlineArray, type Packable, pack } from "../../support/message-pack"
import { repository } from "../../support/serve"
import { decodeAdd } from "../../support/strict-decoder"

const limits = { contextTokensMax: 4_096, vocabSize: 1_000, supportsLora: false, structuredOutputsBackend: "xgrammar" }
const rules: FeatureRules = { promptTokens: 10, modalities: ["image", "video"], held: null }

const batched = ["batched", { keep_on_cpu: true }]
const flat = ["flat", { keep_on_cpu: false, slices: [[0, 4, null]], dim: 0 }]
const pixels = { data: inlineArray("float32", [4, 2], new Float32Array(8)), field: flat }
const grid = { data: inlineArray("int64", [3], new BigInt64Array([1n, 2n, 2n])), field: batched }
const item = pack({ pixel_values: pixels, image_grid_thw: grid })
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

function featuresOf(change: { readonly [name: string]: Json } = {}): { readonly [name: string]: Json } {
  return {
    mm_hashes: { image: ["b", "a"] },
    mm_placeholders: {
      image: [
        { offset: 6, length: 2 },
        { offset: 1, length: 4 },
      ],
    },
    kwargs_data: { image: [base64(item), base64(item)] },
    mm_metadata: null,
    ...change,
  }
}

describe("features", () => {
  test("become items in the order of the prompt, their fields as they came", () => {
    const read = readFeatures(featuresOf(), rules)
    if (!read.ok) throw new Error(read.error)
    const body = new AddEncoder(limits).encode(addRequest({ mediaFeatures: read.value }))
    const media = decodeAdd(body).mm_features as unknown as { readonly [name: string]: unknown }[] // a list of maps
    const about = media.map(({ data: _, ...rest }) => rest)
    const place = (offset: number, length: number, hash: string) => ({
      modality: "image",
      identifier: hash,
      mm_position: { offset, length, is_embed: null },
      mm_hash: hash,
    })
    expect(about).toEqual([place(1, 4, "a"), place(6, 2, "b")])
    expect(Object.keys(media[0]!.data as object)).toEqual(["pixel_values", "image_grid_thw"])
    // The bytes of each field stand in the message as they stood in the request.
    for (const field of [pack(pixels), pack(grid)]) expect(Buffer.from(body).includes(Buffer.from(field))).toBe(true)
  })

  test("of metadata take the place of those that were computed, or stand alone", () => {
    const other = { data: inlineArray("int64", [3], new BigInt64Array([1n, 8n, 8n])), field: batched }
    const metadata = { mm_metadata: { image: [base64(pack({ image_grid_thw: other })), null] } }
    const both = readFeatures(featuresOf(metadata), rules)
    if (!both.ok) throw new Error(both.error)
    expect(both.value.map(({ fields }) => [...fields.keys()])).toEqual([
      ["pixel_values", "image_grid_thw"],
      ["pixel_values", "image_grid_thw"],
    ])
    expect(both.value[1]!.fields.get("image_grid_thw")).toEqual(pack(other))
    const alone = { image: [base64(pack({ image_grid_thw: other })), base64(pack({ image_grid_thw: grid }))] }
    const read = readFeatures(featuresOf({ kwargs_data: null, mm_metadata: alone }), rules)
    expect(read.ok && read.value.map(({ fields }) => fields.size)).toEqual([1, 1])
  })

  test("may be held as bytes", () => {
    const held = new HeldTexts()
    const standIn = held.hold(Buffer.from(base64(item)))
    const read = readFeatures(featuresOf({ kwargs_data: { image: [standIn, base64(item)] } }), { ...rules, held })
    expect(read.ok && read.value[1]!.fields.get("pixel_values")).toEqual(pack(pixels))
  })

  test("are refused where an engine would not survive them", () => {
    const cases: readonly (readonly [{ readonly [name: string]: Json }, string])[] = [
      [{ kwargs_data: null }, "no kwargs_data"],
      [{ kwargs_data: { image: [null, base64(item)] } }, "no kwargs_data"],
      [{ kwargs_data: { image: ["!!!!", base64(item)] } }, "not base64"],
      [{ kwargs_data: { image: [`${base64(item)}A`, base64(item)] } }, "not base64"],
      [{ mm_hashes: { image: ["a"] } }, "no hash"],
      [{ mm_hashes: { image: ["a", ""] } }, "no hash"],
      [{ mm_placeholders: { image: [{ offset: 9, length: 2 }] } }, "outside"],
      [{ mm_placeholders: { image: [{ offset: -1, length: 2 }] } }, "outside"],
      [{ mm_placeholders: { image: [{ offset: 1.5, length: 2 }] } }, "outside"],
      [
        {
          mm_placeholders: {
            image: [
              { offset: 1, length: 2 },
              { offset: 2, length: 2 },
            ],
          },
        },
        "overlap",
      ],
      [{ mm_placeholders: { audio: [{ offset: 1, length: 2 }] } }, "takes no audio"],
    ]
    for (const [change, words] of cases) {
      const read = readFeatures(featuresOf(change), rules)
      expect([change, read.ok ? "taken" : read.error]).toEqual([change, expect.stringContaining(words)])
    }
  })
})

describe("an item", () => {
  const taken = (value: Packable): string => {
    const read = readMediaItem(pack(value))
    return read.ok ? "taken" : read.error
  }
  const field = (data: Packable, kind: Packable = batched) => ({ a: { data, field: kind } })
  const small = inlineArray("uint8", [2], new Uint8Array(2))

  test("may have tensors in lists, numbers, scalars and every kind of field", () => {
    for (const value of [
      field(small),
      field([small, [small, small]]),
      field([]),
      field(7),
      field(float(0.5)),
      field(inlineArray("bool", [], new Uint8Array(1))),
      field(inlineArray("bfloat16", [0, 5], new Uint8Array(0))),
      field(small, ["shared", { batch_size: 1, keep_on_cpu: false }]),
      field(small, ["flat", { slices: [[[0, 2, null]], [[2, 4, 1]]], keep_on_cpu: true, dim: -1 }]),
      { b: { field: batched, data: small } },
    ]) {
      expect(taken(value)).toBe("taken")
    }
  })

  test("is refused for whatever the engine's decoder does not know", () => {
    const cases: readonly (readonly [Packable, string])[] = [
      [{}, "fields"],
      [[1], "map"],
      [{ "a b": { data: small, field: batched } }, "name"],
      [{ a: { data: small } }, "{data, field}"],
      [{ a: { data: small, field: batched, more: 1 } }, "{data, field}"],
      [
        new Map<Packable, Packable>([
          [
            "a",
            new Map<Packable, Packable>([
              ["data", small],
              ["date", batched],
            ]),
          ],
        ]),
        "{data, field}",
      ],
      [field(null), "array"],
      [field("text"), "array"],
      [field(["uint8", [2]]), "[type, shape, bytes]"],
      [field(["object", [1], extension(3, new Uint8Array(8))]), "type"],
      [field(["uint8", [3], extension(3, new Uint8Array(2))]), "as many"],
      [field(["uint8", [-1], extension(3, new Uint8Array(1))]), "negative"],
      [field(["uint8", [2 ** 31, 2 ** 31], extension(3, new Uint8Array(1))]), "as many"],
      // A frame beside the message, which there is none of; pickled code; plain binary data.
      [field(["uint8", [2], 1]), "bytes"],
      [field(["uint8", [2], extension(2, new Uint8Array(2))]), "raw bytes"],
      [field(["uint8", [2], new Uint8Array(2)]), "raw bytes"],
      [field(extension(1, new Uint8Array(4))), "array"],
      [field(small, ["ragged", { keep_on_cpu: true }]), "kind"],
      [field(small, ["batched", {}]), "arguments"],
      [field(small, ["batched", { keep_on_cpu: 1 }]), "boolean"],
      [field(small, ["shared", { keep_on_cpu: true, batch_size: 1, dim: 0 }]), "arguments"],
      [field(small, ["flat", { keep_on_cpu: true, slices: [[0, "x", null]], dim: 0 }]), "integer"],
    ]
    for (const [value, words] of cases) expect(taken(value)).toContain(words)
  })

  test("is refused when it is cut, or followed by more, at every byte", () => {
    for (let end = 0; end < item.length; end++) expect(readMediaItem(item.subarray(0, end)).ok).toBe(false)
    const longer = new Uint8Array(item.length + 1)
    longer.set(item)
    expect(readMediaItem(longer)).toEqual({ ok: false, error: "something follows the item" })
  })
})

const captured = join(repository, "../shared/engine/captures/decoder_acceptance.txt")
const testCaptured = existsSync(captured) ? test : test.skip
testCaptured("the fields that vLLM itself packed are taken, and sent as it packed them", () => {
  const line = readFileSync(captured, "utf8")
    .split("\n")
    .find((each) => each.startsWith("ENC  mm "))!
  const message = Buffer.from(line.split(" ").at(-1)!, "hex")
  const start = message.indexOf(Buffer.from(pack("image_grid_thw")))
  const behind = message.indexOf(Buffer.from(pack("modality")))
  const fields = message.subarray(start, behind)
  // Two of its three fields have their tensors inline; a map of those.
  const read = readMediaItem(Uint8Array.from([0x82, ...fields]))
  expect(read.ok && [...read.value.keys()]).toEqual(["image_grid_thw", "shared"])
  const features = featuresOf({
    mm_hashes: { image: ["h"] },
    mm_placeholders: { image: [{ offset: 1, length: 2 }] },
    kwargs_data: { image: [base64(Uint8Array.from([0x82, ...fields]))] },
  })
  const items = readFeatures(features, rules)
  if (!items.ok) throw new Error(items.error)
  const body = Buffer.from(new AddEncoder(limits).encode(addRequest({ mediaFeatures: items.value })))
  expect(body.includes(fields)).toBe(true)
  // From behind the data to the end of the first item, but for its name: vLLM's bytes.
  const about = message.subarray(behind, message.indexOf(Buffer.from(pack("data")), behind) - 1)
  const ours = Buffer.from(about.toString("latin1").replace("\xa2id", "\xa1h"), "latin1")
  expect(body.includes(ours)).toBe(true)
})
