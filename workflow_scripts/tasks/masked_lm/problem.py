"""Pre-training on masked words."""

from functools import partial
from pathlib import Path

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder.model import extract_vocabulary
from workflow_scripts.models.hugging_face import (
    load_tokenizer,
    use_gradient_checkpointing,
    write_companions,
)
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.masked_lm.batches import (
    SentencePairs,
    bucket_pairs,
    make_fixed_batches,
    make_random_batches,
    read_ordered_sentences,
)
from workflow_scripts.tasks.masked_lm.model import (
    MaskedLoss,
    Pretraining,
    build,
    compute_masked_nll,
)
from workflow_scripts.tasks.masked_lm.sememe_lexicon import read_sememe_lexicon
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec


def make_problem(spec: RunSpec, data: Path, init: Path | None, device: torch.device) -> Problem:
    """Make a model with random weights, and batches on `device` with new masks in each epoch.

    Validation: the mean log-likelihood of a masked token, in nats, of the model's first readout, with fixed masks. The
    tokenizer is that of the data.
    """
    if init:
        raise UserError(f"{spec.method_name} starts from random weights; leave --init out")
    settings = spec.training
    tokenizer = load_tokenizer(data)
    model = build(spec.model, tokenizer.get_vocab_size()).to(device)
    if settings.gradient_checkpointing:
        use_gradient_checkpointing(model.encoder)
    train = read_sentence_pairs(spec, data, "train")
    split = settings.selection.split if settings.selection else None
    valid = (
        make_fixed_batches(read_sentence_pairs(spec, data, split), settings.batch_tokens, device)
        if split
        else []
    )
    batches = make_random_batches(
        train, bucket_pairs(train, settings.batch_tokens, settings.batch_sentences), device
    )

    def validate(trained: Pretraining) -> dict[str, float]:
        nats = words = torch.zeros((), dtype=torch.float64)
        for batch in valid:
            states = next(iter(trained.compute_states(batch.ids, batch.real, batch.types).values()))
            found = compute_masked_nll(trained, states, batch)
            nats, words = nats + found.double().sum(), words + len(found)
        return {"log_likelihood": -float(nats / words)}

    loss = MaskedLoss(spec.problem.next_sentence)
    return Problem(
        model, loss, batches, validate, partial(write_companions, model.encoder.config, data)
    )


def read_sentence_pairs(spec: ModelSpec, data: Path, split: str) -> SentencePairs:
    """Read the pairs of a split, with the sememes of their words if the settings `problem` ask for them.

    Raises UserError if the last codebook has another number of codes than the data have sememes, or if an id is outside
    the vocabulary.
    """
    tokenizer = load_tokenizer(data)
    settings = spec.problem
    options: dict = {"next_sentence": settings.next_sentence}
    if settings.sememes:
        options["lexicon"], count = read_sememe_lexicon(data, tokenizer)
        codes = spec.model.settings.last_codes
        if count != codes:
            raise UserError(
                f"{spec.method_name}: model.last_codes is {codes}, but {data} has {count} sememes; set it to {count}"
            )
    vocabulary = extract_vocabulary(tokenizer, data / "tokenizer.json")
    first, second, options["orders"] = read_ordered_sentences(data, split)
    if options["orders"] is None:  # mapped files are too large to be read first
        known = tokenizer.get_vocab_size()
        for ids in (first.ids, second.ids):
            if len(ids) and (ids.min() < 0 or ids.max() >= known):
                where = f"{data / split}.parquet has ids outside the {known} of tokenizer.json"
                raise UserError(f"{where}; prepare the data again")
    return SentencePairs(first, second, vocabulary, settings.longest, **options)
