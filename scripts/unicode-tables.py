"""Writes src/tokenizer/unicode-ranges.ts: Unicode classes as the reference engines see them.

    python3 -m venv test/vocab/.venv && test/vocab/.venv/bin/pip install -r test/vocab/requirements.txt
    test/vocab/.venv/bin/python scripts/unicode-tables.py [--check]

Each class is asked for every code point (surrogates apart): HF tokenizers through a pre-tokenizer that removes what
the class matches, tiktoken through an encoding that drops what it does not match. JavaScript's own classes follow
another Unicode version, so they are no substitute. `--check` compares instead of writing.
"""

import sys
from pathlib import Path

import tiktoken
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

TARGET = Path(__file__).resolve().parent.parent / "src/tokenizer/unicode-ranges.ts"
POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
TEXT = "".join(map(chr, POINTS))

# Name, class, what the docstring says.
CLASSES = [
    ("letters", r"\p{L}", "Letters."),
    ("upperCaseLetters", r"\p{Lu}", "Upper-case letters."),
    ("lowerCaseLetters", r"\p{Ll}", "Lower-case letters."),
    ("titleCaseLetters", r"\p{Lt}", "Title-case digraphs."),
    ("modifierLetters", r"\p{Lm}", "Modifier letters."),
    ("otherLetters", r"\p{Lo}", "Letters without case."),
    ("marks", r"\p{M}", "Combining marks."),
    ("numbers", r"\p{N}", "Numbers of all kinds."),
    ("decimalDigits", r"\p{Nd}", "Decimal digits, which is also `\\d`."),
    ("punctuation", r"\p{P}", "Punctuation."),
    ("symbols", r"\p{S}", "Symbols."),
    ("separators", r"\p{Z}", "Separators."),
    ("others", r"\p{C}", "Controls, formats, private and unassigned code points."),
    ("whiteSpace", r"\s", "White space; `\\S` is everything else."),
    ("han", r"\p{Han}", "The Han script."),
    ("hiragana", r"\p{Hiragana}", "The Hiragana script."),
    ("katakana", r"\p{Katakana}", "The Katakana script."),
    ("hangul", r"\p{Hangul}", "The Hangul script."),
]


def removed_by(pre_tokenizer, text=TEXT):
    kept = bytearray(len(text))
    for _, (start, end) in pre_tokenizer.pre_tokenize_str(text):
        kept[start:end] = b"\1" * (end - start)
    return {ord(char) for char, keep in zip(text, kept) if not keep}


def by_tokenizers(pattern, text=TEXT):
    return removed_by(pre_tokenizers.Split(Regex(pattern), "removed"), text)


def by_tiktoken(pattern, text=TEXT):
    bytes_only = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=bytes_only, special_tokens={})
    return set(map(ord, bytes(encoding.encode_ordinary(text)).decode()))


