"""Training of a seq2seq model."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table, read_vocabularies
from workflow_scripts.data.token_ids import PAD
from workflow_scripts.models.layers.transformer import DecoderLayer, EncoderLayer
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import Batch, make_bucketed_batches
from workflow_scripts.tasks.run_spec import NamedSettings, RunSpec
from workflow_scripts.tasks.seq2seq.batches import mark_phrases, read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import (
    TOKENIZER,
    build_model,
    find_pieces,
    write_config,
)
from workflow_scripts.tasks.seq2seq.decoding import COLUMNS, decode, join_tokens, score_with_modules
from workflow_scripts.tasks.seq2seq.settings import (
    Decoding,
    Seq2SeqTraining,
    Seq2SeqValidation,
)
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss

# validate(model in eval mode) -> scores by name
Validate = Callable[[nn.Module], dict[str, float]]


def list_compilable(model: nn.Module) -> list[nn.Module]:
    """Return the layers of a model that can be compiled, each for all shapes."""
    layers = (EncoderLayer, DecoderLayer)
    return [module for module in model.modules() if isinstance(module, layers)]


def set_up_training(
    spec: RunSpec, data: Path, init: Path | None, device: torch.device
) -> TrainingSetup:
    """Make model, loss, batches on `device`, and validation.

    The validation is teacher-forced, and decoded if the settings say so. With `phrases` in the
    spec, training batches hold the phrase of each source token. With `init`, the folder of a
    pre-trained encoder, the model reads its weights, and source sentences are split into its
    pieces. Raises UserError if a file is missing or broken, if an example is longer than
    `batch_tokens`, or for the `init` of a model that starts from random weights.
    """
    vocabulary = read_vocabularies(data)
    pieces = None
    if init:
        pieces = find_pieces(spec.model, init)
        if pieces is None:
            raise UserError(f"{spec.method_name} starts from random weights; leave --init out")
        vocabulary["source"] = pieces.list_pieces()
    settings = spec.training
    assert isinstance(settings, Seq2SeqTraining)
    model = build_model(spec.model, vocabulary)
    if init:
        model.read_pretrained(init)
    model = model.to(device)
    batches = make_training_batches(spec, data, pieces, device)
    validations = make_validations(settings, data, pieces, device)
    return TrainingSetup(
        model=model,
        loss=WordLoss(spec.problem.label_smoothing),
        batches=batches,
        validate=partial(validate_splits, validations),
        save_extra_files=partial(save_companions, spec.model, vocabulary, init),
        capturable=getattr(model, "capturable", False),  # a model of your own may not say it
        compilable=list_compilable(model),
    )


def make_training_batches(
    spec: RunSpec, data: Path, pieces: Any, device: torch.device
) -> Sequence[Batch]:
    """Make the batches of the split train, with phrases if the spec has a pattern of them."""
    settings = spec.training
    assert isinstance(settings, Seq2SeqTraining)
    pairs = read_pairs(data, "train", pieces)
    if spec.phrases is not None:
        sentences = read_table(data, "train", ["source"])["source"].to_pylist()
        pairs = mark_phrases(pairs, sentences, spec.phrases)
    shuffle_seed = spec.seed if settings.shuffle_rows else None
    try:
        return make_bucketed_batches(pairs, settings.batch_tokens, device, shuffle_seed)
    except ValueError as error:
        file = DataFolder(data).split("train")
        raise UserError(f"{file}: {error}; raise training.batch_tokens") from error


def save_companions(
    model: NamedSettings, vocabulary: dict[str, list[str]], init: Path | None, folder: Path
) -> None:
    """Write to `folder` what a checkpoint needs in addition to the weights."""
    write_config(folder, model, vocabulary)
    if init:
        shutil.copyfile(init / TOKENIZER, folder / TOKENIZER)


def make_validations(
    settings: Seq2SeqTraining, data: Path, pieces: Any, device: torch.device
) -> dict[str, Validate]:
    """Make the validation of the split that chooses the best weights, and of each further split.

    The keys are what comes before the names of its values: nothing, or `<split>_`.
    """
    if settings.selection is None:
        return {}
    assert isinstance(settings.selection, Seq2SeqValidation)
    splits = {"": settings.selection.split}
    for split in settings.kept_splits:
        splits[f"{split}_"] = split
    validations = {}
    for prefix, split in splits.items():
        validation = settings.selection.model_copy(update={"split": split})
        validations[prefix] = make_validation(
            data, validation, settings.batch_tokens, pieces, device
        )
    return validations


def validate_splits(validations: dict[str, Validate], model: nn.Module) -> dict[str, float]:
    """Return the values of all validations, each name with the prefix of its validation."""
    values = {}
    for prefix, validate in validations.items():
        for name, value in validate(model).items():
            values[prefix + name] = value
    return values


@dataclass(frozen=True)
class DecodedValidation:
    """validate(model) -> teacher-forced scores, and metrics of decoded outputs, such as BLEU.

    batches, table: the split, for the two. references: the joined tokens of each row of the table.
    """

    batches: Sequence[Batch]
    table: pa.Table
    references: list[str]
    target_words: list[str]
    data: Path
    split: str
    settings: Decoding
    device: torch.device

    def __call__(self, model: Any) -> dict[str, float]:
        """Return the scores of a model in eval mode; of the same name the decoded one counts."""
        decoded = decode(model, self.table, self.target_words, self.settings, self.device)
        outputs = join_tokens(decoded, self.settings.joined)
        decoded_scores = score_with_modules(
            outputs, self.references, self.data, self.split, self.settings
        )
        values = score_teacher_forced(model, self.batches)
        for score in decoded_scores:
            if score.subset == "all":
                values[score.metric] = score.value
        return values


def make_validation(
    data: Path,
    validation: Seq2SeqValidation,
    batch_tokens: int,
    pieces: Any,
    device: torch.device,
) -> Validate:
    """Return a function from a model in eval mode to its scores on the split of `validation`.

    The scores are teacher-forced. With `decoding` in the settings the metrics of decoded outputs,
    such as BLEU, follow.
    """
    split = validation.split
    pairs = read_pairs(data, split, pieces)
    longest = 1 + int(max(pairs.source.length.max(), pairs.target.length.max()))
    batches = make_bucketed_batches(pairs, max(batch_tokens, longest), device)
    if validation.decoding is None:
        return partial(score_teacher_forced, batches=batches)
    table = read_table(data, split, COLUMNS)
    return DecodedValidation(
        batches=batches,
        table=table,
        references=join_tokens(table["target"].to_pylist(), validation.decoding.joined),
        target_words=read_vocabularies(data)["target"],
        data=data,
        split=split,
        settings=validation.decoding,
        device=device,
    )


def find_exact_matches(logits: Tensor, target_out: Tensor) -> Tensor:
    """Return [B] bool: whether greedy decoding would give target_out [B, T].

    logits [B, T, V] are teacher-forced.
    """
    predicted = logits[..., PAD + 1 :].argmax(-1) + PAD + 1
    return ((predicted == target_out) | (target_out == PAD)).all(-1)


def score_teacher_forced(model: nn.Module, batches: Sequence[Batch]) -> dict[str, float]:
    """Return scores of a model in eval mode.

    Exact match (percent), mean cross-entropy and log-likelihood (nats per token).
    """
    right: Tensor | int = 0
    sentences = 0
    tokens: Tensor | int = 0
    nats: Tensor | float = 0.0
    for batch in batches:
        logits = model(batch.source, batch.target_in).logits.float()
        right = right + find_exact_matches(logits, batch.target_out).sum()
        sentences += len(batch.target_out)
        flat = batch.target_out.flatten()
        nats = nats + cross_entropy(logits.flatten(0, 1), flat, ignore_index=PAD, reduction="sum")
        tokens = tokens + (flat != PAD).sum()
    mean = float(nats) / float(tokens)
    return {
        "exact_match": 100 * float(right) / sentences,
        "cross_entropy": mean,
        "log_likelihood": -mean,
    }
