"""The kind of task masked_lm."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.weights import load_weights, read_weights
from workflow_scripts.tasks.base import Checkpoint, EvaluationResult, TaskKind
from workflow_scripts.tasks.masked_lm.batches import SentencePairs, bucket_pairs
from workflow_scripts.tasks.masked_lm.model import Pretraining, build
from workflow_scripts.tasks.masked_lm.scoring import score_pairs, score_values
from workflow_scripts.tasks.masked_lm.training_setup import read_sentence_pairs


class Kind(TaskKind):
    """Pre-training on masked words and next sentences, scored by readout."""

    def load_model(self, checkpoint: Checkpoint) -> Pretraining:
        """Load encoder and heads.

        Raises UserError if the file is missing, broken or of another run.
        """
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
    ) -> EvaluationResult:
        """Return the values of each pair and readout of every split, and the scores.

        `cross_entropy` of a masked token (nats), `mlm_accuracy` and, for models trained on it,
        `nsp_accuracy` (percent). The masks are the same for every run with next sentences, and for
        every run without.
        """
        splits = {}
        for split in checkpoint.settings.splits:
            splits[split] = read_sentence_pairs(checkpoint.spec, data, split)
        total = sum(len(pairs) for pairs in splits.values())
        tables = []
        scores = []
        with Reporter(checkpoint.name, total, progress, unit="pairs") as reporter:
            for split, pairs in splits.items():
                reporter.set_stage(f"read {split}")
                values_by_readout = compute_pair_values(
                    model, pairs, checkpoint.settings.batch_tokens, device, reporter
                )
                for readout, values in values_by_readout.items():
                    columns = {
                        "split": [split] * len(pairs),
                        "readout": [readout] * len(pairs),
                        "pair": np.arange(len(pairs)),
                        **values,
                    }
                    tables.append(pa.table(columns))
                    for score in score_values(values):
                        scores.append(score._replace(split=split, readout=readout))
        return EvaluationResult(pa.concat_tables(tables), scores)


def compute_pair_values(
    model: Pretraining,
    pairs: SentencePairs,
    batch_tokens: int,
    device: torch.device,
    reporter: Reporter,
) -> dict[str, dict[str, np.ndarray]]:
    """Return readout -> columns [N] of `score_pairs`, in the order of the file, with fixed masks.

    There is no `follows_right` for models that are not trained on it.
    """
    values_by_readout: dict[str, dict[str, np.ndarray]] = {}
    rng = np.random.default_rng(0)
    for rows in bucket_pairs(pairs, batch_tokens, None):
        batch = pairs.make_batch(rows, rng).to(device)
        states_by_readout = model.compute_states(batch.ids, batch.real, batch.types)
        for readout, states in states_by_readout.items():
            columns = values_by_readout.setdefault(readout, {})
            for name, values in score_pairs(model, states, batch).items():
                column = columns.setdefault(name, np.empty(len(pairs)))
                column[rows] = values.cpu()
        reporter.advance(len(rows))
    if not pairs.next_sentence:
        for columns in values_by_readout.values():
            del columns["follows_right"]
    return values_by_readout
