"""The kind of task language_modelling."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.causal_lm.model import find_bos_id, load_causal_lm
from workflow_scripts.tasks.base import Checkpoint, Problem, TaskKind
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.language_modelling.problem import (
    compute_token_nll,
    make_problem,
    pad_texts,
    read_text_pieces,
)
from workflow_scripts.tasks.run_spec import RunSpec


class Kind(TaskKind):
    """Pre-training on text, scored by perplexity."""

    def make_problem(
        self, spec: RunSpec, data: Path, init: Path | None, device: torch.device
    ) -> Problem:
        """Make what trains a model: see `problem.make_problem`."""
        return make_problem(spec, data, init, device)

    def load_model(self, checkpoint: Checkpoint) -> nn.Module:
        """Load the model. Raises UserError if a file is missing or broken."""
        return load_causal_lm(checkpoint.folder, checkpoint.spec.model.settings.family)

    @torch.no_grad()
    def score(
        self,
        checkpoint: Checkpoint,
        model: nn.Module,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Return (nats and tokens of each piece of text, score rows) with the perplexity of each split."""
        bos = find_bos_id(model, checkpoint.spec.model.settings.bos, checkpoint.name)
        limit = model.config.max_position_embeddings
        splits = {
            split: read_text_pieces(data, split, bos, limit) for split in checkpoint.settings.splits
        }
        tables, scores = [], []
        with Reporter(
            checkpoint.name, sum(map(len, splits.values())), progress, unit="texts"
        ) as reporter:
            for split, texts in splits.items():
                reporter.set_stage(f"read {split}")
                nats = np.empty(len(texts))
                for rows in bucket_texts(texts.length, checkpoint.settings.batch_tokens):
                    batch = pad_texts(texts, rows).to(device)
                    per_token = torch.zeros(
                        batch.ids[:, 1:].shape, dtype=torch.float64, device=device
                    )
                    per_token[batch.real[:, 1:]] = compute_token_nll(model, batch).double()
                    nats[rows] = per_token.sum(-1).cpu()
                    reporter.advance(len(rows))
                tokens = texts.length - 1
                whole = math.exp(nats.sum() / tokens.sum())
                row = {
                    "metric": "perplexity",
                    "value": whole,
                    "unit": "perplexity",
                    "n": int(tokens.sum()),
                }
                scores.append({"split": split, "subset": "all", **row})
                tables.append(
                    pa.table({"split": [split] * len(nats), "nats": nats, "tokens": tokens})
                )
        return pa.concat_tables(tables), scores
