"""Python's msgspec for bench/frames.ts: reads a job, prints the rate of each case per second of CPU time as JSON.

The structs have the fields of vLLM's; arrays become numpy arrays over the message's own bytes, as vLLM's do.
"""

import json
import sys
import time
from typing import Any, Optional

import msgspec
import numpy


class Output(msgspec.Struct, array_like=True, gc=False):
    request_id: str
    new_token_ids: list[int]
    new_logprobs: Optional[tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, Optional[list[int]]]] = None
    new_prompt_logprobs_tensors: Any = None
    pooling_output: Any = None
    finish_reason: Optional[int] = None
    stop_reason: int | str | None = None
    events: Optional[list[Any]] = None
    kv_transfer_params: Optional[dict[str, Any]] = None
    ec_transfer_params: Optional[dict[str, Any]] = None
    trace_headers: Optional[dict[str, str]] = None
    prefill_stats: Optional[dict[str, int]] = None
    routed_experts: Any = None
    num_nans_in_logits: int = 0
    mm_cache_miss_hashes: Optional[list[str]] = None
    new_sampling_mask: Any = None
    spec_decode_metrics: Any = None
    prompt_token_id_logprobs: Any = None


class Outputs(msgspec.Struct, array_like=True, gc=False):
    engine_index: int = 0
    outputs: list[Output] = []
    scheduler_stats: Optional[dict[str, Any]] = None
    timestamp: float = 0.0
    utility_output: Any = None
    finished_requests: Optional[set[str]] = None
    wave_complete: Optional[int] = None
    start_wave: Optional[int] = None
    weight_version: Optional[str] = None


class Request(msgspec.Struct, array_like=True, gc=False):
    request_id: str
    prompt_token_ids: list[int]
    mm_features: Any
    sampling_params: dict[str, Any]
    pooling_params: Any
    arrival_time: float
    lora_request: Any
    cache_salt: Optional[str]
    data_parallel_rank: Optional[int]


def array_of(kind, value):
    dtype, shape, data = value
    return numpy.frombuffer(data, dtype=dtype).reshape(shape)


def rate(run, units, job):
    best, rounds = 0, 1
    for _ in range(job["repeats"]):
        while True:
            started = time.process_time()
            for _ in range(rounds):
                run()
            spent = time.process_time() - started
            if spent >= job["seconds"]:
                best = max(best, units * rounds / spent)
                break
            rounds *= 2
    return best


def decoding(case):
    decoder = msgspec.msgpack.Decoder(Outputs, dec_hook=array_of, ext_hook=lambda code, data: data)
    frame = open(case["file"], "rb").read()
    outputs = decoder.decode(frame).outputs
    assert len(outputs) == case["units"]
    return lambda: decoder.decode(frame)


def encoding(case):
    encoder = msgspec.msgpack.Encoder()
    sampling = {"temperature": 0.7, "max_tokens": 256, "_eos_token_id": 2, "_all_stop_token_ids": [2]}
    request = Request("chatcmpl-0", case["promptIds"], None, sampling, None, time.time(), None, None, None)
    return lambda: encoder.encode(request)


def main():
    job = json.load(open(sys.argv[1], encoding="utf-8"))
    rates = {}
    for case in job["cases"]:
        run = decoding(case) if "file" in case else encoding(case)
        rates[case["title"]] = rate(run, case["units"], job)
    print(json.dumps(rates))


main()
