"""Output sentences of a trained seq2seq run."""

from collections.abc import Sequence

import pyarrow as pa
from torch import nn

from workflow_scripts.data.prepared import read_vocabularies
from workflow_scripts.tasks.batching import UNK
from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.seq2seq.checkpoint import find_pieces, load_checkpoint
from workflow_scripts.tasks.seq2seq.decoding import decode, join_tokens


def load_model(checkpoint: Checkpoint) -> nn.Module:
    """Load the model of a checkpoint. Raises UserError if a file is missing or broken."""
    return load_checkpoint(checkpoint.folder)[0]


def predict(checkpoint: Checkpoint, model: nn.Module, sentences: Sequence[str]) -> list[str]:
    """Decode sentences, whose tokens are separated by single spaces, with the settings of the evaluation."""
    vocabulary, settings = read_vocabularies(checkpoint.folder), checkpoint.settings
    ids = {token: number for number, token in enumerate(vocabulary["source"])}
    tokens = [[ids.get(token, UNK) for token in sentence.split(" ")] for sentence in sentences]
    table = pa.table({"source": list(sentences), "source_ids": tokens})
    if pieces := find_pieces(checkpoint.spec["model"], checkpoint.folder):
        table = pieces.tokenise(table)
    outputs = decode(model, table, vocabulary["target"], settings, next(model.parameters()).device)
    return join_tokens(outputs, settings.joined)
