"""Training of a seq2seq model."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.prepared import read_table, read_vocabularies
from workflow_scripts.models.layers.transformer import DecoderLayer, EncoderLayer
from workflow_scripts.tasks.base import Problem, average_over
from workflow_scripts.tasks.batching import PAD, Batch, make_bucketed_batches
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.seq2seq.batches import mark_phrases, read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import (
    TOKENIZER,
    build_model,
    find_pieces,
    write_config,
)
from workflow_scripts.tasks.seq2seq.decoding import COLUMNS, decode, join_tokens, score_with_modules
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqEvaluation
from workflow_scripts.tasks.settings import Validation


def compute_word_cross_entropy(logits: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """(1 - eps) mean_n(-log p(y_n)) - eps mean_{n,v}(log p(v)), over the words that are not padding.

    logits [B, T, V], target [B, T] -> scalar, in nats.
    """
    flat_logits = logits.flatten(0, 1).float()
    flat_target = target.flatten()
    losses = cross_entropy(
        flat_logits, flat_target, label_smoothing=label_smoothing, reduction="none"
    )
    return average_over(losses, flat_target.ne(PAD))


@dataclass(frozen=True)
class WordLoss:
    """loss(model, batch) -> (cross-entropy of the target's words, parts)."""

    label_smoothing: float = 0.0

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts) of a batch."""
        logits = model(batch.source, batch.target_in).logits
        loss = compute_word_cross_entropy(logits, batch.target_out, self.label_smoothing)
        return loss, {"word": loss.detach()}


def list_compilable(model: nn.Module) -> list[nn.Module]:
    """Return the layers of a model that can be compiled, each for all shapes."""
    return [
        module for module in model.modules() if isinstance(module, (EncoderLayer, DecoderLayer))
    ]


def make_problem(spec: RunSpec, data: Path, init: Path | None, device: torch.device) -> Problem:
    """Make the model, batches on `device`, and the validation: teacher-forced, and decoded if the settings say so.

    With `phrases` in the spec, training batches hold the phrase of each source token. With `init`, the folder of a
    pre-trained encoder, the model reads its weights, and source sentences are split into its pieces. Raises UserError
    if a file is missing or broken, if an example is longer than `batch_tokens`, or for the `init` of a model that
    starts from random weights.
    """
    settings = spec.training
    vocabulary, pieces = read_vocabularies(data), None
    if init:
        pieces = find_pieces(spec.model, init)
        if pieces is None:
            raise UserError(f"{spec.method_name} starts from random weights; leave --init out")
        vocabulary["source"] = pieces.list_pieces()
    model = build_model(spec.model, vocabulary)
    if init:
        model.read_pretrained(init)
    model = model.to(device)
    loss = WordLoss(spec.problem.label_smoothing)
    train = read_pairs(data, "train", pieces)
    if spec.phrases is not None:
        train = mark_phrases(
            train, read_table(data, "train", ["source"])["source"].to_pylist(), spec.phrases
        )
    try:
        shuffle_seed = spec.seed if settings.shuffle_rows else None
        batches = make_bucketed_batches(train, settings.batch_tokens, device, shuffle_seed)
    except ValueError as error:
        raise UserError(
            f"{data / 'train.parquet'}: {error}; raise training.batch_tokens"
        ) from error

    def save_extra_files(folder: Path) -> None:
        write_config(folder, spec.model, vocabulary)
        if init:
            shutil.copyfile(init / TOKENIZER, folder / TOKENIZER)

    validations = {}
    if settings.selection:
        splits = {"": settings.selection.split}
        splits |= {f"{split}_": split for split in settings.kept_splits}
        for prefix, split in splits.items():
            selection = settings.selection.model_copy(update={"split": split})
            validations[prefix] = make_validation(
                data, selection, settings.batch_tokens, pieces, device
            )

    def validate(trained: nn.Module) -> dict[str, float]:
        scores = {prefix: validation(trained) for prefix, validation in validations.items()}
        return {
            prefix + name: value
            for prefix, found in scores.items()
            for name, value in found.items()
        }

    return Problem(
        model,
        loss,
        batches,
        validate,
        save_extra_files,
        capturable=getattr(model, "capturable", False),  # a model of your own may not say it
        compilable=list_compilable(model),
    )


def make_validation(
    data: Path, validation: Validation, batch_tokens: int, pieces: Any, device: torch.device
) -> Callable[[nn.Module], dict[str, float]]:
    """Return a function from a model in eval mode to its scores on the split of `validation`.

    The scores are teacher-forced. With `decoding` in the settings the metrics of decoded outputs, such as BLEU, follow.
    """
    split = validation.split
    pairs = read_pairs(data, split, pieces)
    longest = 1 + int(max(pairs.source.length.max(), pairs.target.length.max()))
    batches = make_bucketed_batches(pairs, max(batch_tokens, longest), device)
    if validation.decoding is None:
        return lambda trained: score_teacher_forced(trained, batches)
    decoding = {"splits": [split], **validation.decoding}
    settings = parse_as(Seq2SeqEvaluation, decoding, "settings: training.validation.decoding")
    table, words = read_table(data, split, COLUMNS), read_vocabularies(data)["target"]
    references = join_tokens(table["target"].to_pylist(), settings.joined)

    def validate(trained: nn.Module) -> dict[str, float]:
        outputs = join_tokens(decode(trained, table, words, settings, device), settings.joined)
        rows = score_with_modules(outputs, references, data, split, settings)
        decoded = {row["metric"]: row["value"] for row in rows if row["subset"] == "all"}
        return score_teacher_forced(trained, batches) | decoded

    return validate


def find_exact_matches(logits: Tensor, target_out: Tensor) -> Tensor:
    """Return [B] bool: whether greedy decoding would give target_out [B, T], by its teacher-forced logits [B, T, V]."""
    predicted = logits[..., PAD + 1 :].argmax(-1) + PAD + 1
    return ((predicted == target_out) | (target_out == PAD)).all(-1)


def score_teacher_forced(model: nn.Module, batches: Sequence[Batch]) -> dict[str, float]:
    """Return exact match (percent), mean cross-entropy and log-likelihood (nats per token) of a model in eval mode."""
    right = sentences = tokens = 0
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
