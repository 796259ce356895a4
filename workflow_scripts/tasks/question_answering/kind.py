"""The kind of task question_answering."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.evaluation.span_metrics import find_questions, select_worst_variants
from workflow_scripts.tasks.base import Checkpoint, EvaluationResult, TaskKind
from workflow_scripts.tasks.encoders import load_fine_tuned
from workflow_scripts.tasks.question_answering.training_setup import (
    SpanModel,
    find_answers,
    make_windows,
    measure_answers,
    read_windows,
)


class Kind(TaskKind):
    """Fine-tuning on questions about paragraphs, scored by exact match and F1 of the answers."""

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
    ) -> EvaluationResult:
        """Return predictions and scores of every split.

        `exact_match` and `f1`, percent, are means over rows. A split with variants of its questions
        also has `adversarial_exact_match` and `adversarial_f1`: means over questions of the rows
        that `select_worst_variants` selects.
        """
        settings = checkpoint.settings
        splits = {}
        for split in settings.splits:
            splits[split] = read_windows(checkpoint.spec, checkpoint.folder, data, split)
        total = sum(len(windows) for windows in splits.values())
        predictions = []
        scores = []
        with Reporter(checkpoint.name, total, progress, unit="questions") as reporter:
            for split, windows in splits.items():
                reporter.set_stage(f"answer {split}")
                batches = windows.make_batches(settings.batch_tokens, device)
                answers = find_answers(model, windows, batches)
                items = read_table(data, split, ["item"])["item"].to_pylist()
                values_of = measure_answers(answers, windows.answers)
                for score in score_questions(items, values_of):
                    scores.append(score._replace(split=split, readout=model.readout))
                columns = {
                    "split": [split] * len(answers),
                    "item": items,
                    "prediction": answers,
                    **values_of,
                }
                predictions.append(pa.table(columns))
                reporter.advance(len(answers))
        return EvaluationResult(pa.concat_tables(predictions), scores)

    def count_texts(self, checkpoint: Checkpoint) -> Collection[int]:
        """Return 2: a question and a paragraph."""
        return (2,)

    def predict(
        self, checkpoint: Checkpoint, model: SpanModel, inputs: Sequence[tuple[str, str]]
    ) -> list[str]:
        """Return the answer to each pair of a question and a paragraph: a part of the paragraph."""
        columns = {
            "question": [question for question, _ in inputs],
            "context": [paragraph for _, paragraph in inputs],
            # no right answer is given
            "start": [0] * len(inputs),
            "answer": [""] * len(inputs),
            "answers": [[] for _ in inputs],
        }
        windows = make_windows(checkpoint.spec, checkpoint.folder, columns)
        device = next(model.parameters()).device
        batches = windows.make_batches(checkpoint.settings.batch_tokens, device)
        return find_answers(model, windows, batches)


def score_questions(items: list[str], values_of: dict[str, list[float]]) -> list[Score]:
    """Return the scores of a split. items: of its rows. values_of: measure -> value of each row."""
    rows_by_prefix = {"": list(range(len(items)))}
    if find_questions(items) != items:  # some are variants
        rows_by_prefix["adversarial_"] = select_worst_variants(items, values_of["f1"])
    scores = []
    for prefix, rows in rows_by_prefix.items():
        for name, values in values_of.items():
            mean = float(np.mean(np.array(values)[rows]))
            scores.append(Score(prefix + name, 100 * mean, "percent", len(rows)))
    return scores
