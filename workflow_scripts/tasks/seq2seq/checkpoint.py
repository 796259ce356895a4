"""The checkpoint of a seq2seq run: weights, model settings and both vocabularies in one folder."""

from pathlib import Path
from typing import Any

from torch import nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json, write_json
from workflow_scripts.common.result_folders import RunFolder
from workflow_scripts.data.prepared import read_vocabularies
from workflow_scripts.models.importing import import_model
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.checkpoints import FinishedRun, read_checked_run
from workflow_scripts.tasks.run_spec import NamedSettings, parse_named_settings

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"


def build_model(model: NamedSettings, vocabulary: dict[str, list[str]]) -> Any:
    """Build a model with random weights."""
    return import_model(model.name).build(
        model.settings,
        source_vocabulary=len(vocabulary["source"]),
        target_vocabulary=len(vocabulary["target"]),
    )


def find_pieces(model: NamedSettings, folder: Path) -> Any:
    """Return the word pieces (`Pieces`) of the encoder in a folder with weights.

    None if the model reads words.
    """
    module = import_model(model.name)
    if hasattr(module, "read_pieces") and (folder / TOKENIZER).exists():
        return module.read_pieces(folder)
    return None


def write_config(folder: Path, model: NamedSettings, vocabulary: dict[str, list[str]]) -> None:
    """Write the files that `load_checkpoint` needs in addition to the weights."""
    write_json(folder / CONFIG, {"model": model.to_json()})
    write_json(folder / "vocabulary.json", vocabulary)


def load_checkpoint(folder: Path) -> tuple[nn.Module, dict[str, list[str]]]:
    """Load (model in eval mode on the CPU, tokens by id of each side).

    Raises UserError if a file is broken.
    """
    file = folder / CONFIG
    config = read_json(file)
    vocabulary = read_vocabularies(folder)
    section = None
    if isinstance(config, dict):
        section = config.get("model")
    if not isinstance(section, dict) or not isinstance(section.get("name"), str):
        raise UserError(f"{file} is not what train writes; train the run again")
    model = build_model(parse_named_settings(section, "model", file), vocabulary)
    load_weight_file(model, folder / "model.safetensors")
    return model.eval(), vocabulary


def load_run(run_dir: Path, data_dir: Path) -> tuple[nn.Module, dict[str, list[str]], FinishedRun]:
    """Load (model in eval mode, tokens by id of each side, run.json) of a run.

    Raises UserError unless the data fit.
    """
    run = read_checked_run(run_dir, data_dir)
    model, vocabulary = load_checkpoint(RunFolder(run_dir).checkpoint)
    return model, vocabulary, run
