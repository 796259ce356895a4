"""Fine-tuning of an encoder on sentences and pairs of them.

It predicts a class, a score, or the similarity of two sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.sentence_metrics import (
    LOWEST_METRIC,
    compute_class_metrics,
    compute_correlations,
)
from workflow_scripts.models.encoder.model import SpecialTokens, extract_vocabulary
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.models.hugging_face import load_tokenizer, write_companions
from workflow_scripts.tasks.base import ExampleLoss, TrainingSetup
from workflow_scripts.tasks.batching import (
    RaggedSequences,
    RowsBatch,
    ShuffledBatches,
    TensorBatch,
    bucket_texts,
    find_file_order,
    shuffle_examples,
)
from workflow_scripts.tasks.encoders import (
    EncoderWithHeads,
    SelectedSequences,
    join_sentences,
    load_initial_encoder,
)
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec
from workflow_scripts.tasks.sentence_prediction.settings import Settings
from workflow_scripts.training.settings import RecomputingTraining

STATES_TOKENS = 16384  # of a batch that a frozen encoder reads once


@dataclass(frozen=True)
class SentenceBatch(TensorBatch):
    """Items of T texts.

    T is 1 for a sentence or a pair, 2 for a pair whose sentences are read separately. ids, types
    [B, T, S] int64: `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`, padded; types are 1
    from the second sentence on. real [B, T, S] bool, false on padding. label [B] float32: number of
    a class, or a score.
    """

    ids: Tensor
    types: Tensor
    real: Tensor
    label: Tensor


@dataclass(frozen=True)
class StateBatch(TensorBatch):
    """Items as states of a frozen encoder: states [B, T, d], label [B] float32."""

    states: Tensor
    label: Tensor

    def select(self, rows: Tensor) -> "StateBatch":
        """Return the items of `rows` [B]."""
        return StateBatch(self.states[rows], self.label[rows])


@dataclass(frozen=True)
class Sentences:
    """The items of a split, in the order of its file.

    second: None for single sentences. apart: whether the sentences of a pair are separate texts.
    limit: maximum tokens of a text with special ones.
    """

    first: RaggedSequences
    second: RaggedSequences | None
    label: np.ndarray
    apart: bool
    limit: int
    special: SpecialTokens

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def length(self) -> np.ndarray:
        """Number of tokens of an item's longer text [N]."""
        longest = self.first.length + 2
        if self.second is not None:
            second = self.second.length + 2
            if self.apart:
                longest = np.maximum(longest, second)
            else:
                # Both have [CLS] and [SEP], and a pair one [CLS] alone.
                longest = longest + second + self.special.separators - 2
        return np.minimum(longest, self.limit)

    def make_batch(self, rows: np.ndarray) -> SentenceBatch:
        """Make one padded batch of the items of `rows`."""
        width = int(self.length[rows].max())
        ids = []
        types = []
        real = []
        for first, second in self._list_texts(rows):
            text = join_sentences(first, second, self.limit, self.special, width)
            ids.append(text.ids)
            types.append(text.types)
            real.append(text.real)
        return SentenceBatch(
            ids=torch.from_numpy(np.stack(ids, 1)),
            types=torch.from_numpy(np.stack(types, 1)),
            real=torch.from_numpy(np.stack(real, 1)),
            label=torch.from_numpy(self.label[rows].astype(np.float32)),
        )

    def _list_texts(
        self, rows: np.ndarray
    ) -> list[tuple[SelectedSequences, SelectedSequences | None]]:
        """Return (first sentences, second sentences or None) of each of an item's T texts."""
        first = SelectedSequences(self.first, rows)
        if self.second is None:
            return [(first, None)]
        second = SelectedSequences(self.second, rows)
        if self.apart:
            return [(first, None), (second, None)]
        return [(first, second)]

    def make_batches(
        self, batch_tokens: int, device: torch.device
    ) -> list[RowsBatch[SentenceBatch]]:
        """Make batches of items of similar length, on `device`."""
        batches = []
        for rows in bucket_texts(self.length, batch_tokens):
            batches.append(RowsBatch(rows, self.make_batch(rows).to(device)))
        return batches


def read_sentences(
    spec: ModelSpec, positions: int, tokenizer_folder: Path, data: Path, split: str
) -> Sentences:
    """Read and tokenise a split.

    Raises UserError if the run compares sentences and an item has only one, or for a label that is
    no class of the task.
    """
    table = read_table(data, split, ["first", "second", "label"])
    file = DataFolder(data).split(split)
    sentences = tokenise_sentences(spec, positions, tokenizer_folder, table, str(file))
    classes = read_json(DataFolder(data).manifest).get("labels")  # None if labels are scores
    if classes:
        check_classes(sentences.label, len(classes), file)
    return sentences


