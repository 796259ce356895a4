"""Scores of an encoder on sentences: classes and scores of its head, or cosines of [CLS] by readout."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from workflow_scripts.common.files import read_json
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import find_subset_rows
from workflow_scripts.evaluation.sentence_metrics import compute_class_metrics, compute_correlations
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.encoders import load_spec_encoder
from workflow_scripts.tasks.sentence_prediction.batches import Sentences, make_sentence_batches, read_sentences
from workflow_scripts.tasks.sentence_prediction.model import SentenceModel, build
from workflow_scripts.tasks.sentence_prediction.problem import decide_classes
from workflow_scripts.tasks.settings import Evaluation


def score(
    run: dict[str, Any], checkpoint: Path, data: Path, settings: Evaluation, device: torch.device, progress: str
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (predictions, score rows) of every split by readout: that of the head, or all if cosines are compared.

    zero_states is the percentage of items with an all-zero [CLS]. An undefined metric has a row with a `reason` instead
    of a value.
    """
    spec, names = run["spec"], read_json(data / "dataset.json")["labels"]
    model = build(load_spec_encoder(checkpoint, spec["model"]), spec, len(names) if names else 1).to(device).eval()
    load_weight_file(model, checkpoint / "model.safetensors", shared="weights" in spec)
    splits = {split: read_sentences(spec, model.positions, checkpoint, data, split) for split in settings.splits}
    predictions, scores = [], []
    with Reporter(run["run"], sum(map(len, splits.values())), progress, unit="items") as reporter:
        for split, sentences in splits.items():
            reporter.set_stage(f"score {split}")
            table = read_table(data, split, ["item", "subset", "label"])
            label, subsets = (table[name].to_numpy() for name in ("label", "subset"))
            found, zero = predict_items(model, sentences, settings.batch_tokens, device, reporter)
            rows = []
            for readout, predicted in found.items():
                made = decide_classes(predicted) if names else (predicted.numpy(), None)
                rows += score_subsets(readout, made, label, subsets, bool(names))
                share = {"metric": "zero_states", "value": 100 * float(zero[readout].mean()), "n": len(label)}
                rows.append({"subset": "all", "readout": readout, **share})
                likelihood = pa.nulls(len(label), pa.float32()) if made[1] is None else made[1]
                names_of = {"split": [split] * len(label), "item": table["item"], "subset": table["subset"]}
                content = {"label": label, "prediction": made[0].astype(float), "likelihood": likelihood}
                predictions.append(pa.table(names_of | {"readout": [readout] * len(label)} | content))
            scores += [{"split": split, "unit": "percent", **row} for row in rows]
    return pa.concat_tables(predictions), scores


@torch.no_grad()
def predict_items(
    model: SentenceModel, sentences: Sentences, batch_tokens: int, device: torch.device, reporter: Reporter
) -> tuple[dict[str, torch.Tensor], dict[str, np.ndarray]]:
    """Return by readout: class scores [N, C] or numbers [N], and whether a state of an item is all zero [N]."""
    found, zero = defaultdict(list), defaultdict(list)
    batches = make_sentence_batches(sentences, batch_tokens, None, device)
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
    readout: str, made: tuple[np.ndarray, np.ndarray | None], label: np.ndarray, subsets: np.ndarray, classes: bool
) -> list[dict[str, Any]]:
    """Return one row per metric and subset; an undefined metric has a `reason` instead of a value.

    made: predictions [N], and the probability of class 1 [N] or None; label, subsets [N].
    """
    rows = []
    for subset, chosen in find_subset_rows(subsets).items():
        predicted, likelihood = made[0][chosen], None if made[1] is None else made[1][chosen]
        if classes:
            values, reasons = compute_class_metrics(predicted, likelihood, label[chosen])
        else:
            values, reasons = compute_correlations(predicted, label[chosen])
        where = {"subset": subset, "readout": readout, "n": len(chosen)}
        rows += [{**where, "metric": metric, "value": value} for metric, value in values.items()]
        rows += [{**where, "metric": metric, "reason": reason} for metric, reason in reasons.items()]
    return rows
