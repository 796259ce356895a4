"""What the pre-training of a small causal language model on text needs: model, objective, batches, validation."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.causal_lm import EOS, PAD, build
from workflow_scripts.models.hugging_face import companions, read_tokenizer
from workflow_scripts.models.settings import without_module
from workflow_scripts.objectives.language_modelling import token_nats
from workflow_scripts.schema import Training
from workflow_scripts.training.batches import Sequences, bucketed_rows, sequences
from workflow_scripts.training.build import build_objective
from workflow_scripts.training.loop import Task
from workflow_scripts.training.prepared import read_table
from workflow_scripts.training.prompt_batches import TextBatch, begin_token


def make_task(spec: dict, settings: Training, data: Path, init: Path | None, device: torch.device) -> Task:
    """A model of random weights (or that of the folder `init`), and batches on `device`.

    Validation: the mean log-likelihood of a token, in nats. The tokenizer is that of the data.
    """
    sizes = without_module(spec["model"])
    if init:
        raise UserError(f"{spec['task']}/{spec['method']} starts from random weights; leave --init out")
    model = build(sizes, read_tokenizer(data).get_vocab_size()).to(device)
    bos = begin_token(model, sizes.get("bos", False), f"{spec['task']}/{spec['method']}")
    limit = model.config.max_position_embeddings

    def batches(split: str) -> list[TextBatch]:
        found = read_texts(data, split, bos, limit)
        chosen = bucketed_rows(
            found.length, np.zeros_like(found.length), max(settings.batch_tokens, limit), settings.batch_sentences
        )
        return [text_batch(found, rows).to(device) for rows in chosen]

    valid = batches(settings.validation["split"])

    write_beside = companions(model.config, data)
    return Task(model, build_objective(spec), batches("train"), lambda model: likelihood(model, valid), write_beside)


def read_texts(data: Path, split: str, bos: int | None, limit: int) -> Sequences:
    """The token ids of a split, each text with `bos` before it (where given) and EOS behind it, cut into pieces of at
    most `limit` tokens."""
    texts = sequences(read_table(data, split, ["ids"])["ids"])
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
    return Sequences(ids, (start[which] + number * limit)[several], piece_length[several])


def text_batch(texts: Sequences, rows: np.ndarray) -> TextBatch:
    """The texts of `rows` as one padded batch."""
    length = texts.length[rows]
    real = np.arange(length.max()) < length[:, None]
    position = np.minimum(texts.start[rows][:, None] + np.arange(length.max()), len(texts.ids) - 1)
    return TextBatch(torch.from_numpy(np.where(real, texts.ids[position], PAD)), torch.from_numpy(real))


def likelihood(model: nn.Module, batches: Sequence[TextBatch]) -> dict[str, float]:
    """Mean log-likelihood of a token given those before it (nats), and the perplexity, exp of its negative.

    Call it in eval mode without gradients.
    """
    nats = tokens = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        found = token_nats(model, batch)
        nats, tokens = nats + found.double().sum(), tokens + len(found)
    mean = float(nats / tokens)
    return {"log_likelihood": -mean, "perplexity": math.exp(mean)}
