"""What pre-training on masked words needs: model, objective, batches, validation."""

from collections.abc import Sequence
from pathlib import Path

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.models import encoder
from workflow_scripts.models.hugging_face import companions, read_tokenizer
from workflow_scripts.models.pretraining import Pretraining, build
from workflow_scripts.models.settings import without_module
from workflow_scripts.objectives.masked_language_modelling import word_nats
from workflow_scripts.schema import Training
from workflow_scripts.training.build import build_objective
from workflow_scripts.training.loop import Task
from workflow_scripts.training.masked_batches import (
    Drawn,
    MaskedBatch,
    SentencePairs,
    batch_rows,
    fixed_batches,
    read_split,
    read_vocabulary,
)
from workflow_scripts.training.sememes import read_lexicon


def make_task(spec: dict, settings: Training, data: Path, init: Path | None, device: torch.device) -> Task:
    """A model of random weights, and batches on `device` whose masks are drawn anew in each epoch.

    Validation: the mean log-likelihood of a masked token, in nats, of the model's first readout, under masks that are
    always the same. The tokenizer is that of the data.
    """
    if init:
        raise UserError(f"{spec['task']}/{spec['method']} starts from random weights; leave --init out")
    sizes = without_module(spec["model"])
    tokenizer = read_tokenizer(data)
    model = build(sizes, tokenizer.get_vocab_size()).to(device)
    if settings.gradient_checkpointing:
        encoder.checkpoint_blocks(model.encoder)
    train = read_pairs(spec, data, "train")
    valid = fixed_batches(read_pairs(spec, data, settings.validation["split"]), settings.batch_tokens, device)
    batches = Drawn(train, batch_rows(train, settings.batch_tokens, settings.batch_sentences), device)

    write_beside = companions(model.encoder.config, data)
    return Task(model, build_objective(spec), batches, lambda model: likelihood(model, valid), write_beside)


def read_pairs(spec: dict, data: Path, split: str) -> SentencePairs:
    """The pairs of a split for the objective of `spec`: with sememes, where the objective weighs these.

    Raises UserError when the last codebook has another number of codes than the data have sememes.
    """
    tokenizer, objective = read_tokenizer(data), spec["objective"]
    options: dict = {"next_sentence": objective["next_sentence"]}
    if objective.get("decomposition"):
        options["lexicon"], count = read_lexicon(data, tokenizer)
        if count != spec["model"]["last_codes"]:
            raise UserError(
                f"{spec['task']}/{spec['method']}: model.last_codes is {spec['model']['last_codes']}, but {data} has "
                f"{count} sememes; set it to {count}"
            )
        options |= {name: objective[name] for name in ("masked_words", "several_pieces")}
    vocabulary = read_vocabulary(tokenizer, data / "tokenizer.json")
    first, second, options["orders"] = read_split(data, split)
    return SentencePairs(first, second, vocabulary, objective["longest"], **options)


def likelihood(model: Pretraining, batches: Sequence[MaskedBatch]) -> dict[str, float]:
    """Of the model's first readout: mean log-likelihood of a masked token, in nats. Call it in eval mode without
    gradients."""
    nats = words = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        found = word_nats(model, next(iter(model.hidden(batch.ids, batch.real, batch.types).values())), batch)
        nats, words = nats + found.double().sum(), words + len(found)
    return {"log_likelihood": -float(nats / words)}