def tokenise_sentences(
    spec: ModelSpec, positions: int, tokenizer_folder: Path, table: pa.Table, source: str
) -> Sentences:
    """Tokenise columns first, second and label, at most `positions` tokens a text.

    source: what errors begin with.
    """
    settings = spec.problem
    tokenizer = load_tokenizer(tokenizer_folder)
    vocabulary = extract_vocabulary(tokenizer, tokenizer_folder / "tokenizer.json")
    are_single = bool(table["second"].null_count)
    apart = settings.prediction == "cosine"
    if apart and are_single:
        raise UserError(f"{source}: items have one sentence, and prediction cosine compares two")
    limit = min(settings.longest, positions)
    tokenizer.enable_truncation(limit)
    first = tokenise_texts(tokenizer, table["first"].to_pylist())
    second = None
    if not are_single:
        second = tokenise_texts(tokenizer, table["second"].to_pylist())
    return Sentences(
        first,
        second,
        label=table["label"].to_numpy(),
        apart=apart,
        limit=limit,
        special=vocabulary.special,
    )


def tokenise_texts(tokenizer: Tokenizer, texts: list[str]) -> RaggedSequences:
    """Tokenise texts without special tokens."""
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ids = [encoding.ids for encoding in encodings]
    length = np.array([len(row) for row in ids], np.int64)
    start = np.cumsum(length) - length
    # One more id, because numpy concatenates no empty list.
    return RaggedSequences(np.concatenate([*ids, [0]]).astype(np.int64), start, length)


class SentenceModel(EncoderWithHeads):
    """Trained encoder with a random heads.sentence on the state of [CLS] of one readout.

    The state is that of the last layer. The head has `outputs` numbers: scores of several classes,
    or one number. With `prediction: cosine` there is none, and only the encoder is trained.
    """

    def __init__(
        self,
        inner: PreTrainedModel,
        encoder_settings: EncoderSettings,
        settings: Settings,
        outputs: int,
    ):
        super().__init__(inner, encoder_settings.frozen)
        self.readout = encoder_settings.readout
        self.heads = nn.ModuleDict()
        if settings.prediction == "head":
            width = inner.config.hidden_size
            self.heads["sentence"] = make_head(settings, width, outputs, encoder_settings.dropout)

    @property
    def positions(self) -> int:
        """Number of tokens of a text, at most. RoBERTa's positions begin after that of padding."""
        positions = self.encoder.config.max_position_embeddings
        if self.prefix == "roberta":
            return positions - (1 + self.encoder.config.pad_token_id)
        return positions

    def compute_cls_states(self, batch: SentenceBatch) -> dict[str, Tensor]:
        """Return the last layer's states of [CLS] by readout, of an item's T texts: [B, T, d]."""
        items_and_texts = batch.ids.shape[:2]
        states_by_readout = self.compute_states(
            batch.ids.flatten(0, 1), batch.real.flatten(0, 1), batch.types.flatten(0, 1)
        )
        cls_states = {}
        for readout, states in states_by_readout.items():
            cls_states[readout] = states[:, 0].unflatten(0, items_and_texts)
        return cls_states

    def forward(self, batch: SentenceBatch | StateBatch) -> Tensor:
        """Return scores of the classes [B, C], or numbers [B]."""
        if isinstance(batch, StateBatch):
            return self.predict(batch.states)
        return self.predict(self.compute_cls_states(batch)[self.readout])

    def predict(self, states: Tensor) -> Tensor:
        """Predict from states [B, T, d]; a cosine is 0 if one of the two states is all zero."""
        if "sentence" in self.heads:
            return self.heads["sentence"](states[:, 0]).squeeze(-1)
        return torch.nn.functional.cosine_similarity(
            states[:, 0].float(), states[:, 1].float(), dim=-1
        )


def count_training_examples(spec: RunSpec, data: Path, init: Path | None) -> int:
    """Return how many examples a pass over the training set has: its rows."""
    return read_json(DataFolder(data).manifest)["splits"]["train"]["rows"]


def check_classes(labels: np.ndarray, count: int, file: Path) -> None:
    """Raise UserError unless each of the labels [N] is the number of one of `count` classes."""
    wrong = ~np.isin(labels, np.arange(count))
    if wrong.any():
        raise UserError(
            f"{file}: a label is {labels[wrong][0]:g}, and the {count} classes have the numbers 0 "
            f"to {count - 1}; correct the data set's prepare"
        )


def make_head(settings: Settings, width: int, outputs: int, dropout: float) -> nn.Sequential:
    """Make a head with random weights on states of `width` features."""
    if settings.head_layers == 1:
        return nn.Sequential(nn.Dropout(dropout), nn.Linear(width, outputs))
    first = nn.Linear(width, settings.head_width)
    last = nn.Linear(settings.head_width, outputs)
    return nn.Sequential(first, nn.Tanh(), nn.Dropout(dropout), last)


