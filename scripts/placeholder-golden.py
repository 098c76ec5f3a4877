"""Makes test/golden/media/placeholders.json: what each multimodal class of vLLM gives as get_placeholder_str.

Reads the sources of an installed vLLM without importing them, since its models import what a machine without a GPU may
lack. Run: python3 scripts/placeholder-golden.py SITE_PACKAGES/vllm
"""

import ast
import json
import re
import sys
from pathlib import Path

MODALITIES = ("image", "video", "audio")


def answer(value):
    """The text that an expression returns, with {i} for the item's number; anything but text and None is an error."""
    if isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, str)):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{i}" for part in value.values)
    raise ValueError(ast.unparse(value))


def answers(method):
    """Texts by modality, from a chain of ifs on the modality that return; null = the class has no text for it."""
    found = {}
    for branch in (node for node in ast.walk(method) if isinstance(node, ast.If)):
        condition = ast.unparse(branch.test)
        for modality in MODALITIES:
            if condition in (f"modality.startswith('{modality}')", f"modality == '{modality}'"):
                found[modality] = answer(next(node for node in branch.body if isinstance(node, ast.Return)).value)
    return found


def main(folder):
    classes, own, unread = {}, {}, []
    for path in sorted((folder / "model_executor/models").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.ClassDef):
                continue
            classes[node.name] = [ast.unparse(base) for base in node.bases]
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "get_placeholder_str":
                    try:
                        own[node.name] = answers(method)
                    except ValueError:
                        unread.append(node.name)

    def inherited(name):
        if name in own or name in unread:
            return own.get(name)
        return next((found for base in classes.get(name, []) if (found := inherited(base))), None)

    version = re.search(r"version = '([^']+)'", (folder / "_version.py").read_text())[1]
    known = {name: found for name in sorted(classes) if (found := inherited(name))}
    golden = {"madeBy": f"scripts/placeholder-golden.py, vllm {version}", "classes": known}
    target = Path(__file__).parent.parent / "test/golden/media/placeholders.json"
    target.write_text(json.dumps(golden, indent=2, ensure_ascii=False) + "\n")


main(Path(sys.argv[1]))
