"""Renders a chat template over and over in transformers' environment, for bench/template.ts.

One JSON object a line: {"template": text, "context": JSON text of the variables, "seconds": CPU time}. One answer a line:
{"text": ..., "renders": ..., "seconds": ...}. Variables are read once, as a server has them.
"""

import json
import sys
import time

from transformers.utils import chat_template_utils

for line in sys.stdin:
    job = json.loads(line)
    template = chat_template_utils._compile_jinja_template(job["template"])
    variables = json.loads(job["context"])
    text = template.render(**variables)
    renders = 0
    start = time.process_time()
    while time.process_time() - start < job["seconds"]:
        for _ in range(8):
            template.render(**variables)
        renders += 8
    print(json.dumps({"text": text, "renders": renders, "seconds": time.process_time() - start}), flush=True)
