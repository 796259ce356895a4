"""Fine-tuning of an encoder on sentences and pairs of them: a class, a score, or the similarity of two sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.sentence_metrics import (
    LOWEST_METRIC,
    compute_class_metrics,
    compute_correlations,
)
from workflow_scripts.models.encoder.model import PAD, extract_vocabulary
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.models.hugging_face import load_tokenizer, write_companions
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.batching import (
    RaggedSequences,
    ShuffledBatches,
    TensorBatch,
    bucket_texts,
    shuffle_examples,
)
from workflow_scripts.tasks.encoders import EncoderWithHeads, join_sentences, load_initial_encoder
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec
from workflow_scripts.tasks.sentence_prediction.settings import Settings
from workflow_scripts.tasks.settings import Training

STATES_TOKENS = 16384  # of a batch that a frozen encoder reads once


@dataclass(frozen=True)
class SentenceBatch(TensorBatch):
    """Items of T texts: T is 1 for a sentence or a pair, 2 for a pair whose sentences are read separately.

    ids, types [B, T, S] int64: `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`, padded; types are 1 from the
    second sentence on. real [B, T, S] bool, false on padding. label [B] float32: number of a class, or a score.
    """

    ids: Tensor
    types: Tensor
    real: Tensor
    label: Tensor


@dataclass(frozen=True)
class StateBatch:
    """Items as states of a frozen encoder: states [B, T, d], label [B] float32."""

    states: Tensor
    label: Tensor

    def select(self, rows: Tensor) -> "StateBatch":
        """Return the items of `rows` [B]."""
        return StateBatch(self.states[rows], self.label[rows])


@dataclass(frozen=True)
class Sentences:
    """The items of a split, in the order of its file.

    second: None for single sentences. apart: whether the sentences of a pair are separate texts. limit: maximum tokens
    of a text with special ones; cls, sep: their ids.
    """

    first: RaggedSequences
    second: RaggedSequences | None
    label: np.ndarray
    apart: bool
    limit: int
    cls: int
    sep: int

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def length(self) -> np.ndarray:
        """Number of tokens of an item's longer text [N]."""
        one = self.first.length + 2
        if self.second is None:
            return np.minimum(one, self.limit)
        other = self.second.length + 2
        return np.minimum(np.maximum(one, other) if self.apart else one + other - 1, self.limit)

    def make_batch(self, rows: np.ndarray) -> SentenceBatch:
        """Make one padded batch of the items of `rows`."""
        sides = [(side, rows) for side in (self.first, self.second) if side is not None]
        texts = [(side, None) for side in sides] if self.apart or len(sides) == 1 else [sides]
        width = int(self.length[rows].max())
        tables = [
            join_sentences(*text, self.limit, self.cls, self.sep, width)[:3] for text in texts
        ]
        ids, types, real = (
            torch.from_numpy(np.stack(each, 1)) for each in zip(*tables, strict=True)
        )
        return SentenceBatch(
            ids, types, real, torch.from_numpy(self.label[rows].astype(np.float32))
        )

    def make_batches(
        self, batch_tokens: int, device: torch.device
    ) -> tuple[list[np.ndarray], list[SentenceBatch]]:
        """Return (rows of each batch, batches on `device`) of similar length; see `bucket_texts`."""
        rows = bucket_texts(self.length, batch_tokens)
        return rows, [self.make_batch(chosen).to(device) for chosen in rows]


def read_sentences(
    spec: ModelSpec, positions: int, tokenizer_folder: Path, data: Path, split: str
) -> Sentences:
    """Read and tokenise a split. Raises UserError if the run compares sentences and an item has only one."""
    table = read_table(data, split, ["first", "second", "label"])
    return tokenise_sentences(spec, positions, tokenizer_folder, table, f"{data / split}.parquet")


