"""Pre-training on masked words."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.models.encoder.model import extract_vocabulary
from workflow_scripts.models.hugging_face import (
    load_tokenizer,
    write_companions,
)
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import RaggedSequences
from workflow_scripts.tasks.gradient_checkpointing import set_gradient_checkpointing
from workflow_scripts.tasks.masked_lm.batches import (
    MaskedBatch,
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
from workflow_scripts.training.settings import RecomputingTraining


def set_up_training(
    spec: RunSpec, data: Path, init: Path | None, device: torch.device
) -> TrainingSetup:
    """Make a model with random weights, and batches on `device` with new masks in each epoch.

    Validation: the mean log-likelihood of a masked token, in nats, of the model's first readout,
    with fixed masks. The tokenizer is that of the data.
    """
    if init:
        raise UserError(f"{spec.method_name} starts from random weights; leave --init out")
    settings = spec.training
    assert isinstance(settings, RecomputingTraining)
    tokenizer = load_tokenizer(data)
    model = build(spec.model, tokenizer.get_vocab_size()).to(device)
    set_gradient_checkpointing(model.encoder, settings)
    train = read_sentence_pairs(spec, data, "train")
    fixed_batches: list[MaskedBatch] = []
    if settings.selection:
        pairs = read_sentence_pairs(spec, data, settings.selection.split)
        fixed_batches = make_fixed_batches(pairs, settings.batch_tokens, device)
    rows_of_batches = bucket_pairs(train, settings.batch_tokens, settings.batch_sentences)
    return TrainingSetup(
        model,
        MaskedLoss(spec.problem.next_sentence),
        make_random_batches(train, rows_of_batches, device),
        partial(validate_masked_words, fixed_batches),
        partial(write_companions, model.encoder.config, data),
    )


def validate_masked_words(batches: Sequence[MaskedBatch], model: Pretraining) -> dict[str, float]:
    """Return the mean log-likelihood of a masked token, in nats, of a model in eval mode."""
    nats = torch.zeros((), dtype=torch.float64)
    words = 0
    for batch in batches:
        nats_of_words = compute_masked_nll(model, model.compute_first_states(batch), batch)
        nats = nats + nats_of_words.double().sum()
        words += len(nats_of_words)
    return {"log_likelihood": -float(nats / words)}


def read_sentence_pairs(spec: ModelSpec, data: Path, split: str) -> SentencePairs:
    """Read the pairs of a split, with the sememes of their words if `problem` asks for them.

    Raises UserError if the last codebook has another number of codes than the data have sememes, or
    if an id is outside the vocabulary.
    """
    settings = spec.problem
    tokenizer = load_tokenizer(data)
    lexicon = None
    if settings.sememes:
        lexicon, count = read_sememe_lexicon(data, tokenizer)
        codes = spec.model.settings.last_codes
        if count != codes:
            raise UserError(
                f"{spec.method_name}: model.last_codes is {codes}, but {data} has {count} sememes; "
                f"set it to {count}"
            )
    first, second, orders = read_ordered_sentences(data, split)
    if orders is None:  # mapped files are too large to be read first
        _check_ids(first, second, tokenizer.get_vocab_size(), DataFolder(data).split(split))
    return SentencePairs(
        first,
        second,
        extract_vocabulary(tokenizer, DataFolder(data).tokenizer),
        limit=settings.longest,
        next_sentence=settings.next_sentence,
        lexicon=lexicon,
        orders=orders,
    )


def _check_ids(
    first: RaggedSequences, second: RaggedSequences, vocabulary_size: int, file: Path
) -> None:
    for ids in (first.ids, second.ids):
        if ids.min(initial=0) < 0 or ids.max(initial=0) >= vocabulary_size:
            raise UserError(
                f"{file} has ids outside the {vocabulary_size} of tokenizer.json; "
                "prepare the data again"
            )
