"""Classes, scores or cosines that an encoder gives to sentences, and their metrics by readout."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import find_subset_rows
from workflow_scripts.evaluation.sentence_metrics import compute_class_metrics, compute_correlations
from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.encoders import load_fine_tuned
from workflow_scripts.tasks.sentence_prediction.problem import (
    SentenceModel,
    Sentences,
    decide_classes,
    read_sentences,
    tokenise_sentences,
)


def load_model(checkpoint: Checkpoint) -> SentenceModel:
    """Load encoder and head. Raises UserError if a file is missing or broken."""
    outputs = len(checkpoint.labels) if checkpoint.labels else 1
    settings = checkpoint.spec.model.settings, checkpoint.spec.problem
    return load_fine_tuned(checkpoint, lambda encoder: SentenceModel(encoder, *settings, outputs))


def predict(
    checkpoint: Checkpoint, model: SentenceModel, items: Sequence[str | tuple[str, str]]
) -> list[str] | list[float]:
    """Return the class or the score of each sentence, or of each pair of sentences."""
    first, second = zip(
        *((item, None) if isinstance(item, str) else item for item in items), strict=True
    )
    if len({type(text) for text in second}) > 1:
        raise UserError("some items are sentences and some are pairs; predict them apart")
    table = pa.table(
        {"first": first, "second": pa.array(second, pa.string()), "label": [0.0] * len(items)}
    )
    sentences = tokenise_sentences(
        checkpoint.spec, model.positions, checkpoint.folder, table, "the items"
    )
    tokens, device = checkpoint.settings.batch_tokens, next(model.parameters()).device
    scores = predict_items(model, sentences, tokens, device, Reporter("", len(items), "none"))[0][
        model.readout
    ]
    if checkpoint.labels is None:
        return scores.tolist()
    return [checkpoint.labels[number] for number in decide_classes(scores)[0]]


def score(
    checkpoint: Checkpoint, data: Path, device: torch.device, progress: str
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (predictions, score rows) of every split by readout: that of the head, or all if cosines are compared.

    zero_states is the percentage of items with an all-zero [CLS].
    """
    model, settings = checkpoint.load_model(device), checkpoint.settings
    where = checkpoint.spec, model.positions, checkpoint.folder, data
    splits = {split: read_sentences(*where, split) for split in settings.splits}
    predictions, scores = [], []
    with Reporter(
        checkpoint.name, sum(map(len, splits.values())), progress, unit="items"
    ) as reporter:
        for split, sentences in splits.items():
            reporter.set_stage(f"score {split}")
            table = read_table(data, split, ["item", "subset", "label"])
            label, subsets = (table[name].to_numpy() for name in ("label", "subset"))
            found, zero = predict_items(model, sentences, settings.batch_tokens, device, reporter)
            for readout, predicted in found.items():
                made, likelihood = (
                    decide_classes(predicted) if checkpoint.labels else (predicted.numpy(), None)
                )
                rows = score_subsets(made, likelihood, label, subsets, bool(checkpoint.labels))
                share = 100 * float(zero[readout].mean())
                rows.append(
                    {"subset": "all", "metric": "zero_states", "value": share, "n": len(label)}
                )
                scores += [
                    {"split": split, "readout": readout, "unit": "percent", **row} for row in rows
                ]
                names = {
                    "split": [split] * len(label),
                    "item": table["item"],
                    "subset": table["subset"],
                }
                content = {
                    "readout": [readout] * len(label),
                    "label": label,
                    "prediction": made.astype(float),
                }
                content["likelihood"] = (
                    pa.nulls(len(label), pa.float32()) if likelihood is None else likelihood
                )
                predictions.append(pa.table(names | content))
    return pa.concat_tables(predictions), scores


@torch.no_grad()
def predict_items(
    model: SentenceModel,
    sentences: Sentences,
    batch_tokens: int,
    device: torch.device,
    reporter: Reporter,
) -> tuple[dict[str, Tensor], dict[str, np.ndarray]]:
    """Return by readout: class scores [N, C] or numbers [N], and whether a state of an item is all zero [N]."""
    found, zero = defaultdict(list), defaultdict(list)
    batches = sentences.make_batches(batch_tokens, device)
    for rows, batch in zip(*batches, strict=True):
        for readout, states in model.compute_cls_states(batch).items():
            if not model.heads or readout == model.readout:
                found[readout].append(model.predict(states).float().cpu())
                zero[readout].append((states == 0).all(-1).any(-1).cpu())
        reporter.advance(len(rows))
    order = np.argsort(np.concatenate(batches[0]))
    predicted = {readout: torch.cat(parts)[order] for readout, parts in found.items()}
    return predicted, {readout: torch.cat(zero[readout])[order].numpy() for readout in found}


def score_subsets(
    predicted: np.ndarray,
    likelihood: np.ndarray | None,
    label: np.ndarray,
    subsets: np.ndarray,
    classes: bool,
) -> list[dict[str, Any]]:
    """Return one row per metric and subset. An undefined metric has a `reason` instead of a value.

    predicted, label, subsets [N]. likelihood [N]: the probability of class 1, or None.
    """
    rows = []
    for subset, chosen in find_subset_rows(subsets).items():
        if classes:
            likely = None if likelihood is None else likelihood[chosen]
            values, reasons = compute_class_metrics(predicted[chosen], likely, label[chosen])
        else:
            values, reasons = compute_correlations(predicted[chosen], label[chosen])
        where = {"subset": subset, "n": len(chosen)}
        rows += [{**where, "metric": metric, "value": value} for metric, value in values.items()]
        rows += [
            {**where, "metric": metric, "reason": reason} for metric, reason in reasons.items()
        ]
    return rows
