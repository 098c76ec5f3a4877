"""What vLLM's renderers for DeepSeek say: one JSON question a line on standard input, one JSON answer a line on standard
output. A question is {"version": "v32" | "v4" | "v41", "body": {...}} with the body of a chat request, an answer
{"text": ...} or {"error": ...}.

The first argument names a folder with vllm/tokenizers/deepseek_*.py as they are in the package. They are loaded alone:
what they import besides each other is not needed for the text. How messages and fields reach them follows vLLM 0.33.0's
`renderers/deepseek_v32.py`, `deepseek_v4.py`, `chat_utils/chat_message.py` and `build_chat_params`.
"""

import copy
import importlib
import json
import sys
from types import ModuleType


class Tokenizer:
    """Stands in for the model's: only the text of a prompt is asked for."""

    def get_added_vocab(self):
        return {}


def stub(name, **members):
    module = ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []
    sys.modules[name] = module
    return module


def load(folder):
    stub("transformers", TokenizersBackend=object)
    stub("vllm")
    stub("vllm.renderers")
    stub("vllm.renderers.chat_utils", ChatCompletionMessageParam=dict)
    stub("vllm.tokenizers").__path__ = [folder + "/vllm/tokenizers"]
    stub("vllm.tokenizers.hf", HfTokenizer=object, get_cached_tokenizer=lambda tokenizer: tokenizer)
    stub("vllm.tokenizers.protocol", TokenizerLike=object)
    made = {}
    for version in ("v32", "v4", "v41"):
        module = importlib.import_module(f"vllm.tokenizers.deepseek_{version}")
        made[version] = getattr(module, f"get_deepseek_{version}_tokenizer")(Tokenizer())
    return made


def arguments_of(given):
    if isinstance(given, dict):
        return given
    try:
        parsed = json.loads(given) if given else {}
    except json.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def parts_of(content):
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    return [part if isinstance(part, str) else part["text"] for part in content]


def conversation_of(messages, as_string):
    """`parse_chat_messages`, with the content format "string" or "openai"."""
    made = []
    for message in messages:
        role = message["role"]
        texts = parts_of(message.get("content"))
        wrapped = [{"type": "text", "text": text} for text in texts]
        turn = {"role": role, "content": "\n".join(texts) if as_string or role == "tool" else wrapped}
        if role == "assistant":
            if message.get("tool_calls"):
                turn["tool_calls"] = message["tool_calls"]
            if message.get("reasoning") is not None:
                turn["reasoning"] = turn["reasoning_content"] = message["reasoning"]
        if role == "tool" and "tool_call_id" in message:
            turn["tool_call_id"] = message["tool_call_id"]
        for name in ("name", "task"):
            if isinstance(message.get(name), str):
                turn[name] = message[name]
        if role == "developer":
            turn["tools"] = message.get("tools")
        made.append(turn)
    return made


def kwargs_of(body):
    asked = body.get("chat_template_kwargs") or {}
    derived = {"reasoning_effort": body.get("reasoning_effort")}
    if body.get("reasoning_effort") is not None and "enable_thinking" not in asked:
        derived["enable_thinking"] = body["reasoning_effort"] != "none"
    merged = {**asked, **{name: value for name, value in derived.items() if value is not None}}
    return {name: value for name, value in merged.items() if value is not None and value != "auto"}


def tools_of(body):
    made = []
    for tool in body.get("tools") or []:
        given = tool["function"]
        function = {name: given.get(name) for name in ("name", "description", "parameters")}
        if given.get("strict") is not None:
            function["strict"] = given["strict"]
        made.append({"type": "function", "function": function})
    return made or None


def render(tokenizers, version, body):
    messages = copy.deepcopy(body["messages"])
    for message in messages:
        for call in message.get("tool_calls") or []:
            call["function"]["arguments"] = arguments_of(call["function"].get("arguments"))
    return tokenizers[version].apply_chat_template(
        messages,
        tools_of(body),
        conversation=conversation_of(messages, version == "v32"),
        tokenize=False,
        **kwargs_of(body),
    )


def main():
    tokenizers = load(sys.argv[1])
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = {"text": render(tokenizers, question["version"], question["body"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
