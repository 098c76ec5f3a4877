"""What mistral-common says: one JSON question a line on standard input, one JSON answer a line on standard output.

{"ask": "version"}                                -> the package's version
{"ask": "vocabulary", "size": 2000}               -> pattern and the first tokens (base64) of its tekken_240911.json
{"ask": "files"}                                  -> folder of the vocabularies that it ships
{"ask": "render", "file": "tekken….json", "body"} -> ids of a chat completion's prompt, or {"refused": why}

How a request's body becomes a request of mistral-common follows vLLM 0.33.0 (`tokenizers/mistral.py`) and the
transformers class between the two (`tokenization_mistral_common.py`, 5.24.0): ids of calls are cut to their last nine
characters, an effort is passed on from v15, and a last message of the assistant must be meant to be continued.
"""

import json
import logging
import sys
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import mistral_common
import numpy
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

logging.disable(logging.INFO)
warnings.simplefilter("ignore")

DATA = Path(mistral_common.__file__).parent / "data"


@cache
def opened(file):
    tokenizer = MistralTokenizer.from_file(file, mode=ValidationMode.test)
    # One token for each image: as many as its size asks for are put there later, by whoever has the image.
    place = tokenizer.instruct_tokenizer.tokenizer.get_special_token("[IMG]")
    tokenizer.instruct_tokenizer.image_encoder = lambda _: SimpleNamespace(tokens=[place], image=numpy.zeros(1))
    return tokenizer


def short(id):
    return id[-9:] if len(id) > 9 else id


def turn(message):
    made = dict(message)
    if made["role"] == "assistant":
        calls = made.get("tool_calls") or []
        made["tool_calls"] = [{**call, "id": short(call["id"])} for call in calls]
    elif made["role"] == "tool" and "tool_call_id" in made:
        made["tool_call_id"] = short(made["tool_call_id"])
    return made


def render(file, body):
    tokenizer = opened(file)
    number = int(tokenizer.version.value.removeprefix("v"))
    messages = [turn(message) for message in body["messages"]]
    continues = body.get("continue_final_message", False)
    last_is_assistant = messages[-1]["role"] == "assistant"
    if last_is_assistant and body.get("add_generation_prompt", not continues):
        raise ValueError("add_generation_prompt after an assistant message")
    if continues and not last_is_assistant:
        raise ValueError("continue_final_message without an assistant message")
    effort = body.get("reasoning_effort")
    kwargs = {"reasoning_effort": effort} if number >= 15 and effort is not None else {}
    request = ChatCompletionRequest.from_openai(
        messages=messages, tools=body.get("tools"), continue_final_message=continues, **kwargs
    )
    return tokenizer.encode_chat_completion(request).tokens


def answer(question):
    match question["ask"]:
        case "version":
            return version("mistral-common")
        case "files":
            return str(DATA)
        case "vocabulary":
            file = json.loads((DATA / "tekken_240911.json").read_text(encoding="utf-8"))
            tokens = [each["token_bytes"] for each in file["vocab"][: question["size"]]]
            return {"pattern": file["config"]["pattern"], "tokens": tokens}
        case "render":
            try:
                return render(question["file"], question["body"])
            except Exception as error:  # It refuses with asserts and with errors of many classes.
                return {"refused": f"{type(error).__name__}: {error}"[:300]}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
