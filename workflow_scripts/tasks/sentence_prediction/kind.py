"""The kind of task sentence_prediction."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.tasks.base import Checkpoint, EvaluationResult, TaskKind
from workflow_scripts.tasks.encoders import load_fine_tuned
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.sentence_prediction.scoring import (
    PredictedItems,
    decide_predictions,
    predict_items,
    score_subsets,
)
from workflow_scripts.tasks.sentence_prediction.training_setup import (
    SentenceModel,
    decide_classes,
    read_sentences,
    tokenise_sentences,
)


class Kind(TaskKind):
    """Fine-tuning on sentences and pairs of them: classes, scores or cosines, by readout."""

    def load_model(self, checkpoint: Checkpoint) -> SentenceModel:
        """Load encoder and head; a head without weights in the checkpoint stays untrained.

        Raises UserError if a file is missing, broken or of another model.
        """
        outputs = len(checkpoint.labels) if checkpoint.labels else 1
        encoder_settings = checkpoint.spec.model.settings
        settings = checkpoint.spec.problem
        return load_fine_tuned(
            checkpoint, lambda encoder: SentenceModel(encoder, encoder_settings, settings, outputs)
        )

    def score(
        self,
        checkpoint: Checkpoint,
        model: SentenceModel,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> EvaluationResult:
        """Return predictions and scores of every split by readout.

        That is the readout of the head, or all readouts if cosines are compared. zero_states is the
        percentage of items with an all-zero [CLS].
        """
        settings = checkpoint.settings
        spec = checkpoint.spec
        splits = {}
        for split in settings.splits:
            splits[split] = read_sentences(spec, model.positions, checkpoint.folder, data, split)
        total = sum(len(sentences) for sentences in splits.values())
        predictions = []
        scores = []
        undefined = []
        with Reporter(checkpoint.name, total, progress, unit="items") as reporter:
            for split, sentences in splits.items():
                reporter.set_stage(f"score {split}")
                table = read_table(data, split, ["item", "subset", "label"])
                outputs_of = predict_items(
                    model, sentences, settings.batch_tokens, device, reporter
                )
                for readout, outputs in outputs_of.items():
                    predicted = decide_predictions(
                        outputs.values, has_classes=bool(checkpoint.labels)
                    )
                    measured = score_subsets(
                        predicted, table["label"].to_numpy(), table["subset"].to_numpy()
                    )
                    share = 100 * float(outputs.is_zero.mean())
                    zero_states = Score("zero_states", share, "percent", len(table))
                    for score in [*measured.scores, zero_states]:
                        scores.append(score._replace(split=split, readout=readout))
                    for missing in measured.undefined:
                        undefined.append(missing._replace(split=split, readout=readout))
                    predictions.append(make_prediction_table(split, readout, table, predicted))
        return EvaluationResult(pa.concat_tables(predictions), scores, undefined)

    def count_texts(self, checkpoint: Checkpoint) -> Collection[int]:
        """Return whether the data set of the training has sentences (1) or pairs (2).

        Return both if it does not say.
        """
        spec = checkpoint.spec
        has_pairs = None
        if isinstance(spec, RunSpec) and spec.data is not None:
            has_pairs = getattr(spec.data.options, "has_pairs", None)
        if has_pairs is None:
            return (1, 2)
        return (2,) if has_pairs else (1,)

    def predict(
        self, checkpoint: Checkpoint, model: SentenceModel, inputs: Sequence[str | tuple[str, str]]
    ) -> list[str] | list[float]:
        """Return the class or the score of each sentence, or of each pair of sentences."""
        table = make_item_table(inputs)
        sentences = tokenise_sentences(
            checkpoint.spec, model.positions, checkpoint.folder, table, "the items"
        )
        device = next(model.parameters()).device
        reporter = Reporter("", len(inputs), "none")
        outputs_of = predict_items(
            model, sentences, checkpoint.settings.batch_tokens, device, reporter
        )
        values = outputs_of[model.readout].values
        if checkpoint.labels is None:
            return values.tolist()
        classes, _ = decide_classes(values)
        return [checkpoint.labels[number] for number in classes]


def make_item_table(items: Sequence[str | tuple[str, str]]) -> pa.Table:
    """Make the columns first, second and label of sentences or pairs, without right labels."""
    first = []
    second = []
    for item in items:
        if isinstance(item, str):
            first.append(item)
            second.append(None)
        else:
            first_sentence, second_sentence = item
            first.append(first_sentence)
            second.append(second_sentence)
    if len({type(text) for text in second}) > 1:
        raise UserError("some items are sentences and some are pairs; predict them apart")
    return pa.table(
        {"first": first, "second": pa.array(second, pa.string()), "label": [0.0] * len(items)}
    )


def make_prediction_table(
    split: str, readout: str, table: pa.Table, predicted: PredictedItems
) -> pa.Table:
    """Make the table of the predictions by a readout, with a row for each row of the split."""
    count = len(table)
    likelihood: Any = predicted.likelihood
    if likelihood is None:
        likelihood = pa.nulls(count, pa.float32())
    return pa.table(
        {
            "split": [split] * count,
            "item": table["item"],
            "subset": table["subset"],
            "readout": [readout] * count,
            "label": table["label"].to_numpy(),
            "prediction": predicted.values.astype(float),
            "likelihood": likelihood,
        }
    )
