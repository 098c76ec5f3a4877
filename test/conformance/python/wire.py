"""Raw requests over the standard library, and strict validation of what comes back by the client's own models.

The client builds its objects without validating them, so a wrong field would pass unseen: here every object and event
is validated again from the bytes on the wire, in pydantic's strict mode, and fields that the models lack are counted.
"""

import json
import typing
import urllib.request

from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter, ValidationError

from casebook import Fault, check, equal

# Fields that vLLM's API has beyond OpenAI's, by the model they stand on. Anything else that the models lack is a fault.
EXTENSIONS = {
    "ChatCompletion": {
        "prompt_logprobs", "prompt_token_ids", "prompt_text", "kv_transfer_params", "ec_transfer_params", "metrics",
    },
    "ChatCompletionMessage": {"reasoning"},
    "ChatCompletionChunk": {
        "prompt_token_ids", "prompt_text", "prompt_logprobs", "kv_transfer_params", "ec_transfer_params", "metrics",
    },
    "ChoiceDelta": {"reasoning"},
    # The classes of the choices are all named Choice, in three modules.
    "Choice": {"stop_reason", "token_ids", "routed_experts", "weight_versions"},
    "Completion": {"service_tier", "kv_transfer_params", "ec_transfer_params", "metrics"},
    "CompletionChoice": {
        "stop_reason", "token_ids", "prompt_token_ids", "prompt_logprobs", "routed_experts", "weight_versions",
        "prompt_text",
    },
    "PromptTokensDetails": {"created_cache_tokens", "multimodal_tokens"},
    "Response": {
        "presence_penalty", "frequency_penalty", "kv_transfer_params", "ec_transfer_params", "input_messages",
        "output_messages", "metrics",
    },
    "ResponseFunctionCallArgumentsDoneEvent": {"name"},
    "OutputTokensDetails": {"tool_output_tokens"},
}

# Values of the contract that the client's types do not know, as (last parts of the place, value).
CHUNK_OF_COMPLETION = (("finish_reason",), None)
ABORTED = (("finish_reason",), "abort")
REPEATED = (("finish_reason",), "repetition")
# An echoed prompt's first token has no probability.
FIRST_TOKEN = ((("token_logprobs", 0), None), (("top_logprobs", 0), None))

# Event name -> model. The union itself would try them all and drown the one error that matters.
EVENTS = {
    typing.get_args(member.model_fields["type"].annotation)[0]: member
    for member in typing.get_args(typing.get_args(ResponseStreamEvent)[0])
}


def validate(model, raw, beyond=()):
    """The model's instance, validated strictly from JSON text. `beyond` lists errors that must occur and are allowed."""
    try:
        found = TypeAdapter(model).validate_json(raw, strict=True)
        check(not beyond, f"{model.__name__} was expected to refuse {beyond}")
    except ValidationError as error:
        errors = [(e["loc"], e["type"], e["input"]) for e in error.errors(include_url=False)]
        unknown = [
            e for e in errors
            if not any(e[0][-len(place):] == place and e[2] == value for place, value in beyond)
        ]
        if unknown:
            raise Fault(f"{model.__name__}: {unknown[:5]!r} in {raw[:400]}") from None
        # The client itself does not validate: this is what its users see.
        found = model.construct(**json.loads(raw))
    no_unknown_fields(found)
    return found


def no_unknown_fields(value):
    """Every field that the models lack must be one of EXTENSIONS."""
    if isinstance(value, BaseModel):
        known = EXTENSIONS.get(type(value).__name__, set())
        surplus = sorted(set(value.model_extra or {}) - known)
        check(not surplus, f"{type(value).__name__} has fields that nobody documents: {surplus}")
        for name in type(value).model_fields:
            no_unknown_fields(getattr(value, name, None))
    elif isinstance(value, list):
        for item in value:
            no_unknown_fields(item)
    elif isinstance(value, dict):
        for item in value.values():
            no_unknown_fields(item)


class Wire:
    """POSTs JSON to one server."""

    def __init__(self, base_url, model):
        self.base_url = base_url
        self.model = model

    def post(self, path, body):
        request = urllib.request.Request(
            self.base_url + path,
            data=json.dumps({"model": self.model, **body}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def chat(self, body, beyond=()):
        return validate(ChatCompletion, self.post("/chat/completions", body), beyond)

    def completion(self, body, beyond=()):
        return validate(Completion, self.post("/completions", body), beyond)

    def response(self, body):
        return validate(Response, self.post("/responses", body))

    def chat_chunks(self, body, beyond_last=()):
        return self._chunks("/chat/completions", ChatCompletionChunk, body, (), beyond_last)

    def completion_chunks(self, body, beyond_last=()):
        return self._chunks("/completions", Completion, body, (CHUNK_OF_COMPLETION,), beyond_last)

    def _chunks(self, path, model, body, beyond, beyond_last):
        frames = self.post(path, {**body, "stream": True}).split("\n\n")
        equal(frames[-2:], ["data: [DONE]", ""], "end of the stream")
        chunks = []
        for frame in frames[:-2]:
            check(frame.startswith("data: {"), f"not a frame: {frame!r}")
            finishes = [choice["finish_reason"] for choice in json.loads(frame[6:])["choices"]]
            allowed = beyond_last if any(finishes) else beyond if finishes else ()
            chunks.append(validate(model, frame[6:], allowed))
        equal(len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}), 1, "identities of the chunks")
        return chunks

    def events(self, body):
        """All events of a streamed response, each one validated by the model of its own type."""
        frames = self.post("/responses", {**body, "stream": True}).split("\n\n")
        equal(frames[-1], "", "end of the stream")
        events = []
        for at, frame in enumerate(frames[:-1]):
            lines = frame.split("\n")
            equal(len(lines), 2, f"lines of {frame!r}")
            check(lines[0].startswith("event: ") and lines[1].startswith("data: {"), f"not a frame: {frame!r}")
            name = lines[0][len("event: "):]
            check(name in EVENTS, f"the client knows no event {name}")
            event = validate(EVENTS[name], lines[1][len("data: "):])
            equal(event.type, name, "type beside the event line")
            equal(event.sequence_number, at, "sequence number")
            events.append(event)
        return events
