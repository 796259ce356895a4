"""What a training of a sequence-to-sequence task needs: model, objective, batches, validation."""

import importlib
import shutil
from pathlib import Path

import torch
from torch import nn

from workflow_scripts.errors import UserError
from workflow_scripts.evaluation.exact_match import teacher_forced
from workflow_scripts.schema import Training
from workflow_scripts.training.batches import bucketed, training_batches
from workflow_scripts.training.build import build_model, build_objective
from workflow_scripts.training.loop import Task
from workflow_scripts.training.phrases import with_phrases
from workflow_scripts.training.prepared import read_table, read_vocabulary
from workflow_scripts.training.source_pieces import TOKENIZER, read_source_pairs, source_pieces


def make_task(spec: dict, settings: Training, data: Path, init: Path | None, device: torch.device) -> Task:
    """Batches lie on `device`; validation is teacher-forced, and also decodes where the settings name a module for it.
    With `phrases` in the spec, batches for training say which phrase a source token is part of.

    With `init`, the folder of a pre-trained encoder, the model reads its weights, and source sentences are cut into its
    pieces.

    Raises UserError when a file is missing or broken, when an example is longer than `batch_tokens`, or for the `init`
    of a model that starts from random weights.
    """
    vocabulary, pieces = read_vocabulary(data), None
    if init:
        pieces = source_pieces(spec, init)
        if pieces is None:
            raise UserError(f"{spec['task']}/{spec['method']} starts from random weights; leave --init out")
        vocabulary["source"] = pieces.vocabulary()
    model = build_model(spec, vocabulary)
    if init:
        model.read_pretrained(init)
    model = model.to(device)
    objective = build_objective(spec)
    train = read_source_pairs(data, "train", pieces)
    if "phrases" in spec:
        train = with_phrases(train, read_table(data, "train", ["source"])["source"].to_pylist(), spec["phrases"])
    try:
        shuffle_seed = spec["seed"] if settings.shuffle_rows else None
        batches = training_batches(train, settings.batch_tokens, device, shuffle_seed)
    except ValueError as error:
        raise UserError(f"{data / 'train.parquet'}: {error}; raise training.batch_tokens") from error
    valid = read_source_pairs(data, settings.validation["split"], pieces)
    longest = 1 + int(max(valid.source.length.max(), valid.target.length.max()))
    valid_batches = [batch.to(device) for batch in bucketed(valid, max(settings.batch_tokens, longest))]

    def write_tokenizer(folder: Path) -> None:
        shutil.copyfile(init / TOKENIZER, folder / TOKENIZER)

    write_beside = write_tokenizer if init else None
    if "module" not in settings.validation:
        return Task(model, objective, batches, lambda trained: teacher_forced(trained, valid_batches), write_beside)
    decoded = importlib.import_module(settings.validation["module"]).validator(data, settings.validation, device)

    def validate(trained: nn.Module) -> dict[str, float]:
        return teacher_forced(trained, valid_batches) | decoded(trained)

    return Task(model, objective, batches, validate, write_beside)
