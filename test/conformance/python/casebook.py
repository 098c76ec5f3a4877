"""What the case files of this folder share. Each is run as `python FILE BASE_URL MODEL` and ends with `run_cases()`.

It writes one JSON line a case, {"name", "error": null | text}. The names are the functions' first lines; python.test.ts
has a test for each.
"""

import json
import sys
import traceback

BASE_URL, MODEL = sys.argv[1:3]

SENTENCE = "Grüße aus Zürich: 東京は晴れ、 +3 °C 🌤️."


class Fault(Exception):
    """What the server sent is not what its contract says."""


def check(holds, what):
    if not holds:
        raise Fault(what)


def equal(got, expected, what):
    if got != expected:
        raise Fault(f"{what}: expected {expected!r}, got {got!r}")


def script(text, **more):
    """Body fields that make the simulator answer with `text`."""
    return {"vllm_xargs": {"sim_text": text, **more}}


def call_text(name, arguments):
    """Model output that calls one function."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"


CALL = call_text("get_weather", {"city": "Zürich"})

_cases = []


def case(function):
    _cases.append(function)
    return function


def run_cases():
    for run in _cases:
        try:
            run()
            failure = None
        except Exception as reason:  # one line a case, whatever broke in it
            failure = str(reason) if isinstance(reason, Fault) else traceback.format_exc()
        print(json.dumps({"name": run.__doc__, "error": failure}), flush=True)
