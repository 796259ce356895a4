"""The kind of task masked_lm."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.weights import load_weights, read_weights
from workflow_scripts.tasks.base import Checkpoint, Problem, TaskKind
from workflow_scripts.tasks.masked_lm.batches import bucket_pairs
from workflow_scripts.tasks.masked_lm.model import Pretraining, build
from workflow_scripts.tasks.masked_lm.problem import make_problem, read_sentence_pairs
from workflow_scripts.tasks.masked_lm.scoring import score_pairs, score_rows
from workflow_scripts.tasks.run_spec import RunSpec


class Kind(TaskKind):
    """Pre-training on masked words and next sentences, scored by readout."""

    def make_problem(
        self, spec: RunSpec, data: Path, init: Path | None, device: torch.device
    ) -> Problem:
        """Make what trains a model: see `problem.make_problem`."""
        return make_problem(spec, data, init, device)

    def load_model(self, checkpoint: Checkpoint) -> Pretraining:
        """Load encoder and heads. Raises UserError if the file is missing, broken or of another run."""
        file = checkpoint.folder / "model.safetensors"
        weights = read_weights(file)
        (vocabulary,) = weights.get("heads.words.bias", torch.empty(1)).shape
        model = build(checkpoint.spec.model, vocabulary)
        load_weights(model, weights, file)
        return model

    @torch.no_grad()
    def score(
        self,
        checkpoint: Checkpoint,
        model: Pretraining,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Return (values of each pair and readout, score rows) of every split.

        `cross_entropy` of a masked token (nats), `mlm_accuracy` and, for models trained on it, `nsp_accuracy`
        (percent). The masks are the same for every run with next sentences, and for every run without.
        """
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
                    where = {"split": split, "subset": "all", "readout": readout}
                    scores += [where | row for row in score_rows(columns)]
        return pa.concat_tables(tables), scores
