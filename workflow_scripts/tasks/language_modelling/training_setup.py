"""Pre-training of a small causal language model on text, in padded batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.causal_lm.model import EOS, PAD, build, find_bos_id, get_unembedding
from workflow_scripts.models.hugging_face import load_tokenizer, place_on_device, write_companions
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import RaggedSequences, TensorBatch, bucket_texts, to_sequences
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.training.settings import TextTraining


@dataclass(frozen=True)
class TextBatch(TensorBatch):
    """Texts, padded on the right.

    ids [B, S] int64: texts end with EOS. real [B, S] bool: false on padding.
    """

    ids: Tensor
    real: Tensor


def read_text_pieces(data: Path, split: str, bos: int | None, limit: int) -> RaggedSequences:
    """Read a split's token ids, in pieces of at most `limit` tokens.

    `bos` (if any) is before and EOS after each text.
    """
    texts = to_sequences(read_table(data, split, ["ids"])["ids"])
    extra = 1 + (bos is not None)
    # Lay all texts out in one row, each with its special tokens.
    length = texts.length + extra
    start = np.cumsum(length) - length
    ids = np.full(int(length.sum()), EOS, np.int64)
    inside = np.ones(len(ids), bool)
    inside[start + length - 1] = False
    if bos is not None:
        ids[start] = bos
        inside[start] = False
    ids[inside] = texts.ids
    pieces = -(-length // limit)
    text = np.repeat(np.arange(len(length)), pieces)  # of each piece
    number = np.arange(len(text)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    piece_start = start[text] + number * limit
    piece_length = np.minimum(length[text] - number * limit, limit)
    has_several = piece_length > 1  # a single token predicts nothing
    return RaggedSequences(ids, piece_start[has_several], piece_length[has_several])


def pad_texts(texts: RaggedSequences, rows: np.ndarray) -> TextBatch:
    """Make one padded batch of the texts of `rows`."""
    length = texts.length[rows]
    real = np.arange(length.max()) < length[:, None]
    position = np.minimum(texts.start[rows][:, None] + np.arange(length.max()), len(texts.ids) - 1)
    ids = np.where(real, texts.ids[position], PAD)
    return TextBatch(torch.from_numpy(ids), torch.from_numpy(real))


def set_up_training(
    spec: RunSpec, data: Path, init: Path | None, device: torch.device
) -> TrainingSetup:
    """Make a model with random weights, and batches on `device`.

    Raises UserError if `init` is given.
    Validation: the mean log-likelihood of a token given those before it (nats), and the perplexity.
    """
    if init:
        raise UserError(f"{spec.method_name} starts from random weights; leave --init out")
    settings = spec.training
    assert isinstance(settings, TextTraining)
    vocabulary_size = load_tokenizer(data).get_vocab_size()
    model = build(spec.model.settings, vocabulary_size)
    place_on_device(model, device)
    bos = find_bos_id(model, spec.model.settings.bos, spec.method_name)
    limit = model.config.max_position_embeddings
    validate = None
    if settings.selection:
        valid_texts = read_text_pieces(data, settings.selection.split, bos, limit)
        check_text_ids(valid_texts, vocabulary_size, data, settings.selection.split)
        valid_batches = make_text_batches(valid_texts, settings, limit, device)
        validate = partial(validate_texts, valid_batches)
    texts = read_text_pieces(data, "train", bos, limit)
    check_text_ids(texts, vocabulary_size, data, "train")
    return TrainingSetup(
        model,
        partial(compute_text_loss, label_smoothing=spec.problem.label_smoothing),
        make_text_batches(texts, settings, limit, device),
        validate,
        partial(write_companions, model.config, data),
    )


def check_text_ids(texts: RaggedSequences, vocabulary_size: int, data: Path, split: str) -> None:
    """Raise UserError if a split has ids outside the vocabulary."""
    if texts.ids.min() < 0 or texts.ids.max() >= vocabulary_size:
        raise UserError(
            f"{data / split}.parquet has ids outside the {vocabulary_size} of tokenizer.json; "
            "make it again"
        )


def make_text_batches(
    texts: RaggedSequences, settings: TextTraining, limit: int, device: torch.device
) -> list[TextBatch]:
    """Make batches of similar length on `device`. A batch has room for at least `limit` tokens."""
    batch_tokens = max(settings.batch_tokens, limit)
    rows_of_batches = bucket_texts(texts.length, batch_tokens, settings.batch_sentences)
    return [pad_texts(texts, rows).to(device) for rows in rows_of_batches]


def compute_text_loss(
    model: PreTrainedModel, batch: TextBatch, label_smoothing: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean of -log p(token | tokens before it), in nats; parts)."""
    loss = compute_token_nll(model, batch, label_smoothing).mean()
    return loss, {"token": loss.detach()}


def validate_texts(batches: Sequence[TextBatch], model: PreTrainedModel) -> dict[str, float]:
    """Return the mean log-likelihood of a token (nats), and the perplexity, in eval mode."""
    nats = torch.zeros((), dtype=torch.float64)
    tokens = 0
    for batch in batches:
        nats_of_tokens = compute_token_nll(model, batch)
        nats = nats + nats_of_tokens.double().sum()
        tokens += len(nats_of_tokens)
    mean = float(nats / tokens)
    return {"log_likelihood": -mean, "perplexity": math.exp(mean)}


def compute_token_nll(
    model: PreTrainedModel, batch: TextBatch, label_smoothing: float = 0.0
) -> Tensor:
    """Return -log p(token | tokens before it) of the real tokens, in nats: [n].

    The first token of each text has none.
    """
    states = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    predicted = batch.real[:, 1:]
    # No scores of the vocabulary are computed for padding, because they are the costly part.
    logits = get_unembedding(model)(states[predicted]).float()
    target = batch.ids[:, 1:][predicted]
    return cross_entropy(logits, target, label_smoothing=label_smoothing, reduction="none")
