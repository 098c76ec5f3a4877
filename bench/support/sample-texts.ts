import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { seededRandom } from "../../test/support/random"

/** Kinds of text that the tokenizer benches run over. */
export type TextKind = "english" | "code" | "multilingual" | "chat"

const corpora = join(import.meta.dir, "../../../shared/corpora")
const files: { readonly [kind: string]: string } = { english: "en", code: "code", multilingual: "multi" }

/**
 * About `bytes` of UTF-8 of each kind: the corpora beside the repository where they are, else words drawn by a seed with
 * the frequencies of real text (few words make most of it). Chat wraps English and code in ChatML turns.
 */
export function sampleTexts(bytes: number): { readonly source: string; readonly texts: Map<TextKind, string> } {
  const real = existsSync(corpora)
  const texts = new Map<TextKind, string>()
  for (const [kind, file] of Object.entries(files)) {
    const text = real ? gunzipSync(readFileSync(join(corpora, `${file}.txt.gz`))).toString("utf8") : drawn(kind, bytes)
    texts.set(kind as TextKind, cut(text, bytes)) // The keys of `files` are kinds.
  }
  texts.set("chat", chat(texts.get("english")!, texts.get("code")!, bytes))
  return { source: real ? "corpora of real text" : "words drawn by a seed", texts }
}

/** Different stretches of a text, each of about so many bytes, that begin at line or word starts. */
export function stretches(text: string, bytes: number, countMax: number): string[] {
  const units = Math.max(1, Math.round(bytes * (text.length / Buffer.byteLength(text))))
  const found: string[] = []
  const step = Math.max(units, Math.floor(text.length / countMax))
  for (let at = 0; at + units <= text.length && found.length < countMax; at += step) {
    const start = text.indexOf(" ", at) + 1
    const stretch = text.slice(start, start + units).toWellFormed()
    if (stretch.length === units) found.push(stretch)
  }
  return found.length > 0 ? found : [text]
}

function cut(text: string, bytes: number): string {
  const all = new TextEncoder().encode(text)
  return new TextDecoder().decode(all.subarray(0, bytes)).replace(/\ufffd+$/, "")
}

function chat(english: string, code: string, bytes: number): string {
  let text = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
  for (let at = 0; text.length < bytes && at < english.length; at += 600) {
    text += `<|im_start|>user\n${english.slice(at, at + 200)}<|im_end|>\n`
    text += `<|im_start|>assistant\n${english.slice(at + 200, at + 600)}\n\`\`\`\n${code.slice(at, at + 300)}\n\`\`\`<|im_end|>\n`
  }
  return cut(text.toWellFormed(), bytes)
}

const alphabets: { readonly [kind: string]: readonly string[] } = {
  english: ["etaoinshrdlucmfwygpbvk"],
  code: ["abcdefxyz_", "ABCDEF", "(){}[];=.,", "0123456789"],
  multilingual: [
    "etaoinshr",
    "оеаинтсрвл",
    "的一是不了人我在有他",
    "かなたもしのにはを",
    "가나다라마바사",
    "ابتثجحخدذر",
    "अआइईउऊएकखग",
  ],
}

/** Words of one alphabet each, of which word number n is drawn about as often as 1/n. */
function drawn(kind: string, bytes: number): string {
  const random = seededRandom(kind.length)
  const pick = (letters: string): string => letters[Math.floor(random() * letters.length)]!
  const words = Array.from({ length: 15_000 }, () => {
    const letters = alphabets[kind]![Math.floor(random() * alphabets[kind]!.length)]!
    return Array.from({ length: 1 + Math.floor(random() * 9) }, () => pick(letters)).join("")
  })
  const parts: string[] = []
  for (let size = 0; size < bytes; ) {
    const word = words[Math.floor(words.length ** random()) - 1]!
    parts.push(word, random() < 0.1 ? ".\n" : " ")
    size += word.length + 1
  }
  return parts.join("")
}
