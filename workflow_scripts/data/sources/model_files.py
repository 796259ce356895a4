"""Selection of the files of a model repository: safetensors, configuration and tokenizer."""

import re
from collections.abc import Collection

from workflow_scripts.common.errors import UserError

MANIFEST = "model.json"
NEEDED = ("config.json", "tokenizer.json")
WELCOME = ("generation_config.json", "tokenizer_config.json")
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")


def is_model_file(file: str) -> bool:
    """Return whether a model is loaded from this file; never true for pickled weights or code."""
    return file in (*NEEDED, *WELCOME, WHOLE, INDEX) or SHARD.fullmatch(file) is not None


def select_model_files(files: Collection[str], where: str) -> list[str]:
    """Select the needed files of a repository. Raises UserError if a required file is missing."""
    weights = [WHOLE] if WHOLE in files else sorted(file for file in files if SHARD.fullmatch(file))
    if not weights:
        pickled = sorted(file for file in files if file.endswith((".bin", ".pt", ".pth", ".ckpt")))
        why = f"only {pickled[0]}, and a pickled file can run code; pin" if pickled else "so no weights; pin"
        raise UserError(f"{where} has no {WHOLE}, {why} a commit with safetensors in sources.yaml")
    missing = [file for file in (*NEEDED, *([INDEX] if weights != [WHOLE] else [])) if file not in files]
    if missing:
        raise UserError(f"{where} has no {missing[0]}; pin another commit in sources.yaml")
    return [*NEEDED, *(file for file in WELCOME if file in files), *([INDEX] if weights != [WHOLE] else []), *weights]
