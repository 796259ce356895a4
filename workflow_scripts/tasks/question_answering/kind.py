"""The kind of task question_answering."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.span_metrics import select_worst_variants
from workflow_scripts.tasks.base import Checkpoint, Problem, TaskKind
from workflow_scripts.tasks.encoders import load_fine_tuned
from workflow_scripts.tasks.question_answering.problem import (
    MEASURES,
    SpanModel,
    find_answers,
    make_problem,
    make_windows,
    read_windows,
)
from workflow_scripts.tasks.run_spec import RunSpec


class Kind(TaskKind):
    """Fine-tuning on questions about paragraphs, scored by exact match and F1 of the answers."""

    def make_problem(
        self, spec: RunSpec, data: Path, init: Path | None, device: torch.device
    ) -> Problem:
        """Make what trains a model: see `problem.make_problem`."""
        return make_problem(spec, data, init, device)

    def load_model(self, checkpoint: Checkpoint) -> SpanModel:
        """Load encoder and head. Raises UserError if a file is missing or broken."""
        return load_fine_tuned(
            checkpoint, lambda encoder: SpanModel(encoder, checkpoint.spec.model.settings)
        )

    def score(
        self,
        checkpoint: Checkpoint,
        model: SpanModel,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Return (predictions, score rows) of every split: `exact_match` and `f1`, percent, means over rows.

        A split with variants of its questions also has `adversarial_exact_match` and `adversarial_f1`: means over
        questions of the rows that `select_worst_variants` selects.
        """
        settings = checkpoint.settings
        splits = {
            split: read_windows(checkpoint.spec, checkpoint.folder, data, split)
            for split in settings.splits
        }
        predictions, scores = [], []
        with Reporter(
            checkpoint.name, sum(map(len, splits.values())), progress, unit="questions"
        ) as reporter:
            for split, windows in splits.items():
                reporter.set_stage(f"answer {split}")
                given = find_answers(
                    model, windows, windows.make_batches(settings.batch_tokens, device)
                )
                items = read_table(data, split, ["item"])["item"].to_pylist()
                measured = {
                    name: [measure(*pair) for pair in zip(given, windows.answers, strict=True)]
                    for name, measure in MEASURES.items()
                }
                rows = {"": list(range(len(items)))}
                if any("-" in item for item in items):
                    rows["adversarial_"] = select_worst_variants(items, measured["f1"])
                for prefix, chosen in rows.items():
                    for name, values in measured.items():
                        value = 100 * float(np.mean(np.array(values)[chosen]))
                        row = {
                            "metric": prefix + name,
                            "value": value,
                            "unit": "percent",
                            "n": len(chosen),
                        }
                        scores.append(
                            {**row, "split": split, "subset": "all", "readout": model.readout}
                        )
                table = {
                    "split": [split] * len(given),
                    "item": items,
                    "prediction": given,
                    **measured,
                }
                predictions.append(pa.table(table))
                reporter.advance(len(given))
        return pa.concat_tables(predictions), scores

    def predict(
        self, checkpoint: Checkpoint, model: SpanModel, items: Sequence[tuple[str, str]]
    ) -> list[str]:
        """Return the answer to each pair of a question and a paragraph: a part of the paragraph."""
        questions, contexts = map(list, zip(*items, strict=True))
        unknown = {
            "start": [0] * len(items),
            "answer": [""] * len(items),
            "answers": ["[]"] * len(items),
        }
        columns = {"question": questions, "context": contexts, **unknown}
        windows = make_windows(checkpoint.spec, checkpoint.folder, columns)
        device = next(model.parameters()).device
        return find_answers(
            model, windows, windows.make_batches(checkpoint.settings.batch_tokens, device)
        )
