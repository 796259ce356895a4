"""The kind of task language_modelling."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from transformers import PreTrainedModel

from workflow_scripts.common.progress import Reporter
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.models.causal_lm.model import find_bos_id, load_causal_lm
from workflow_scripts.tasks.base import Checkpoint, EvaluationResult, TaskKind
from workflow_scripts.tasks.batching import RaggedSequences, bucket_texts
from workflow_scripts.tasks.language_modelling.training_setup import (
    compute_token_nll,
    pad_texts,
    read_text_pieces,
)


class Kind(TaskKind):
    """Pre-training on text, scored by perplexity."""

    def load_model(self, checkpoint: Checkpoint) -> PreTrainedModel:
        """Load the model. Raises UserError if a file is missing or broken."""
        return load_causal_lm(checkpoint.folder, checkpoint.spec.model.settings.family)

    @torch.no_grad()
    def score(
        self,
        checkpoint: Checkpoint,
        model: PreTrainedModel,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> EvaluationResult:
        """Return nats and tokens of each piece of text of every split, and the scores.

        The score is the perplexity of the split.
        """
        bos = find_bos_id(model, checkpoint.spec.model.settings.bos, checkpoint.name)
        limit = model.config.max_position_embeddings
        splits = {}
        for split in checkpoint.settings.splits:
            splits[split] = read_text_pieces(data, split, bos, limit)
        total = sum(len(texts) for texts in splits.values())
        tables = []
        scores = []
        with Reporter(checkpoint.name, total, progress, unit="texts") as reporter:
            for split, texts in splits.items():
                reporter.set_stage(f"read {split}")
                nats = compute_text_nats(
                    model, texts, checkpoint.settings.batch_tokens, device, reporter
                )
                tokens = texts.length - 1
                perplexity = math.exp(nats.sum() / tokens.sum())
                count = int(tokens.sum())
                scores.append(Score("perplexity", perplexity, "perplexity", count, split=split))
                columns = {"split": [split] * len(texts), "nats": nats, "tokens": tokens}
                tables.append(pa.table(columns))
        return EvaluationResult(pa.concat_tables(tables), scores)


def compute_text_nats(
    model: PreTrainedModel,
    texts: RaggedSequences,
    batch_tokens: int,
    device: torch.device,
    reporter: Reporter,
) -> np.ndarray:
    """Return -log p of each text [N], the sum over its tokens but the first, in nats."""
    nats = np.empty(len(texts))
    for rows in bucket_texts(texts.length, batch_tokens):
        batch = pad_texts(texts, rows).to(device)
        shape = batch.ids[:, 1:].shape
        nats_of_tokens = torch.zeros(shape, dtype=torch.float64, device=device)
        nats_of_tokens[batch.real[:, 1:]] = compute_token_nll(model, batch).double()
        nats[rows] = nats_of_tokens.sum(-1).cpu()
        reporter.advance(len(rows))
    return nats
