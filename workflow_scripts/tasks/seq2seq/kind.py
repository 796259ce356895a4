"""The kind of task seq2seq."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.progress import Reporter
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import has_column, read_table, read_vocabularies
from workflow_scripts.data.token_ids import UNK
from workflow_scripts.evaluation.scores import Score, score_shares
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.base import Checkpoint, EvaluationResult, TaskKind
from workflow_scripts.tasks.batching import to_sequences
from workflow_scripts.tasks.seq2seq.batches import read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import find_pieces, load_checkpoint
from workflow_scripts.tasks.seq2seq.decoding import COLUMNS, decode, join_tokens, score_with_modules
from workflow_scripts.tasks.seq2seq.scoring import match_structures
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqEvaluation


@dataclass(frozen=True)
class SplitToDecode:
    """A split of the evaluation: COLUMNS of its rows, and its column `item` if it has one."""

    name: str
    table: pa.Table
    items: pa.ChunkedArray | None

    def count_sentences(self) -> int:
        """Return the number of different source sentences: each is decoded once."""
        return len(self.table["source"].unique())

    def count_unknown_tokens(self) -> int:
        """Return the number of source and target tokens outside the vocabulary."""
        count = 0
        for column in ("source_ids", "target_ids"):
            count += int((to_sequences(self.table[column]).ids == UNK).sum())
        return count


@dataclass(frozen=True)
class Scoring:
    """What scoring a split needs besides its outputs.

    data: the folder of the prepared data. groups: the subsets of each group of subsets that gets a
    score of its own. with_items: whether the predictions have a column `item`.
    """

    settings: Seq2SeqEvaluation
    data: Path
    groups: dict[str, list[str]]
    with_items: bool


class Kind(TaskKind):
    """Sequence to sequence: outputs are decoded, and compared with the references."""

    def load_model(self, checkpoint: Checkpoint) -> nn.Module:
        """Load the model. Raises UserError if a file is missing or broken."""
        model, _ = load_checkpoint(checkpoint.folder)
        return model

    def score(
        self,
        checkpoint: Checkpoint,
        model: Any,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> EvaluationResult:
        """Return predictions and scores of every split.

        They are of the best checkpoint, and of each further one. The name of a further checkpoint
        is its readout. Identical source sentences are decoded once. If a split has the column
        `item`, which names what several of its rows have in common, the predictions have it, too.
        """
        settings = checkpoint.settings
        assert isinstance(settings, Seq2SeqEvaluation)
        target_words = read_vocabularies(checkpoint.folder)["target"]
        splits = read_splits(checkpoint, data)
        scoring = Scoring(
            settings,
            data,
            groups=read_mapping(DataFolder(data).manifest).get("subset_groups", {}),
            with_items=any(split.items is not None for split in splits),
        )
        readouts = [None, *checkpoint.spec.kept_checkpoints]
        sentences = len(readouts) * sum(split.count_sentences() for split in splits)
        predictions = []
        scores = []
        with Reporter(checkpoint.name, sentences, progress, unit="sentences") as reporter:
            for readout in readouts:
                if readout:
                    load_weight_file(model, checkpoint.folder / f"{readout}.safetensors")
                for split in splits:
                    reporter.set_stage(describe_stage(split.name, readout))
                    decoded = decode(model, split.table, target_words, settings, device, reporter)
                    of_split = score_split(decoded, split, readout, scoring)
                    predictions.append(of_split.predictions)
                    scores += of_split.scores
        return EvaluationResult(pa.concat_tables(predictions), scores)

    def predict(self, checkpoint: Checkpoint, model: Any, inputs: Sequence[str]) -> list[str]:
        """Decode sentences with the settings of the evaluation.

        The tokens of a sentence are separated by single spaces.
        """
        settings = checkpoint.settings
        assert isinstance(settings, Seq2SeqEvaluation)
        vocabulary = read_vocabularies(checkpoint.folder)
        id_of = {token: number for number, token in enumerate(vocabulary["source"])}
        ids = []
        for sentence in inputs:
            ids.append([id_of.get(token, UNK) for token in sentence.split(" ")])
        table = pa.table({"source": list(inputs), "source_ids": ids})
        pieces = find_pieces(checkpoint.spec.model, checkpoint.folder)
        if pieces is not None:
            table = pieces.tokenise(table)
        device = next(model.parameters()).device
        outputs = decode(model, table, vocabulary["target"], settings, device)
        return join_tokens(outputs, settings.joined)


def read_splits(checkpoint: Checkpoint, data: Path) -> list[SplitToDecode]:
    """Read the splits of the settings. Raises UserError for ids outside the vocabulary."""
    pieces = find_pieces(checkpoint.spec.model, checkpoint.folder)
    splits = []
    for name in checkpoint.settings.splits:
        table = read_table(data, name, COLUMNS)
        if pieces is None:
            read_pairs(data, name)  # refuses ids outside the vocabulary
        else:
            table = pieces.tokenise(table)
        items = None
        if has_column(data, name, "item"):
            items = read_table(data, name, ["item"])["item"]
        splits.append(SplitToDecode(name, table, items))
    return splits


def describe_stage(split: str, readout: str | None) -> str:
    """Return the stage that the progress shows."""
    if readout is None:
        return f"decode {split}"
    return f"decode {split} ({readout})"


def make_count_scores(split: SplitToDecode) -> list[Score]:
    """Return the scores of what is counted in the data: examples, and unknown tokens."""
    examples = len(split.table)
    counts = {"examples": examples, "out_of_vocabulary_tokens": split.count_unknown_tokens()}
    return [Score(metric, count, "count", examples) for metric, count in counts.items()]


def score_split(
    decoded: list[str], split: SplitToDecode, readout: str | None, scoring: Scoring
) -> EvaluationResult:
    """Return predictions and scores of a split, from what was decoded for each of its rows."""
    settings = scoring.settings
    outputs = join_tokens(decoded, settings.joined)
    references = join_tokens(split.table["target"].to_pylist(), settings.joined)
    # Text by text: an array of texts is as wide as the longest of them.
    pairs = zip(outputs, references, strict=True)
    correct = np.array([output == reference for output, reference in pairs], dtype=bool)
    subsets = split.table["subset"].to_numpy()
    scores = score_shares("exact_match", correct, subsets, scoring.groups)
    if not readout:
        scores += make_count_scores(split)
    scores += score_with_modules(outputs, references, scoring.data, split.name, settings)
    if settings.same_word:
        right = match_structures(outputs, references, settings.same_word)
        scores += score_shares("structure_match", right, subsets, scoring.groups)
    scores = [score._replace(split=split.name, readout=readout) for score in scores]
    predictions = make_predictions(split, readout, outputs, correct, scoring.with_items)
    return EvaluationResult(predictions, scores)


def make_predictions(
    split: SplitToDecode,
    readout: str | None,
    outputs: list[str],
    correct: np.ndarray,
    with_items: bool,
) -> pa.Table:
    """Make the table of the predictions of a split, with a row for each of its rows.

    with_items: whether it has a column `item`, which is empty for a split without items.
    """
    count = len(outputs)
    columns: dict[str, Any] = {
        "split": [split.name] * count,
        "readout": pa.array([readout] * count, pa.string()),
    }
    if with_items and split.items is not None:
        columns["item"] = split.items
    elif with_items:
        columns["item"] = pa.nulls(count, pa.string())
    columns["row"] = np.arange(count, dtype=np.int32)
    columns["subset"] = split.table["subset"].to_numpy()
    columns["prediction"] = outputs
    columns["correct"] = correct
    return pa.table(columns)
