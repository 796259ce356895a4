"""Models of Hugging Face's library: read from folders alone, as safetensors alone, without the library's chatter."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from workflow_scripts.errors import UserError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# For `from_pretrained` of a model.
FROM_FOLDER = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False, "dtype": torch.float32}


def quiet() -> None:
    """Keep the library's bars, and its advice on masks that models here do not need, out of the logs."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


@contextmanager
def read_errors(folder: Path) -> Iterator[None]:
    """Raise a UserError for what the library raises when it cannot read a model's files."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{folder} cannot be read as a model ({reason}); make or fetch it again") from error


def read_configuration(folder: Path, family: str) -> "PretrainedConfig":
    """config.json of a folder. Raises UserError when the model is of another family."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if config.model_type != family:
        raise UserError(f"{folder} holds a model of the family {config.model_type}, the method asks for {family}")
    return config
