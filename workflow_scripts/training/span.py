"""What the fine-tuning of an encoder on questions needs: model, objective, batches, validation."""

from pathlib import Path

import numpy as np
import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.span_metrics import exact_match, f1
from workflow_scripts.models import encoder
from workflow_scripts.models.hugging_face import companions, read_tokenizer
from workflow_scripts.models.settings import read_settings, without_module
from workflow_scripts.models.span import SpanModel, best_spans, build
from workflow_scripts.objectives.sentence_settings import SpanSettings
from workflow_scripts.schema import Training
from workflow_scripts.training.build import build_objective
from workflow_scripts.training.loop import Task
from workflow_scripts.training.span_batches import SpanBatch, Windows, read_windows


def make_task(spec: dict, settings: Training, data: Path, init: Path | None, device: torch.device) -> Task:
    """The encoder of the folder `init` with a new head, and batches on `device`. Validation: exact match and F1
    (percent). Raises UserError when a file is missing or broken."""
    if not init:
        raise UserError(f"{spec['task']}/{spec['method']} starts from a pre-trained encoder; name it with --init")
    model_settings = without_module(spec["model"])
    inner = encoder.load(init, model_settings)
    if settings.gradient_checkpointing:
        encoder.checkpoint_blocks(inner)
    model = build(inner, model_settings).to(device)
    train = read_split(spec, init, data, "train").batches(settings.batch_tokens, settings.batch_sentences, device)[1]
    valid = read_split(spec, init, data, settings.validation["split"])
    batches = valid.batches(settings.batch_tokens, None, device)
    longest = span_settings(spec).longest_answer

    def validate(trained: SpanModel) -> dict[str, float]:
        given = found_answers(trained, valid, batches, longest)
        return {
            name: 100 * float(np.mean([measure(*pair) for pair in zip(given, valid.answers, strict=True)]))
            for name, measure in (("exact_match", exact_match), ("f1", f1))
        }

    write_beside = companions(model.encoder.config, init)
    return Task(model, build_objective(spec), train, validate, write_beside)


def span_settings(spec: dict) -> SpanSettings:
    """How the run of `spec` asks its questions."""
    return read_settings(SpanSettings, without_module(spec["objective"]), "objective")


def read_split(spec: dict, tokenizer_folder: Path, data: Path, split: str) -> Windows:
    """The windows of a split. Raises UserError when one can be longer than the model's positions."""
    settings, positions = span_settings(spec), spec["model"]["positions"]
    if settings.longest > positions:
        raise UserError(
            f"{spec['task']}/{spec['method']}: objective.longest is {settings.longest}, more than the model's "
            f"{positions} positions"
        )
    file = tokenizer_folder / "tokenizer.json"
    return read_windows(data, split, read_tokenizer(tokenizer_folder), file, settings)


@torch.no_grad()
def found_answers(
    model: SpanModel, windows: Windows, batches: tuple[list[np.ndarray], list[SpanBatch]], longest: int
) -> list[str]:
    """The answer to each question: the text of the likeliest span of all its windows."""
    best = np.full(len(windows.contexts), -np.inf)
    answers = [""] * len(windows.contexts)
    for rows, batch in zip(*batches, strict=True):
        scores, first, last = (part.cpu().numpy() for part in best_spans(model(batch).float(), longest))
        for row, score, begin, end in zip(rows, scores, first, last, strict=True):
            item = windows.item[row]
            if score > best[item]:
                best[item] = score
                answers[item] = windows.contexts[item][windows.offsets[row][begin, 0] : windows.offsets[row][end, 1]]
    return answers
