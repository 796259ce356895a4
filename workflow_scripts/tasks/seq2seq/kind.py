"""The kind of task seq2seq."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import has_column, read_table, read_vocabularies
from workflow_scripts.evaluation.scores import score_shares
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.base import Checkpoint, Problem, TaskKind
from workflow_scripts.tasks.batching import UNK, to_sequences
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.seq2seq.batches import read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import find_pieces, load_checkpoint
from workflow_scripts.tasks.seq2seq.decoding import COLUMNS, decode, join_tokens, score_with_modules
from workflow_scripts.tasks.seq2seq.problem import make_problem
from workflow_scripts.tasks.seq2seq.scoring import match_structures


class Kind(TaskKind):
    """Sequence to sequence: outputs are decoded, and compared with the references."""

    def make_problem(
        self, spec: RunSpec, data: Path, init: Path | None, device: torch.device
    ) -> Problem:
        """Make what trains a model: see `problem.make_problem`."""
        return make_problem(spec, data, init, device)

    def load_model(self, checkpoint: Checkpoint) -> nn.Module:
        """Load the model. Raises UserError if a file is missing or broken."""
        return load_checkpoint(checkpoint.folder)[0]

    def score(
        self,
        checkpoint: Checkpoint,
        model: nn.Module,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Return (predictions, score rows) of every split, for the best checkpoint and for each further one.

        The name of a further checkpoint is its readout. Identical source sentences are decoded once. If a split has the
        column `item`, which names what several of its rows have in common, the predictions have it, too.
        """
        spec, settings, folder = checkpoint.spec, checkpoint.settings, checkpoint.folder
        target_words = read_vocabularies(folder)["target"]
        groups = read_mapping(data / "dataset.json").get("subset_groups", {})
        splits = {split: read_table(data, split, COLUMNS) for split in settings.splits}
        shared = [split for split in settings.splits if has_column(data, split, "item")]
        items = {split: read_table(data, split, ["item"])["item"] for split in shared}
        if pieces := find_pieces(spec.model, folder):
            splits = {split: pieces.tokenise(table) for split, table in splits.items()}
        for split in () if pieces else settings.splits:
            read_pairs(data, split)  # refuses ids outside the vocabulary
        readouts = [None, *spec.kept_checkpoints]
        total = len(readouts) * sum(len(table["source"].unique()) for table in splits.values())
        predictions, scores = [], []
        with Reporter(checkpoint.name, total, progress, unit="sentences") as reporter:
            for readout in readouts:
                if readout:
                    load_weight_file(model, folder / f"{readout}.safetensors")
                for split, table in splits.items():
                    reporter.set_stage(
                        f"decode {split} ({readout})" if readout else f"decode {split}"
                    )
                    decoded = decode(model, table, target_words, settings, device, reporter)
                    outputs, targets = (
                        join_tokens(decoded, settings.joined),
                        table["target"].to_pylist(),
                    )
                    references, subsets = (
                        join_tokens(targets, settings.joined),
                        table["subset"].to_numpy(),
                    )
                    correct = np.array(outputs) == np.array(references)
                    rows = score_shares("exact_match", correct, subsets, groups)
                    if not readout:
                        unknown = sum(
                            int((to_sequences(table[side]).ids == UNK).sum())
                            for side in COLUMNS[-2:]
                        )
                        counts = {"examples": len(table), "out_of_vocabulary_tokens": unknown}
                        where = {"subset": "all", "unit": "count", "n": len(table)}
                        rows += [
                            {**where, "metric": name, "value": count}
                            for name, count in counts.items()
                        ]
                    rows += score_with_modules(outputs, references, data, split, settings)
                    if settings.same_word:
                        right = match_structures(outputs, references, settings.same_word)
                        rows += score_shares("structure_match", right, subsets, groups)
                    scores += [{"split": split, "readout": readout, **row} for row in rows]
                    names = {
                        "split": [split] * len(correct),
                        "readout": pa.array([readout] * len(correct), pa.string()),
                    }
                    if items:
                        names["item"] = items.get(split, pa.nulls(len(correct), pa.string()))
                    content = {
                        "row": np.arange(len(correct), dtype=np.int32),
                        "subset": subsets,
                        "prediction": outputs,
                    }
                    predictions.append(pa.table(names | content | {"correct": correct}))
        return pa.concat_tables(predictions), scores

    def predict(
        self, checkpoint: Checkpoint, model: nn.Module, sentences: Sequence[str]
    ) -> list[str]:
        """Decode sentences, whose tokens are separated by single spaces, with the settings of the evaluation."""
        vocabulary, settings = read_vocabularies(checkpoint.folder), checkpoint.settings
        ids = {token: number for number, token in enumerate(vocabulary["source"])}
        tokens = [[ids.get(token, UNK) for token in sentence.split(" ")] for sentence in sentences]
        table = pa.table({"source": list(sentences), "source_ids": tokens})
        if pieces := find_pieces(checkpoint.spec.model, checkpoint.folder):
            table = pieces.tokenise(table)
        outputs = decode(
            model, table, vocabulary["target"], settings, next(model.parameters()).device
        )
        return join_tokens(outputs, settings.joined)
