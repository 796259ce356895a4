"""The kind of task sentence_prediction."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.tasks.base import Checkpoint, Problem, TaskKind
from workflow_scripts.tasks.encoders import load_fine_tuned
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.sentence_prediction.problem import (
    SentenceModel,
    decide_classes,
    make_problem,
    read_sentences,
    tokenise_sentences,
)
from workflow_scripts.tasks.sentence_prediction.scoring import predict_items, score_subsets


class Kind(TaskKind):
    """Fine-tuning on sentences and pairs of them: classes, scores or cosines, by readout."""

    def make_problem(
        self, spec: RunSpec, data: Path, init: Path | None, device: torch.device
    ) -> Problem:
        """Make what trains a model: see `problem.make_problem`."""
        return make_problem(spec, data, init, device)

    def load_model(self, checkpoint: Checkpoint) -> SentenceModel:
        """Load encoder and head. Raises UserError if a file is missing or broken."""
        outputs = len(checkpoint.labels) if checkpoint.labels else 1
        settings = checkpoint.spec.model.settings, checkpoint.spec.problem
        return load_fine_tuned(
            checkpoint, lambda encoder: SentenceModel(encoder, *settings, outputs)
        )

    def score(
        self,
        checkpoint: Checkpoint,
        model: SentenceModel,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Return (predictions, score rows) of every split by readout: that of the head, or all if cosines are compared.

        zero_states is the percentage of items with an all-zero [CLS].
        """
        settings = checkpoint.settings
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
                found, zero = predict_items(
                    model, sentences, settings.batch_tokens, device, reporter
                )
                for readout, predicted in found.items():
                    made, likelihood = (
                        decide_classes(predicted)
                        if checkpoint.labels
                        else (predicted.numpy(), None)
                    )
                    rows = score_subsets(made, likelihood, label, subsets, bool(checkpoint.labels))
                    share = 100 * float(zero[readout].mean())
                    rows.append(
                        {"subset": "all", "metric": "zero_states", "value": share, "n": len(label)}
                    )
                    scores += [
                        {"split": split, "readout": readout, "unit": "percent", **row}
                        for row in rows
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

    def predict(
        self, checkpoint: Checkpoint, model: SentenceModel, items: Sequence[str | tuple[str, str]]
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
        scores = predict_items(model, sentences, tokens, device, Reporter("", len(items), "none"))[
            0
        ][model.readout]
        if checkpoint.labels is None:
            return scores.tolist()
        return [checkpoint.labels[number] for number in decide_classes(scores)[0]]
