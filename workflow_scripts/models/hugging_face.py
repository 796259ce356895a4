"""Models of the transformers library.

They are in folders with config.json, model.safetensors and tokenizer.json.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_mapping

FAST_TOKENIZER = "models here need a fast tokenizer, which has offsets; save it with transformers"
# Hide progress bars, and warnings about attention masks that models here do not need.
logging.set_verbosity_error()
logging.disable_progress_bar()
# Arguments of `from_pretrained` of a model.
FROM_FOLDER = {
    "local_files_only": True,
    "use_safetensors": True,
    "trust_remote_code": False,
    "dtype": torch.float32,
}


@contextmanager
def report_read_errors(folder: Path) -> Iterator[None]:
    """Raise UserError for the library's errors about unreadable model files."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # an odd value in config.json can raise anything
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(
            f"{folder} cannot be read as a model ({reason}); make or fetch it again"
        ) from error


def read_model_config(folder: Path, family: str) -> PretrainedConfig:
    """Read config.json of a folder.

    Raises UserError if it is missing, or if the model is of another family.
    """
    if not (folder / "config.json").is_file():
        raise UserError(
            f"{folder / 'config.json'} does not exist; give the folder of a trained model"
        )
    found = read_mapping(folder / "config.json").get("model_type", "unknown")
    if found != family:
        raise UserError(f"{folder} holds a model of the family {found}, the method needs {family}")
    return load_pretrained_config(folder)


def load_pretrained_config(folder: Path) -> PretrainedConfig:
    """Load config.json of a folder. A class of the folder's own that it names is not run."""
    return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def check_loaded(model: PreTrainedModel, report: dict[str, Any], folder: Path) -> None:
    """Raise UserError if the file of weights lacked one, or has one that is not finite.

    report: what the loader says.
    """
    file = folder / "model.safetensors"
    missing = sorted(report["missing_keys"])
    if missing:
        raise UserError(f"{file} has no {missing[0]}; make or fetch it again")
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise UserError(f"{file}: {name} is not finite everywhere; make or fetch it again")


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read tokenizer.json of a folder, without the padding and the truncation that it may ask for.

    Raises UserError if it is missing or broken.
    """
    file = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{file} does not exist; {FAST_TOKENIZER}") from error
    except Exception as error:  # the library raises Exception itself
        raise UserError(f"{file} is not a tokenizer ({error}); make or fetch it again") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def map_sizes(settings: Any, vocabulary: int) -> dict[str, int]:
    """Return sizes of the settings under the names that all families' configurations accept."""
    return {
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "hidden_size": settings.width,
        "vocab_size": vocabulary,
        "max_position_embeddings": settings.positions,
    }


def use_gradient_checkpointing(model: PreTrainedModel) -> None:
    """Recompute blocks in the backward pass.

    They have the random numbers and the autocast of their first run.
    """
    model.activation_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": True})


def place_on_device(model: PreTrainedModel, device: torch.device) -> None:
    """Place a model on a device."""
    nn.Module.to(model, device)  # the declared type of PreTrainedModel.to takes no device


def get_embeddings(model: PreTrainedModel) -> nn.Embedding:
    """Return the table of embeddings of a model's tokens."""
    embeddings = model.get_input_embeddings()
    assert isinstance(embeddings, nn.Embedding)
    return embeddings


def write_companions(config: PretrainedConfig, tokenizer_folder: Path, folder: Path) -> None:
    """Write config.json to `folder`, next to weights, and copy a tokenizer.json there."""
    config.save_pretrained(folder)
    shutil.copyfile(tokenizer_folder / "tokenizer.json", folder / "tokenizer.json")
