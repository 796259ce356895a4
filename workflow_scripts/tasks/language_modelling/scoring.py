"""Perplexity of a causal language model on text."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from workflow_scripts.common.options import drop_name
from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.causal_lm.model import find_bos_id, load_causal_lm
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.language_modelling.problem import compute_token_nll, pad_texts, read_text_pieces
from workflow_scripts.tasks.settings import Evaluation


@torch.no_grad()
def score(
    run: dict[str, Any], checkpoint: Path, data: Path, settings: Evaluation, device: torch.device, progress: str
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (nats and tokens of each piece of text, score rows) with the perplexity of each split."""
    sizes = drop_name(run["spec"]["model"])
    model = load_causal_lm(checkpoint, sizes).to(device).eval()
    limit = model.config.max_position_embeddings
    bos = find_bos_id(model, sizes.get("bos", False), run["run"])
    splits = {split: read_text_pieces(data, split, bos, limit) for split in settings.splits}
    tables, scores = [], []
    with Reporter(run["run"], sum(len(texts.length) for texts in splits.values()), progress, unit="texts") as reporter:
        for split, texts in splits.items():
            reporter.set_stage(f"read {split}")
            nats, length = np.empty(len(texts.length)), texts.length
            for rows in bucket_texts(length, settings.batch_tokens):
                batch = pad_texts(texts, rows).to(device)
                per_token = torch.zeros(batch.ids[:, 1:].shape, dtype=torch.float64, device=device)
                per_token[batch.real[:, 1:]] = compute_token_nll(model, batch).double()
                nats[rows] = per_token.sum(-1).cpu()
                reporter.advance(len(rows))
            tokens = length - 1
            whole = math.exp(nats.sum() / tokens.sum())
            scores.append({"metric": "perplexity", "value": whole, "unit": "perplexity", "n": int(tokens.sum())})
            scores[-1] |= {"split": split, "subset": "all"}
            tables.append(pa.table({"split": [split] * len(nats), "nats": nats, "tokens": tokens}))
    return pa.concat_tables(tables), scores
