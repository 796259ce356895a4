"""Exact match and F1 of the answer spans of an encoder."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.span_metrics import compute_exact_match, compute_f1, select_worst_variants
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.encoders import load_spec_encoder
from workflow_scripts.tasks.question_answering.batches import read_windows
from workflow_scripts.tasks.question_answering.model import build
from workflow_scripts.tasks.question_answering.problem import find_answers
from workflow_scripts.tasks.settings import Evaluation


def score(
    run: dict[str, Any], checkpoint: Path, data: Path, settings: Evaluation, device: torch.device, progress: str
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (predictions, score rows) of every split: `exact_match` and `f1`, percent, means over rows.

    A split with variants of its questions also has `adversarial_exact_match` and `adversarial_f1`: means over questions
    of the rows that `worst_variants` selects.
    """
    spec = run["spec"]
    model = build(load_spec_encoder(checkpoint, spec["model"]), spec["model"]).to(device).eval()
    load_weight_file(model, checkpoint / "model.safetensors", shared="weights" in spec)
    splits = {split: read_windows(spec, checkpoint, data, split) for split in settings.splits}
    predictions, scores = [], []
    total = sum(len(windows.contexts) for windows in splits.values())
    with Reporter(run["run"], total, progress, unit="questions") as reporter:
        for split, windows in splits.items():
            reporter.set_stage(f"answer {split}")
            batches = windows.make_batches(settings.batch_tokens, None, device)
            given = find_answers(model, windows, batches)
            content: dict[str, Any] = {"item": read_table(data, split, ["item"])["item"], "prediction": given}
            for name, measure in (("exact_match", compute_exact_match), ("f1", compute_f1)):
                content[name] = [measure(*pair) for pair in zip(given, windows.answers, strict=True)]
            items = content["item"].to_pylist()
            rows = {"": list(range(len(items)))}
            if any("-" in item for item in items):
                rows["adversarial_"] = select_worst_variants(items, content["f1"])
            for prefix, name in itertools.product(rows, ("exact_match", "f1")):
                value = 100 * float(np.mean(np.array(content[name])[rows[prefix]]))
                row = {"metric": prefix + name, "value": value, "unit": "percent", "n": len(rows[prefix])}
                scores.append({**row, "split": split, "subset": "all", "readout": model.readout})
            predictions.append(pa.table({"split": [split] * len(given), **content}))
            reporter.advance(len(given))
    return pa.concat_tables(predictions), scores
