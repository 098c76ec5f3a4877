/** Small tokenizer.json contents, built here: the two kinds that most models have, with a few merges each. */
import { spellBytes } from "../../src/tokenizer/byte-level"

/** A pair of neighbours and what they become, in order of rank. */
type Merge = readonly [string, string]

function addedToken(id: number, content: string, special: boolean): object {
  return { id, content, special, single_word: false, lstrip: false, rstrip: false, normalized: false }
}

function withMerges(vocabulary: Map<string, number>, merges: readonly Merge[]): void {
  for (const [left, right] of merges) vocabulary.set(left + right, vocabulary.size)
}

/** GPT-2's kind: bytes spelled as characters, BPE over them. `<|im_end|>` is special, `<think>` only added. */
export function byteLevelTokenizer(): { json: object; special: [string, number]; added: [string, number] } {
  const vocabulary = new Map<string, number>()
  for (let byte = 0; byte < 256; byte++) vocabulary.set(spellBytes(Uint8Array.of(byte)), byte)
  const merges: Merge[] = [
    ["t", "h"],
    ["th", "e"],
    ["Ġ", "the"],
    ["l", "l"],
    ["Ã", "¼"],
    ["Ġ", "Ġ"],
    ["a", "a"],
    ["aa", "aa"],
    ["ð", "Ł"],
  ]
  withMerges(vocabulary, merges)
  const size = vocabulary.size
  return {
    json: {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: [
        addedToken(size, "<|im_end|>", true),
        addedToken(size + 1, "<think>", false),
        addedToken(size + 2, "</think>", false),
      ],
      normalizer: null,
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
      post_processor: null,
      decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
      model: {
        type: "BPE",
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        vocab: Object.fromEntries(vocabulary),
        merges: merges.map((merge) => merge.join(" ")),
      },
    },
    special: ["<|im_end|>", size],
    added: ["<think>", size + 1],
  }
}

/** SentencePiece's kind: `▁` for blanks, characters with bytes behind them. `</s>` is special, `<think>` only added. */
export function sentencePieceTokenizer(): { json: object; special: [string, number]; added: [string, number] } {
  const vocabulary = new Map<string, number>([
    ["<unk>", 0],
    ["<s>", 1],
    ["</s>", 2],
  ])
  for (let byte = 0; byte < 256; byte++) {
    vocabulary.set(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, vocabulary.size)
  }
  for (const char of "▁abcdefghijklmnopqrstuvwxyzHZ,.!ü漢") vocabulary.set(char, vocabulary.size)
  const merges: Merge[] = [
    ["t", "h"],
    ["th", "e"],
    ["▁", "the"],
    ["l", "l"],
    ["▁", "▁"],
    ["a", "a"],
  ]
  withMerges(vocabulary, merges)
  const size = vocabulary.size
  return {
    json: {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: [
        addedToken(0, "<unk>", true),
        addedToken(1, "<s>", true),
        addedToken(2, "</s>", true),
        addedToken(size, "<think>", false),
      ],
      normalizer: null,
      pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: false },
      post_processor: null,
      decoder: {
        type: "Sequence",
        decoders: [
          { type: "Replace", pattern: { String: "▁" }, content: " " },
          { type: "ByteFallback" },
          { type: "Fuse" },
          { type: "Strip", content: " ", start: 1, stop: 0 },
        ],
      },
      model: {
        type: "BPE",
        dropout: null,
        unk_token: "<unk>",
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: true,
        byte_fallback: true,
        vocab: Object.fromEntries(vocabulary),
        merges: merges.map((merge) => merge.join(" ")),
      },
    },
    special: ["</s>", 2],
    added: ["<think>", size],
  }
}
