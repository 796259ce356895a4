"""Decode, join and score the outputs of a seq2seq model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from workflow_scripts.common.plug_ins import import_function
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.tasks.batching import EOS, PAD, bucket_by_length, to_sequences
from workflow_scripts.tasks.seq2seq.decoding import decode_greedily, decode_with_beam
from workflow_scripts.tasks.settings import Evaluation

COLUMNS = ["source", "target", "subset", "source_ids", "target_ids"]


def decode(
    model: nn.Module,
    table: pa.Table,
    target_words: list[str],
    settings: Evaluation,
    device: torch.device,
    reporter: Reporter | None = None,
) -> list[str]:
    """Decode each row of a split (columns `source`, `source_ids`). Words are joined by one space."""
    coded = table["source"].combine_chunks().dictionary_encode()
    which = coded.indices.to_numpy()
    first = np.unique(which, return_index=True)[1]
    sources = to_sequences(table["source_ids"].take(first))
    length = sources.length + 1
    outputs: list[str] = [""] * len(first)
    longest = (settings.max_length_ratio * length).astype(np.int64) + settings.max_length
    for rows in bucket_by_length(length, length, max(settings.batch_tokens, int(length.max()))):
        source, limit = (torch.from_numpy(values).to(device) for values in (sources.pad(rows), longest[rows]))
        if settings.beam == 1:
            ids = decode_greedily(model, source, limit)
        else:
            ids = decode_with_beam(model, source, settings.beam, limit)
        for row, sentence in zip(rows.tolist(), ids.tolist(), strict=True):
            end = sentence.index(EOS) if EOS in sentence else len(sentence)
            outputs[row] = " ".join(target_words[token] for token in sentence[:end] if token != PAD)
        if reporter:
            reporter.advance(len(rows))
    return [outputs[index] for index in which]


def join_tokens(texts: Sequence[str], into: str) -> list[str]:
    """Join space-separated tokens as `Evaluation.join_tokens` says: `tokens` (unchanged), `words`, or one `text`."""
    if into == "tokens":
        return list(texts)
    words = [text.replace("@@ ", "").removesuffix("@@") for text in texts]
    return words if into == "words" else [text.replace(" ", "") for text in words]


def score_with_modules(
    outputs: list[str], references: list[str], data: Path, split: str, settings: Evaluation
) -> list[dict[str, Any]]:
    """Return the score rows of the metric modules of the settings. Outputs and references are joined."""
    if not settings.measures:
        return []
    table, rows = read_table(data, split), []
    for name, options in settings.measures.items():
        score_outputs = import_function(name, "score_outputs", "workflow_scripts.evaluation")
        rows += score_outputs(outputs, references, table, data, options)
    return rows
