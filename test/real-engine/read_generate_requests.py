"""Reads GenerateRequests, a JSON list on stdin, as vLLM's server does, and prints what it made of each: its error, or
its fields. Sampling parameters are those that a request names."""

import json
import sys

from vllm.entrypoints.scale_out.token_in_token_out.protocol import GenerateRequest


def plain(value):
    """Structured outputs are a dataclass, of which what is set counts."""
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        return value
    named = {name: getattr(value, name) for name in fields if not name.startswith("_")}
    return {name: each for name, each in named.items() if each not in (None, False)}


def read(body):
    try:
        request = GenerateRequest.model_validate(body)
    except ValueError as error:
        return {"error": str(error)}
    params = {name: plain(getattr(request.sampling_params, name)) for name in body["sampling_params"]}
    if "output_kind" in params:
        params["output_kind"] = params["output_kind"].value
    fields = ["request_id", "token_ids", "stream", "cache_salt", "priority", "kv_transfer_params", "ec_transfer_params"]
    return {**{name: getattr(request, name) for name in fields}, "sampling_params": params}


print("\n" + json.dumps([read(body) for body in json.load(sys.stdin)]))
