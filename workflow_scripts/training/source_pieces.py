"""Whether the sources of a run are words, or pieces of a pre-trained encoder."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.training.batches import Pairs, sequences
from workflow_scripts.training.prepared import read_pairs, read_table

if TYPE_CHECKING:
    from workflow_scripts.models.pieces import Pieces

TOKENIZER = "tokenizer.json"


def source_pieces(spec: dict, folder: Path) -> "Pieces | None":
    """The pieces of the encoder in a folder with weights for the model of `spec`; None where it reads words."""
    module = importlib.import_module(spec["model"]["module"])
    return module.read_pieces(folder) if hasattr(module, "read_pieces") and (folder / TOKENIZER).exists() else None


def read_source_pairs(data: Path, split: str, pieces: "Pieces | None") -> Pairs:
    """As read_pairs, with sources cut into `pieces` if there are any."""
    if pieces is None:
        return read_pairs(data, split)
    table = pieces.cut(read_table(data, split, ["source", "source_ids", "target_ids"]))
    return Pairs(sequences(table["source_ids"]), sequences(table["target_ids"]))
