"""Fine-tuning of an encoder on sentences."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.evaluation.sentence_metrics import LOWEST_METRIC, compute_class_metrics, compute_correlations
from workflow_scripts.models.hugging_face import make_companion_writer
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.encoders import load_initial_encoder
from workflow_scripts.tasks.sentence_prediction.batches import (
    SentenceBatch,
    Sentences,
    StateBatch,
    make_sentence_batches,
    read_sentences,
)
from workflow_scripts.tasks.sentence_prediction.model import SentenceModel, build
from workflow_scripts.tasks.settings import Training

STATES_TOKENS = 16384  # of a batch that a frozen encoder reads once


def make_problem(spec: dict, settings: Training, data: Path, init: Path | None, device: torch.device) -> Problem:
    """Load the encoder of the folder `init` with a new head, and make batches on `device`.

    Validation: the metrics of `evaluation.sentence_metrics`; an undefined one counts as LOWEST_METRIC. The states of a
    frozen encoder are computed once. Raises UserError if a file is missing or broken.
    """
    names = read_json(data / "dataset.json")["labels"]  # None if labels are scores
    model = build(load_initial_encoder(spec, settings, init), spec, len(names) if names else 1).to(device)

    def read(split: str) -> Sentences:
        return read_sentences(spec, model.positions, init, data, split)

    if not (data / "train.parquet").exists():
        raise UserError(f"{spec['task']} has no training set; score on it what was trained on another task (`weights`)")
    train = make_batches(model, read("train"), settings.batch_tokens, settings.batch_sentences, device)
    split = settings.selection.get("split")
    valid = make_batches(model, read(split), max(settings.batch_tokens, STATES_TOKENS), None, device) if split else []

    def validate(trained: SentenceModel) -> dict[str, float]:
        predicted = torch.cat([trained(batch).float() for batch in valid]).cpu()
        label = torch.cat([batch.label for batch in valid]).cpu().numpy()
        if predicted.dim() == 1:
            found = compute_correlations(predicted.numpy(), label)[0]
        else:
            found = compute_class_metrics(*decide_classes(predicted), label)[0]
        return {settings.selection["metric"]: LOWEST_METRIC, **found}

    return Problem(model, compute_sentence_loss, train, validate, make_companion_writer(model.encoder.config, init))


def compute_sentence_loss(model: SentenceModel, batch: SentenceBatch | StateBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean of -log p(label) of classes, in nats, or mean squared error of scores; parts)."""
    predicted = model(batch).float()
    loss = mse_loss(predicted, batch.label) if predicted.dim() == 1 else cross_entropy(predicted, batch.label.long())
    return loss, {"sentence": loss.detach()}


def make_batches(
    model: SentenceModel, sentences: Sentences, batch_tokens: int, batch_sentences: int | None, device: torch.device
) -> list[SentenceBatch] | list[StateBatch]:
    """Make batches of all items: of tokens or, for a frozen encoder, of its states, in the order of the file."""
    if not model.frozen:
        return make_sentence_batches(sentences, batch_tokens, batch_sentences, device)[1]
    rows, made = make_sentence_batches(sentences, STATES_TOKENS, None, device)
    with torch.no_grad():
        states = torch.cat([model.eval().compute_cls_states(batch)[model.readout].float() for batch in made])
    model.train()
    states = states[torch.from_numpy(np.argsort(np.concatenate(rows))).to(device)]  # [N, T, d]
    label = torch.from_numpy(sentences.label.astype(np.float32)).to(device)
    size = batch_sentences or len(label)
    return [StateBatch(*both) for both in zip(states.split(size), label.split(size), strict=True)]


def decide_classes(scores: torch.Tensor) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (class with the greatest score, probability of class 1 if there are two classes) of scores [N, C]."""
    likelihood = scores.softmax(-1)[:, 1].numpy() if scores.size(1) == 2 else None
    return scores.argmax(-1).numpy(), likelihood