def set_up_training(
    spec: RunSpec, data: Path, init: Path | None, device: torch.device
) -> TrainingSetup:
    """Load the encoder of the folder `init` with a new head, and make batches on `device`.

    The batches are of shuffled items. Validation: the metrics of `evaluation.sentence_metrics`; an
    undefined one counts as LOWEST_METRIC. The states of a frozen encoder are computed once. Raises
    UserError if a file is missing or broken.
    """
    settings = spec.training
    names = read_json(DataFolder(data).manifest).get("labels")  # None if labels are scores
    outputs = len(names) if names else 1
    assert isinstance(settings, RecomputingTraining)
    encoder = load_initial_encoder(spec, init)
    assert init is not None, "load_initial_encoder refuses it"
    model = SentenceModel(encoder, spec.model.settings, spec.problem, outputs).to(device)
    if not DataFolder(data).split("train").exists():
        raise UserError(
            f"{spec.task} has no training set; "
            "score on it what was trained on another task (`weights`)"
        )
    train = read_sentences(spec, model.positions, init, data, "train")
    batches = shuffle_items(model, train, settings, device)
    validate = None
    if settings.selection:
        valid = read_sentences(spec, model.positions, init, data, settings.selection.split)
        if model.frozen:
            valid_batches = [compute_states(model, valid, device)]
        else:
            batch_tokens = max(settings.batch_tokens, STATES_TOKENS)
            valid_batches = [batch for _, batch in valid.make_batches(batch_tokens, device)]
        validate = partial(validate_sentences, valid_batches, settings.selection.metric)
    return TrainingSetup(
        model,
        ExampleLoss(compute_sentence_loss),
        batches,
        validate,
        partial(write_companions, model.encoder.config, init),
    )


def validate_sentences(
    batches: Sequence[SentenceBatch | StateBatch], metric: str, model: SentenceModel
) -> dict[str, float]:
    """Return the metrics of a model in eval mode; `metric` is LOWEST_METRIC if undefined."""
    predicted = torch.cat([model(batch).float() for batch in batches]).cpu()
    label = torch.cat([batch.label for batch in batches]).cpu().numpy()
    if predicted.dim() == 1:
        values, _ = compute_correlations(predicted.numpy(), label)
    else:
        classes, likelihood = decide_classes(predicted)
        values, _ = compute_class_metrics(classes, likelihood, label)
    return {metric: LOWEST_METRIC, **values}


def compute_sentence_loss(
    model: SentenceModel, batch: SentenceBatch | StateBatch
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (loss, parts): the mean of -log p(label) of classes, in nats.

    Of scores it is the mean squared error.
    """
    predicted = model(batch).float()
    if predicted.dim() == 1:
        loss = mse_loss(predicted, batch.label)
    else:
        loss = cross_entropy(predicted, batch.label.long())
    return loss, {"sentence": loss.detach()}


def shuffle_items(
    model: SentenceModel, sentences: Sentences, settings: RecomputingTraining, device: torch.device
) -> ShuffledBatches:
    """Return shuffled batches of the items.

    For a frozen encoder they are of the states that it has computed of the items.
    """
    if model.frozen:
        items = compute_states(model, sentences, device)
        size = settings.batch_sentences or len(sentences)
        return ShuffledBatches(
            len(sentences), size, lambda rows: items.select(torch.from_numpy(rows).to(device))
        )
    return shuffle_examples(
        sentences.length,
        settings.batch_tokens,
        settings.batch_sentences,
        lambda rows: sentences.make_batch(rows).to(device),
    )


def compute_states(model: SentenceModel, sentences: Sentences, device: torch.device) -> StateBatch:
    """Compute the states of all items by a frozen encoder, in the order of the file."""
    batches = sentences.make_batches(STATES_TOKENS, device)
    model.eval()
    states_of_batches = []
    with torch.no_grad():
        for _, batch in batches:
            states = model.compute_cls_states(batch)[model.readout]
            states_of_batches.append(states.float())
    model.train()
    order = torch.from_numpy(find_file_order(batches)).to(device)
    states = torch.cat(states_of_batches)[order]  # [N, T, d]
    return StateBatch(states, torch.from_numpy(sentences.label.astype(np.float32)).to(device))


def decide_classes(scores: Tensor) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (class with the greatest score, probability of class 1) of scores [N, C].

    The probability is None unless there are two classes.
    """
    classes = scores.argmax(-1).numpy()
    if scores.size(1) != 2:
        return classes, None
    return classes, scores.softmax(-1)[:, 1].numpy()
