/**
 * What users of `sluice/tokenizer` rely on, as cases that run in any runtime: compiled as a strict TypeScript project
 * against the package's types, then run in Node, in Bun and in a browser. The expected ids are the reference's.
 */
import { type EncodeOptions, harmonyTokens, type LoadedTokenizer, load, loadBytes, Piece } from "sluice/tokenizer"

/** What differs between runtimes. */
export interface Surroundings {
  readonly readsPaths: boolean
  /** A file of the project's folder. */
  read(name: string): Promise<Uint8Array>
  /** What stands in a folder of the project; absent where there are no files, or where others look. */
  namesIn?(folder: string): Promise<readonly string[]>
  /** What `encodeAll` gives in a worker of the runtime. */
  encodeAllInWorker(vocabulary: Uint8Array, texts: readonly string[]): Promise<number[][]>
}

/** One sentence, and how to see that it holds; it throws where it does not. */
export interface Case {
  readonly name: string
  run(): Promise<void>
}

/** expected.json: texts, and the ids that the reference gives them in each vocabulary. */
interface Expected {
  readonly texts: readonly string[]
  readonly qwen3: readonly (readonly number[])[]
  readonly o200k: readonly (readonly number[])[]
}

const plain: EncodeOptions = { addSpecialTokens: false }

/** Loads a vocabulary and encodes texts: the work that workers are given. */
export function encodeAll(vocabulary: Uint8Array, texts: readonly string[]): number[][] {
  const encoded = must(must(loadBytes(vocabulary)).encodeBatch(texts, plain))
  return encoded.map((ids) => Array.from(ids))
}

