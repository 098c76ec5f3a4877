"""Renders chat templates as transformers does. One JSON object a line on stdin, one answer a line on stdout.

In: {"template": text, "contexts": [JSON text of the variables, ...]}. Out: one entry a context, {"text": ...} or
{"error": "Kind: message"}. The clock stands still at 2026-03-05 14:07:09. Needs jinja2 and transformers
(test/prompt/requirements.txt); `--version` prints theirs.
"""

import datetime
import json
import signal
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils

MOMENT = datetime.datetime(2026, 3, 5, 14, 7, 9)
SECONDS_EACH_MAX = 10


class StoppedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return MOMENT


def described(error):
    return {"error": f"{type(error).__name__}: {error}"}


def render(template, context):
    signal.alarm(SECONDS_EACH_MAX)
    try:
        text = template.render(**json.loads(context))
        # A lone half of a surrogate pair cannot be written as UTF-8; JSON spells it out.
        return {"text": text}
    except BaseException as error:  # A template may fail in any way, RecursionError and MemoryError included.
        if isinstance(error, KeyboardInterrupt):
            raise
        return described(error)
    finally:
        signal.alarm(0)


def too_slow(_signal, _frame):
    raise TimeoutError("too slow")


def main():
    if sys.argv[1:] == ["--version"]:
        print(f"jinja2 {jinja2.__version__}, transformers {transformers.__version__}, Python {sys.version.split()[0]}")
        return
    chat_template_utils.datetime = StoppedClock
    signal.signal(signal.SIGALRM, too_slow)
    # What compiling sets up anew for each template is the same for all.
    environment = chat_template_utils._cached_compile_jinja_template("").environment
    for line in sys.stdin:
        job = json.loads(line)
        try:
            template = environment.from_string(job["template"])
            answers = [render(template, context) for context in job["contexts"]]
        except Exception as error:
            answers = [described(error) for _ in job["contexts"]]
        print(json.dumps(answers), flush=True)


main()
