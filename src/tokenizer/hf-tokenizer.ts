import { Tokenizer as PackageTokenizer } from "@huggingface/tokenizers"
import { Piece } from "../ir/piece"
import { err, ok, type Result } from "../result"
import { ByteDetokenizer, decodeBytes, type TokenBytes } from "./byte-detokenizer"
import { bytesOfSpelling } from "./byte-level"
import type { Detokenizer } from "./detokenizer"
import type { EncodeFailure, EncodeOptions, Tokenizer, TokenizerFailure } from "./tokenizer"
import { WindowDetokenizer } from "./window-detokenizer"

const noBytes = new Uint8Array(0)
const utf8 = new TextEncoder()
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The parts of a tokenizer.json that this file looks at. */
interface TokenizerJson {
  readonly decoder?: { readonly type?: string; readonly decoders?: readonly { readonly type?: string }[] } | null
  readonly added_tokens?: readonly { readonly id: number; readonly content: string; readonly special?: boolean }[]
}

/**
 * Opens a parsed tokenizer.json through npm `@huggingface/tokenizers`. Covers every model kind the package knows; it
 * stays as the fallback plug beside the WASM tokenizer. Does not throw.
 */
export function openHfTokenizer(tokenizerJson: unknown, tokenizerConfig: unknown): Result<Tokenizer, TokenizerFailure> {
  if (typeof tokenizerJson !== "object" || tokenizerJson === null) {
    return err({ kind: "tokenizer_unusable", message: "tokenizer.json is not a JSON object" })
  }
  const config = typeof tokenizerConfig === "object" && tokenizerConfig !== null ? tokenizerConfig : {}
  try {
    return ok(new HfTokenizer(new PackageTokenizer(tokenizerJson, config), tokenizerJson))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return err({ kind: "tokenizer_unusable", message: `tokenizer.json cannot be used: ${reason}` })
  }
}

/** One tokenizer.json; byte-level decoders stream through their bytes, all others through a window. */
class HfTokenizer implements Tokenizer, TokenBytes {
  readonly vocabSize: number
  readonly tokenBytesMax: number
  private readonly inner: PackageTokenizer
  private readonly byteLevel: boolean
  private readonly addedTexts = new Map<number, string>()
  private readonly specialIds = new Set<number>()
  private readonly texts: (string | null | undefined)[]

  constructor(inner: PackageTokenizer, json: TokenizerJson) {
    this.inner = inner
    for (const token of json.added_tokens ?? []) {
      this.addedTexts.set(token.id, token.content)
      if (token.special === true) this.specialIds.add(token.id)
    }
    let idMax = -1
    let bytesMax = 1
    for (const [token, id] of inner.get_vocab(true)) {
      if (id > idMax) idMax = id
      // A character of a vocabulary spelling is at least one byte of text, at most four.
      const bytes = utf8.encode(token).length
      if (bytes > bytesMax) bytesMax = bytes
    }
    this.vocabSize = idMax + 1
    this.tokenBytesMax = bytesMax
    this.byteLevel = isByteLevel(json)
    this.texts = new Array<string | null | undefined>(this.vocabSize)
  }

  encode(text: string, options: EncodeOptions): Result<Uint32Array, EncodeFailure> {
    try {
      const { ids } = this.inner.encode(text.toWellFormed(), { add_special_tokens: options.addSpecialTokens })
      return ok(Uint32Array.from(ids))
    } catch (cause) {
      return err({ kind: "encode_failed", message: `the text cannot be tokenized: ${String(cause)}` })
    }
  }

  decode(tokenIds: Uint32Array, skipSpecialTokens: boolean): string {
    if (this.byteLevel) return decodeBytes(this, tokenIds, skipSpecialTokens, new Piece())
    return this.decodeIds(Array.from(tokenIds).filter((id) => !this.skips(id, skipSpecialTokens)))
  }

  tokenToId(token: string): number {
    return this.inner.token_to_id(token) ?? -1
  }

  idToToken(id: number): string | null {
    return this.inner.id_to_token(id) ?? null
  }

  isSpecial(id: number): boolean {
    return this.specialIds.has(id)
  }

  detokenizer(promptTokenIds: Uint32Array, skipSpecialTokens: boolean): Detokenizer {
    if (this.byteLevel) return new ByteDetokenizer(this, skipSpecialTokens)
    return new WindowDetokenizer(
      promptTokenIds,
      (ids) => this.decodeIds(ids),
      (id) => this.skips(id, skipSpecialTokens),
    )
  }

  /** Hot (bench/fold.ts): one array read once the token has been seen. */
  text(id: number): string | null {
    if (id >= this.vocabSize) return ""
    const known = this.texts[id]
    if (known !== undefined) return known
    const text = decodeStrictly(this.bytes(id))
    this.texts[id] = text
    return text
  }

  bytes(id: number): Uint8Array {
    const added = this.addedTexts.get(id)
    if (added !== undefined) return utf8.encode(added)
    const spelling = this.inner.id_to_token(id)
    if (spelling === undefined) return noBytes
    // A spelling that is no byte-level text stands for itself (HF's ByteLevel decoder).
    return bytesOfSpelling(spelling) ?? utf8.encode(spelling)
  }

  private skips(id: number, skipSpecial: boolean): boolean {
    return id >= this.vocabSize || (skipSpecial && this.specialIds.has(id)) || this.inner.id_to_token(id) === undefined
  }

  private decodeIds(ids: readonly number[]): string {
    if (ids.length === 0) return ""
    return this.inner.decode([...ids], { skip_special_tokens: false, clean_up_tokenization_spaces: false })
  }
}

function decodeStrictly(bytes: Uint8Array): string | null {
  try {
    return strict.decode(bytes)
  } catch {
    return null
  }
}

function isByteLevel(json: TokenizerJson): boolean {
  const decoder = json.decoder
  if (decoder === null || decoder === undefined) return false
  if (decoder.type === "ByteLevel") return true
  const inner = decoder.decoders ?? []
  return decoder.type === "Sequence" && inner.length > 0 && inner.every((each) => each.type === "ByteLevel")
}
