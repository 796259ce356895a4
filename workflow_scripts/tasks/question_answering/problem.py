"""Fine-tuning of an encoder on questions."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from workflow_scripts.evaluation.span_metrics import compute_exact_match, compute_f1
from workflow_scripts.models.hugging_face import make_companion_writer
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.encoders import load_initial_encoder
from workflow_scripts.tasks.question_answering.batches import SpanBatch, Windows, read_windows
from workflow_scripts.tasks.question_answering.model import SpanModel, build, find_best_spans
from workflow_scripts.tasks.settings import Training


def make_problem(spec: dict, settings: Training, data: Path, init: Path | None, device: torch.device) -> Problem:
    """Load the encoder of the folder `init` with a new head, and make batches on `device`.

    Validation: exact match and F1 (percent). Raises UserError if a file is missing or broken.
    """
    model = build(load_initial_encoder(spec, settings, init), spec["model"]).to(device)
    read = read_windows(spec, init, data, "train")
    train = read.make_batches(settings.batch_tokens, settings.batch_sentences, device)[1]
    split = settings.selection.get("split")
    valid = read_windows(spec, init, data, split) if split else read
    batches = valid.make_batches(settings.batch_tokens, None, device) if split else ([], [])

    def validate(trained: SpanModel) -> dict[str, float]:
        given = find_answers(trained, valid, batches)
        return {
            name: 100 * float(np.mean([measure(*pair) for pair in zip(given, valid.answers, strict=True)]))
            for name, measure in (("exact_match", compute_exact_match), ("f1", compute_f1))
        }

    return Problem(model, compute_span_loss, train, validate, make_companion_writer(model.encoder.config, init))


def compute_span_loss(model: SpanModel, batch: SpanBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean over windows of the mean of -log p(first token) and -log p(last token), in nats; parts).

    In a window without the answer both tokens are [CLS].
    """
    scores = model(batch).float()  # [B, 2, S]
    loss = cross_entropy(scores.flatten(0, 1), batch.ends.flatten())
    return loss, {"span": loss.detach()}


@torch.no_grad()
def find_answers(model: SpanModel, windows: Windows, batches: tuple[list[np.ndarray], list[SpanBatch]]) -> list[str]:
    """Return the answer to each question: the text of the most probable span of all its windows."""
    best = np.full(len(windows.contexts), -np.inf)
    answers = [""] * len(windows.contexts)
    for rows, batch in zip(*batches, strict=True):
        found = find_best_spans(model(batch).float(), windows.longest_answer)
        for row, score, begin, end in zip(rows, *(part.cpu().numpy() for part in found), strict=True):
            item = windows.item[row]
            if score > best[item]:
                best[item] = score
                answers[item] = windows.contexts[item][windows.offsets[row][begin, 0] : windows.offsets[row][end, 1]]
    return answers