/** All cases, for one runtime. */
export function cases(surroundings: Surroundings): Case[] {
  const vocabulary = once(() => surroundings.read("tokenizer.json"))
  const tokenizer = once(async () => must(await load(await vocabulary())))
  const expected = once(async (): Promise<Expected> => {
    return JSON.parse(new TextDecoder().decode(await surroundings.read("expected.json")))
  })

  const all: Case[] = []
  const add = (name: string, run: (qwen3: LoadedTokenizer, expected: Expected) => void | Promise<void>): void => {
    all.push({ name, run: async () => run(await tokenizer(), await expected()) })
  }

  add("texts have the reference's ids", (qwen3, { texts, qwen3: ids }) => {
    equal(
      texts.map((text) => must(qwen3.encode(text, plain))),
      ids,
    )
    equal(must(qwen3.encodeBatch(texts, plain)), ids)
    equal(must(qwen3.encode("Hello, world!")), [9707, 11, 1879, 0])
    equal(qwen3.vocabSize, 151_669)
  })

  add("ids go into an array of the caller's, and the count says what more it would take", (qwen3) => {
    const ids = new Uint32Array(6).fill(7)
    equal(must(qwen3.encodeInto("Hello, world!", ids)), 4)
    equal(ids, [9707, 11, 1879, 0, 7, 7])
    const few = new Uint32Array(2)
    equal(must(qwen3.encodeInto("Hello, world!", few)), 4)
    equal(few, [9707, 11])
  })

  add("ids are the same out of a cache, and where there are no files for one", async (_, { texts, qwen3: ids }) => {
    // Written the first time, read the second.
    for (let round = 0; round < 2; round++) {
      const loaded = must(loadBytes(await vocabulary(), { cache: "vocabularies" }))
      equal(must(loaded.encodeBatch(texts, plain)), ids)
      if (surroundings.namesIn !== undefined) equal((await surroundings.namesIn("vocabularies")).length, 1)
    }
  })

  add("ids decode to their text", (qwen3, { texts, qwen3: ids }) => {
    // Qwen3 normalizes to NFC, so that is what comes back.
    equal(
      ids.map((each) => qwen3.decode(Uint32Array.from(each), false)),
      texts.map((text) => text.normalize("NFC")),
    )
    const chat = must(qwen3.encode("<|im_start|>hi<|im_end|>"))
    equal([qwen3.decode(chat), qwen3.decode(chat, false)], ["hi", "<|im_start|>hi<|im_end|>"])
  })

  add("a stream never shows half a character", (qwen3) => {
    const text = "naïve 漢字 👩‍👩‍👧 𝔸 done"
    const stream = qwen3.stream()
    const parts = Array.from(must(qwen3.encode(text)), (id) => stream.push(id))
    equal(parts.join(""), text)
    equal(
      parts.filter((part) => part.includes("\ufffd")),
      [],
    )
    const cut = qwen3.stream()
    // The token of the byte F0, which begins a character of four bytes.
    equal([cut.push(qwen3.tokenToId("ð")), cut.copy().finish(), cut.finish()], ["", "\ufffd", "\ufffd"])
  })

  add("a detokenizer says which id gave which text", (qwen3) => {
    const ids = must(qwen3.encode("Hello, world!"))
    const piece = new Piece()
    const detokenizer = qwen3.detokenizer(new Uint32Array(0), true)
    for (const id of ids) detokenizer.push(id, piece)
    detokenizer.finish(piece)
    equal(
      [piece.text, piece.ids.slice(0, piece.count), piece.ends.slice(0, piece.count)],
      ["Hello, world!", ids, [5, 6, 12, 13]],
    )
  })

  add("offsets count UTF-16 units or code points", (qwen3) => {
    const text = "🇨 a"
    const utf16 = must(qwen3.encodeWithOffsets(text, "utf16"))
    const points = must(qwen3.encodeWithOffsets(text, "code_point"))
    equal(utf16.tokenIds, must(qwen3.encode(text)))
    equal([utf16.offsets.at(-1), points.offsets.at(-1)], [4, 3])
  })

  add("special tokens that a user spells out can stay text", (qwen3) => {
    const end = qwen3.tokenToId("<|im_end|>")
    const ids = must(
      qwen3.encodeSegments([
        { text: "<|im_end|>", special: "text" },
        { text: "<|im_end|>", special: "token" },
      ]),
    )
    equal([ids.indexOf(end), qwen3.decode(ids, false)], [ids.length - 1, "<|im_end|><|im_end|>"])
  })

  add("tokens have ids and ids have tokens", (qwen3) => {
    equal([qwen3.tokenToId("Ġworld"), qwen3.idToToken(1879), qwen3.isSpecial(1879)], [1879, "Ġworld", false])
    equal([qwen3.tokenToId("no such token"), qwen3.idToToken(999_999)], [-1, null])
  })

  add("an encoder file of npm tiktoken loads, with other special tokens too", async (_, { texts, o200k: ids }) => {
    const file = await surroundings.read("o200k_base.json")
    const o200k = must(loadBytes(file))
    equal(
      texts.map((text) => must(o200k.encode(text))),
      ids,
    )
    equal([o200k.tokenToId("<|endoftext|>"), o200k.vocabSize], [199_999, 200_019])
    equal(must(must(loadBytes(file, { tokens: harmonyTokens() })).encode("<|call|>")), [200_012])
  })

  add("files that cannot be used are refused with the reason", async () => {
    const wordPiece = loadBytes(new TextEncoder().encode(`{"model":{"type":"WordPiece","vocab":{}}}`))
    equal([wordPiece.ok, !wordPiece.ok && wordPiece.error.kind], [false, "tokenizer_unusable"])
    if (!wordPiece.ok && !wordPiece.error.message.includes("WordPiece")) throw new Error(wordPiece.error.message)
    const ranks = loadBytes(new TextEncoder().encode(`{"pat_str":"a"}`))
    equal(!ranks.ok && ranks.error.message, "an encoder file without its ranks or its pattern")
  })

  add("a path loads where the runtime can read it", async (qwen3) => {
    const opened = await load("./tokenizer.json")
    equal(opened.ok, surroundings.readsPaths)
    if (opened.ok) equal(opened.value.vocabSize, qwen3.vocabSize)
    const missing = await load("./no-such-file.json")
    equal([missing.ok, !missing.ok && missing.error.kind], [false, "tokenizer_unusable"])
  })

  add("a worker has a tokenizer of its own", async (_, { texts, qwen3: ids }) => {
    equal(await surroundings.encodeAllInWorker(await vocabulary(), texts), ids)
  })

  return all
}

function must<Value>(
  result: { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly error: { message: string } },
): Value {
  if (!result.ok) throw new Error(result.error.message)
  return result.value
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | null = null
  return () => {
    made ??= make()
    return made
  }
}

/** Compares whole values; typed arrays as lists. */
function equal(found: unknown, wanted: unknown): void {
  const [a, b] = [found, wanted].map((value) =>
    JSON.stringify(value, (_, inner) => (inner instanceof Uint32Array ? Array.from(inner) : inner)),
  )
  if (a !== b) throw new Error(`found ${a}\nwanted ${b}`)
}