def split_off_by(pre_tokenizer):
    """Code points that the pre-tokenizer cuts off from a letter before them."""
    text = "".join("x" + chr(point) for point in POINTS)
    pieces = pre_tokenizer.pre_tokenize_str(text)
    return {POINTS[start // 2] for _, (start, end) in pieces if start % 2 == 1 and end == start + 1}


def decomposing(normalizer):
    return {point for point in POINTS if normalizer.normalize_str(chr(point)) != chr(point)}


def non_starters():
    """Marks that change places with U+0345, whose combining class is the highest there is."""
    nfd = normalizers.NFD()
    moved = {p for p in POINTS if nfd.normalize_str("\u0345" + chr(p)) != "\u0345" + nfd.normalize_str(chr(p))}
    return moved | {0x345}


def composing_seconds():
    """Code points that may merge into the one before them: NFC puts them there, so they end some decomposition."""
    nfd, nfc = normalizers.NFD(), normalizers.NFC()
    seconds = set()
    for point in decomposing(nfd):
        parts = nfd.normalize_str(chr(point))
        whole = nfc.normalize_str(parts)
        if len(whole) == 1 and len(parts) > 1:
            seconds.add(ord(parts[-1]))
    return seconds


def ranges(points):
    found = []
    for point in sorted(points):
        # Surrogates are no code points of a text, so a range may run over them.
        if found and (point == found[-1][1] + 1 or (found[-1][1] == 0xD7FF and point == 0xE000)):
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def hexadecimal(points):
    return [f"{start:x}" if start == end else f"{start:x}-{end:x}" for start, end in ranges(points)]


def declared(name, doc, points):
    words, lines, line = hexadecimal(points), [], ""
    for word in words:
        if len(line) + len(word) > 110:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    lines.append(line)
    body = "\n".join("  " + line for line in lines)
    return f"/** {doc} */\nexport const {name}: Uint32Array = rangesOf(`\n{body}\n`)\n"


def source():
    parts = [
        "// Made by scripts/unicode-tables.py; do not edit.\n"
        f"// tokenizers {tokenizers.__version__}, tiktoken {tiktoken.__version__}\n"
        "/**\n"
        " * Unicode classes as the reference tokenizers' regex engines see them, asked code point by code point. Both engines\n"
        " * agree on every class here unless a docstring says otherwise. JavaScript's `\\p{…}` follows another version.\n"
        " * Every export is flat pairs of code points, first and last of each range (both included), in rising order.\n"
        " */\n"
        "function rangesOf(text: string): Uint32Array {\n"
        "  const words = text.trim().split(/\\s+/)\n"
        "  const pairs = new Uint32Array(words.length * 2)\n"
        "  words.forEach((word, i) => {\n"
        '    const dash = word.indexOf("-")\n'
        "    pairs[2 * i] = Number.parseInt(word, 16)\n"
        "    pairs[2 * i + 1] = Number.parseInt(word.slice(dash + 1), 16)\n"
        "  })\n"
        "  return pairs\n"
        "}\n"
    ]
    for name, pattern, doc in CLASSES:
        points, same = by_tokenizers(pattern), by_tiktoken(pattern)
        if points != same:
            raise SystemExit(f"{pattern}: the engines differ on {len(points ^ same)} code points; keep both")
        parts.append(declared(name, f"{doc} `{pattern}`", points))
    parts.append(declared("wordCharacters", "Word characters of HF tokenizers' engine. `\\w`", by_tokenizers(r"\w")))
    parts.append(declared("wordCharactersTiktoken", "Word characters of tiktoken's engine. `\\w`", by_tiktoken(r"\w")))
    folded = "".join(map(chr, by_tokenizers("(?i:[a-z])") | by_tiktoken("(?i:[a-z])")))
    for letter in "abcdefghijklmnopqrstuvwxyz":
        points = by_tokenizers(f"(?i:{letter})", folded)
        if points != by_tiktoken(f"(?i:{letter})", folded):
            raise SystemExit(f"the engines fold {letter} differently; keep both")
        if len(points) > 2:
            doc = f"What `(?i:{letter})` matches; every other ASCII letter matches its two cases alone."
            parts.append(declared(f"caseless{letter.upper()}", doc, points))
    digits = split_off_by(pre_tokenizers.Digits(individual_digits=True))
    parts.append(declared("digitsSplitOff", "What the `Digits` pre-tokenizer counts as a digit.", digits))
    marks = removed_by(pre_tokenizers.Punctuation("removed"))
    parts.append(declared("punctuationSplitOff", "What the `Punctuation` pre-tokenizer counts as such.", marks))
    spaces = removed_by(pre_tokenizers.WhitespaceSplit())
    parts.append(declared("whiteSpaceSplitOff", "What `WhitespaceSplit` takes away.", spaces))
    nfd, nfkd = decomposing(normalizers.NFD()), decomposing(normalizers.NFKD())
    doc = "Code points that the `{}` normalizer takes apart or replaces."
    parts.append(declared("decomposedByNfd", doc.format("NFD"), nfd))
    parts.append(declared("decomposedByNfkd", doc.format("NFKD"), nfkd))
    parts.append(declared("nonStarters", "Marks that normalizers may move: combining class above 0.", non_starters()))
    doc = "Code points that NFC and NFKC may merge into the one before them."
    parts.append(declared("composedWithPrevious", doc, composing_seconds()))
    return "\n".join(parts)


text = source()
if "--check" in sys.argv:
    if TARGET.read_text(encoding="utf-8") != text:
        raise SystemExit(f"{TARGET.name} is not what the reference engines say today")
    print(f"{TARGET.name} is what the reference engines say")
else:
    TARGET.write_text(text, encoding="utf-8")
    print(f"{len(text)} characters")
