"""Pre-training of a small causal language model on text, in padded batches."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.causal_lm.model import EOS, PAD, build, find_bos_id
from workflow_scripts.models.hugging_face import load_tokenizer, write_companions
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.batching import RaggedSequences, TensorBatch, bucket_texts, to_sequences
from workflow_scripts.tasks.run_spec import RunSpec


@dataclass(frozen=True)
class TextBatch(TensorBatch):
    """Texts, padded on the right: ids [B, S] int64 that end with EOS; real [B, S] bool, false on padding."""

    ids: Tensor
    real: Tensor


def read_text_pieces(data: Path, split: str, bos: int | None, limit: int) -> RaggedSequences:
    """Read a split's token ids, `bos` (if any) before and EOS after each text, in pieces of at most `limit` tokens."""
    texts = to_sequences(read_table(data, split, ["ids"])["ids"])
    extra = 1 + (bos is not None)
    # Lay all texts out in one row, each with its special tokens.
    length = texts.length + extra
    start = np.cumsum(length) - length
    ids = np.full(int(length.sum()), EOS, np.int64)
    inside = np.ones(len(ids), bool)
    inside[start + length - 1] = False
    if bos is not None:
        ids[start], inside[start] = bos, False
    ids[inside] = texts.ids
    pieces = -(-length // limit)
    which = np.repeat(np.arange(len(length)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    piece_length = np.minimum(length[which] - number * limit, limit)
    several = piece_length > 1  # a single token predicts nothing
    return RaggedSequences(ids, (start[which] + number * limit)[several], piece_length[several])


def pad_texts(texts: RaggedSequences, rows: np.ndarray) -> TextBatch:
    """Make one padded batch of the texts of `rows`."""
    length = texts.length[rows]
    real = np.arange(length.max()) < length[:, None]
    position = np.minimum(texts.start[rows][:, None] + np.arange(length.max()), len(texts.ids) - 1)
    return TextBatch(
        torch.from_numpy(np.where(real, texts.ids[position], PAD)), torch.from_numpy(real)
    )


def make_problem(spec: RunSpec, data: Path, init: Path | None, device: torch.device) -> Problem:
    """Make a model with random weights, and batches on `device`. Raises UserError if `init` is given.

    Validation: the mean log-likelihood of a token given those before it (nats), and the perplexity.
    """
    if init:
        raise UserError(f"{spec.method_name} starts from random weights; leave --init out")
    settings = spec.training
    vocabulary = load_tokenizer(data).get_vocab_size()
    model = build(spec.model.settings, vocabulary).to(device)
    bos = find_bos_id(model, spec.model.settings.bos, spec.method_name)
    limit = model.config.max_position_embeddings

    def batches(split: str) -> list[TextBatch]:
        found = read_text_pieces(data, split, bos, limit)
        if found.ids.min() < 0 or found.ids.max() >= vocabulary:
            raise UserError(
                f"{data / split}.parquet has ids outside the {vocabulary} of tokenizer.json; make it again"
            )
        chosen = bucket_texts(
            found.length, max(settings.batch_tokens, limit), settings.batch_sentences
        )
        return [pad_texts(found, rows).to(device) for rows in chosen]

    valid = batches(settings.selection.split) if settings.selection else []
    label_smoothing = spec.problem.label_smoothing

    def loss(trained: nn.Module, batch: TextBatch) -> tuple[Tensor, dict[str, Tensor]]:
        mean = compute_token_nll(trained, batch, label_smoothing).mean()
        return mean, {"token": mean.detach()}

    def validate(trained: nn.Module) -> dict[str, float]:
        nats = tokens = torch.zeros((), dtype=torch.float64)
        for batch in valid:
            found = compute_token_nll(trained, batch)
            nats, tokens = nats + found.double().sum(), tokens + len(found)
        mean = float(nats / tokens)
        return {"log_likelihood": -mean, "perplexity": math.exp(mean)}

    return Problem(
        model, loss, batches("train"), validate, partial(write_companions, model.config, data)
    )


def compute_token_nll(model: nn.Module, batch: TextBatch, label_smoothing: float = 0.0) -> Tensor:
    """Return -log p(token | tokens before it) of every real token but the first of each text: [n], in nats."""
    states = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    predicted = batch.real[:, 1:]
    # No scores of the vocabulary are computed for padding, because they are the costly part.
    logits = model.get_output_embeddings()(states[predicted]).float()
    return cross_entropy(
        logits, batch.ids[:, 1:][predicted], label_smoothing=label_smoothing, reduction="none"
    )