def tokenise_sentences(
    spec: ModelSpec, positions: int, tokenizer_folder: Path, table: pa.Table, where: str
) -> Sentences:
    """Tokenise columns first, second and label, at most `positions` tokens a text. Errors begin with `where`."""
    settings, tokenizer = spec.problem, load_tokenizer(tokenizer_folder)
    vocabulary = extract_vocabulary(tokenizer, tokenizer_folder / "tokenizer.json")
    single, apart = bool(table["second"].null_count), settings.prediction == "cosine"
    if apart and single:
        raise UserError(f"{where}: items have one sentence, and prediction cosine compares two")
    limit = min(settings.longest, positions)
    tokenizer.enable_truncation(limit)

    def tokenise(texts: list[str]) -> RaggedSequences:
        ids = [found.ids for found in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        length = np.array([len(row) for row in ids], np.int64)
        return RaggedSequences(
            np.concatenate([*ids, [0]]).astype(np.int64), np.cumsum(length) - length, length
        )

    first, second = (
        tokenise(table["first"].to_pylist()),
        None if single else tokenise(table["second"].to_pylist()),
    )
    return Sentences(
        first, second, table["label"].to_numpy(), apart, limit, vocabulary.cls, vocabulary.sep
    )


class SentenceModel(EncoderWithHeads):
    """Trained encoder with a random heads.sentence on the last layer's state of [CLS] of one readout.

    The head has `outputs` numbers: scores of several classes, or one number. With `prediction: cosine` there is none,
    and only the encoder is trained.
    """

    def __init__(
        self, inner: PreTrainedModel, s: EncoderSettings, settings: Settings, outputs: int
    ):
        super().__init__(inner, s.frozen)
        self.readout = s.readout
        self.heads = nn.ModuleDict()
        if settings.prediction == "head":
            width, dropout = inner.config.hidden_size, nn.Dropout(s.dropout)
            if settings.head_layers == 1:
                layers = [dropout, nn.Linear(width, outputs)]
            else:
                first, last = (
                    nn.Linear(width, settings.head_width),
                    nn.Linear(settings.head_width, outputs),
                )
                layers = [first, nn.Tanh(), dropout, last]
            self.heads["sentence"] = nn.Sequential(*layers)

    @property
    def positions(self) -> int:
        """Number of tokens of a text, at most. RoBERTa's positions begin after that of padding."""
        return self.encoder.config.max_position_embeddings - (1 + PAD) * (self.prefix == "roberta")

    def compute_cls_states(self, batch: SentenceBatch) -> dict[str, Tensor]:
        """Return the last layer's state of [CLS] of each of an item's T texts, by readout: [B, T, d]."""
        ids, real, types = (tensor.flatten(0, 1) for tensor in (batch.ids, batch.real, batch.types))
        found = self.compute_states(ids, real, types)
        return {
            name: states[:, 0].unflatten(0, batch.ids.shape[:2]) for name, states in found.items()
        }

    def forward(self, batch: SentenceBatch | StateBatch) -> Tensor:
        """Return scores of the classes [B, C], or numbers [B]."""
        return self.predict(
            batch.states
            if isinstance(batch, StateBatch)
            else self.compute_cls_states(batch)[self.readout]
        )

    def predict(self, states: Tensor) -> Tensor:
        """Predict from states [B, T, d]; a cosine is 0 if one of the two states is all zero."""
        if "sentence" in self.heads:
            return self.heads["sentence"](states[:, 0]).squeeze(-1)
        return torch.nn.functional.cosine_similarity(
            states[:, 0].float(), states[:, 1].float(), dim=-1
        )


def make_problem(spec: RunSpec, data: Path, init: Path | None, device: torch.device) -> Problem:
    """Load the encoder of the folder `init` with a new head, and make batches on `device`, of shuffled items.

    Validation: the metrics of `evaluation.sentence_metrics`; an undefined one counts as LOWEST_METRIC. The states of a
    frozen encoder are computed once. Raises UserError if a file is missing or broken.
    """
    names = read_json(data / "dataset.json")["labels"]  # None if labels are scores
    settings = spec.training
    outputs = len(names) if names else 1
    model = SentenceModel(
        load_initial_encoder(spec, init), spec.model.settings, spec.problem, outputs
    ).to(device)
    if not (data / "train.parquet").exists():
        raise UserError(
            f"{spec.task} has no training set; score on it what was trained on another task (`weights`)"
        )

    def read(split: str) -> Sentences:
        return read_sentences(spec, model.positions, init, data, split)

    train = shuffle_items(model, read("train"), settings, device)
    valid: Sequence[SentenceBatch | StateBatch] = []
    if settings.selection:
        items, tokens = read(settings.selection.split), max(settings.batch_tokens, STATES_TOKENS)
        valid = (
            [compute_states(model, items, device)]
            if model.frozen
            else items.make_batches(tokens, device)[1]
        )

    def validate(trained: SentenceModel) -> dict[str, float]:
        predicted = torch.cat([trained(batch).float() for batch in valid]).cpu()
        label = torch.cat([batch.label for batch in valid]).cpu().numpy()
        if predicted.dim() == 1:
            found = compute_correlations(predicted.numpy(), label)[0]
        else:
            found = compute_class_metrics(*decide_classes(predicted), label)[0]
        return {settings.selection.metric: LOWEST_METRIC, **found}

    return Problem(
        model,
        compute_sentence_loss,
        train,
        validate,
        partial(write_companions, model.encoder.config, init),
    )


def compute_sentence_loss(
    model: SentenceModel, batch: SentenceBatch | StateBatch
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean of -log p(label) of classes, in nats, or mean squared error of scores; parts)."""
    predicted = model(batch).float()
    loss = (
        mse_loss(predicted, batch.label)
        if predicted.dim() == 1
        else cross_entropy(predicted, batch.label.long())
    )
    return loss, {"sentence": loss.detach()}


def shuffle_items(
    model: SentenceModel, sentences: Sentences, settings: Training, device: torch.device
) -> ShuffledBatches:
    """Return shuffled batches of the items, or of the states that a frozen encoder has computed of them."""
    if not model.frozen:
        make = lambda rows: sentences.make_batch(rows).to(device)  # noqa: E731
        return shuffle_examples(
            sentences.length, settings.batch_tokens, settings.batch_sentences, make
        )
    items = compute_states(model, sentences, device)
    size = settings.batch_sentences or len(sentences)
    return ShuffledBatches(
        len(sentences), size, lambda rows: items.select(torch.from_numpy(rows).to(device))
    )


def compute_states(model: SentenceModel, sentences: Sentences, device: torch.device) -> StateBatch:
    """Compute the states of all items by a frozen encoder, in the order of the file."""
    rows, made = sentences.make_batches(STATES_TOKENS, device)
    with torch.no_grad():
        states = torch.cat(
            [model.eval().compute_cls_states(batch)[model.readout].float() for batch in made]
        )
    model.train()
    states = states[torch.from_numpy(np.argsort(np.concatenate(rows))).to(device)]  # [N, T, d]
    return StateBatch(states, torch.from_numpy(sentences.label.astype(np.float32)).to(device))


def decide_classes(scores: torch.Tensor) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (class with the greatest score, probability of class 1 if there are two classes) of scores [N, C]."""
    likelihood = scores.softmax(-1)[:, 1].numpy() if scores.size(1) == 2 else None
    return scores.argmax(-1).numpy(), likelihood
