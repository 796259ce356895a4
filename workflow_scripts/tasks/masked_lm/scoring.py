"""Scores of an encoder on masked words and next sentences, by readout."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.weights import load_weights, read_weights
from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.masked_lm.batches import IGNORED, MaskedBatch, bucket_pairs
from workflow_scripts.tasks.masked_lm.model import (
    Pretraining,
    build,
    compute_masked_nll,
    compute_next_sentence_nll,
)
from workflow_scripts.tasks.masked_lm.problem import read_sentence_pairs


@torch.no_grad()
def score(
    checkpoint: Checkpoint, data: Path, device: torch.device, progress: str
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (values of each pair and readout, score rows) of every split.

    `cross_entropy` of a masked token (nats), `mlm_accuracy` and, for models trained on it, `nsp_accuracy` (percent).
    The masks are the same for every run with next sentences, and for every run without.
    """
    model = checkpoint.load_model(device)
    splits = {
        split: read_sentence_pairs(checkpoint.spec, data, split)
        for split in checkpoint.settings.splits
    }
    tables, scores = [], []
    with Reporter(
        checkpoint.name, sum(map(len, splits.values())), progress, unit="pairs"
    ) as reporter:
        for split, pairs in splits.items():
            reporter.set_stage(f"read {split}")
            # Rows are those of the file: pairs of a batch are not its neighbours.
            found: dict[str, dict[str, np.ndarray]] = {}
            rng = np.random.default_rng(0)
            for rows in bucket_pairs(pairs, checkpoint.settings.batch_tokens, None):
                batch = pairs.make_batch(rows, rng).to(device)
                for readout, states in model.compute_states(
                    batch.ids, batch.real, batch.types
                ).items():
                    columns = found.setdefault(readout, {})
                    for name, values in score_pairs(model, states, batch).items():
                        columns.setdefault(name, np.empty(len(pairs)))[rows] = values.cpu()
                reporter.advance(len(rows))
            for readout, columns in found.items():
                if not pairs.next_sentence:
                    del columns["follows_right"]
                names = {"split": [split] * len(pairs), "readout": [readout] * len(pairs)}
                tables.append(pa.table({**names, "pair": np.arange(len(pairs)), **columns}))
                scores += [
                    {"split": split, "subset": "all", "readout": readout, **row}
                    for row in score_rows(columns)
                ]
    return pa.concat_tables(tables), scores


def load_model(checkpoint: Checkpoint) -> Pretraining:
    """Load encoder and heads. Raises UserError if the file is missing, broken or of another run."""
    file = checkpoint.folder / "model.safetensors"
    weights = read_weights(file)
    (vocabulary,) = weights.get("heads.words.bias", torch.empty(1)).shape
    model = build(checkpoint.spec.model, vocabulary)
    load_weights(model, weights, file)
    return model


def score_pairs(model: Pretraining, states: Tensor, batch: MaskedBatch) -> dict[str, Tensor]:
    """Return [B] float64 of each pair: nats, number and right answers of masked tokens; whether `follows` is right."""
    chosen = batch.labels.ne(IGNORED)

    def per_pair(values: Tensor) -> Tensor:
        table = torch.zeros(chosen.shape, dtype=torch.float64, device=chosen.device)
        table[chosen] = values.double()
        return table.sum(1)

    right = model.heads["words"](states[chosen]).argmax(-1).eq(batch.labels[chosen])
    return {
        "nats": per_pair(compute_masked_nll(model, states, batch)),
        "masked": chosen.sum(1).double(),
        "right": per_pair(right),
        "follows_right": compute_next_sentence_nll(model, states, batch)
        .lt(torch.tensor(2.0).log())
        .double(),
    }


def score_rows(columns: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Compute the metrics over all pairs from the columns [N] of `score_pairs`."""
    masked = int(columns["masked"].sum())
    rows = [
        {
            "metric": "cross_entropy",
            "value": columns["nats"].sum() / masked,
            "unit": "nats",
            "n": masked,
        },
        {
            "metric": "mlm_accuracy",
            "value": 100 * columns["right"].sum() / masked,
            "unit": "percent",
            "n": masked,
        },
    ]
    if "follows_right" in columns:
        right = columns["follows_right"]
        rows.append(
            {
                "metric": "nsp_accuracy",
                "value": 100 * right.mean(),
                "unit": "percent",
                "n": len(right),
            }
        )
    return rows
