"""Read the sequence pairs of a data folder. Sources are words, or pieces of a pre-trained encoder."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table, read_vocabularies
from workflow_scripts.tasks.batching import SequencePairs, to_sequences

if TYPE_CHECKING:
    from workflow_scripts.models.roberta_decoder.pieces import Pieces


def read_pairs(folder: Path, split: str) -> SequencePairs:
    """Read the id columns of a split. Raises UserError with file and row for a token outside the vocabulary."""
    sides = []
    vocabulary = read_vocabularies(folder)
    for side in ("source", "target"):
        # One side after the other, because each is in memory twice while it is read.
        found = to_sequences(read_table(folder, split, [f"{side}_ids"])[f"{side}_ids"])
        known = len(vocabulary[side])
        if len(found.ids) and (found.ids.max() >= known or found.ids.min() < 0):
            place = int(np.argmax((found.ids >= known) | (found.ids < 0)))
            row = int(np.searchsorted(found.start, place, side="right")) - 1
            raise UserError(
                f"{folder / split}.parquet: row {row} has the {side} token {found.ids[place]}, but vocabulary.json "
                f"ends at {known - 1}; delete {folder} and prepare it again"
            )
        sides.append(found)
    return SequencePairs(*sides)


def read_source_pairs(data: Path, split: str, pieces: "Pieces | None") -> SequencePairs:
    """Read the pairs of a split, with sources split into `pieces` if there are any."""
    if pieces is None:
        return read_pairs(data, split)
    table = pieces.tokenise(read_table(data, split, ["source", "source_ids", "target_ids"]))
    return SequencePairs(to_sequences(table["source_ids"]), to_sequences(table["target_ids"]))
