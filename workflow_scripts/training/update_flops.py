"""Count the floating-point operations and the memory of an update without running it.

The real model is built of torch's fake tensors, which have shapes and no numbers, and is given a
batch of the real shape. Nothing that a training runs imports this module.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.base import Loss, TrainingSetup
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.gradient_checkpointing import set_gradient_checkpointing
from workflow_scripts.tasks.language_modelling.training_setup import TextBatch, compute_text_loss
from workflow_scripts.tasks.masked_lm.batches import MASKED, MaskedBatch
from workflow_scripts.tasks.masked_lm.model import MaskedLoss
from workflow_scripts.tasks.masked_lm.model import build as build_pretraining
from workflow_scripts.tasks.prompt.training_setup import PromptBatch, compute_answer_loss
from workflow_scripts.tasks.question_answering.training_setup import (
    SpanBatch,
    SpanModel,
    compute_span_loss,
)
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.sentence_prediction.training_setup import (
    SentenceBatch,
    SentenceModel,
    StateBatch,
    compute_sentence_loss,
)
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training.run import add_objective
from workflow_scripts.training.update_count import BYTES_PER_PARAMETER, BatchSizes, UpdateCount

CLASSES = 3  # of a sentence: their number hardly changes the cost
SEMEMES = 20  # of a word, at most


class AssumedSelection(TorchDispatchMode):
    """Lets a boolean index select a share of the positions, and counts operations.

    How many it selects depends on numbers, which the tensors here do not have. A number that Python
    asks for is 0.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.operations = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Run an operation, with numbered positions in the place of a boolean index."""
        if func.namespace == "aten" and not func.is_view:
            self.operations += 1
        aten = torch.ops.aten
        if func in (aten.index.Tensor, aten.index_put.default, aten._index_put_impl_.default):
            values, indices, *rest = args
            args = (values, self._make_positions(indices), *rest)
        elif func is aten.nonzero.default:
            (flags,) = args
            return torch.empty(round(self.share * flags.numel()), flags.dim(), dtype=torch.int64)
        elif func is aten._local_scalar_dense.default:
            return 0
        return func(*args, **(kwargs or {}))

    def _make_positions(self, indices: list[Tensor | None]) -> list[Tensor | None]:
        numbered: list[Tensor | None] = []
        for index in indices:
            if index is not None and index.dtype == torch.bool:
                selected = round(self.share * index.numel())
                positions = torch.empty(selected, dtype=torch.int64)
                numbered += [positions] * index.dim()
            else:
                numbered.append(index)
        return numbered


@dataclass
class StoredBytes:
    """Counts the bytes that operations store for the backward pass, weights left out."""

    weights: set[int]
    total: int = 0
    storages: list[torch.UntypedStorage] = field(default_factory=list)  # so that no number returns

    def store(self, tensor: Tensor) -> Tensor:
        """Count a tensor once."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.weights:
            self.weights.add(storage._cdata)
            self.storages.append(storage)
            self.total += storage.nbytes()
        return tensor


def count_update(spec: RunSpec, sizes: BatchSizes) -> UpdateCount:
    """Count an update of a training: forward and backward pass, all in fp32.

    Where the objective cannot run without numbers, the loss of the task is counted alone, and where
    that cannot, 6 x parameters x tokens; `how` says so. Raises UserError for a kind of task whose
    updates cannot be counted.
    """
    if spec.kind not in SETUPS:
        raise UserError(
            f"task {spec.task}: updates of the kind '{spec.kind}' cannot be counted before one is "
            "run; after a training `plan --record` writes its step time"
        )
    with FakeTensorMode():
        return _count_fake(spec, sizes)


def _count_fake(spec: RunSpec, sizes: BatchSizes) -> UpdateCount:
    """Count an update, with tensors that have no numbers."""
    setup, batch = SETUPS[spec.kind](spec, sizes)
    parameters = sum(weight.numel() for weight in setup.model.parameters())
    trained = sum(weight.numel() for weight in setup.model.parameters() if weight.requires_grad)
    states = 4 * parameters + (BYTES_PER_PARAMETER - 4) * trained
    attempts = [(add_objective(setup, spec.objective).loss, "counted")]
    if spec.objective is not None:
        attempts.append((setup.loss, "counted without the objective"))
    for loss, how in attempts:
        try:
            counted = count_pass(setup.model, loss, batch, SELECTED.get(spec.kind, MASKED))
        except (NotImplementedError, RuntimeError):  # an operation that needs numbers
            continue
        memory = states + counted.stored
        return UpdateCount(counted.flops, counted.operations, parameters, memory, how)
    flops = 6 * trained * sizes.batch_tokens
    return UpdateCount(flops, 0, parameters, states, "6 x parameters x tokens")


class CountedPass(NamedTuple):
    """FLOPs and operations of forward and backward pass, and bytes stored for the latter."""

    flops: int
    operations: int
    stored: int


def count_pass(model: nn.Module, loss: Loss, batch: Any, share: float) -> CountedPass:
    """Count what a loss and its gradients need: FLOPs, started operations and stored bytes.

    share: of the positions, that a selection by booleans keeps; how many are true needs numbers.
    """
    storages = {weight.untyped_storage()._cdata for weight in model.parameters()}
    stored = StoredBytes(storages)
    selection = AssumedSelection(share)
    counter = FlopCounterMode(display=False)
    with ExitStack() as stack:
        stack.enter_context(selection)
        stack.enter_context(counter)
        stack.enter_context(saved_tensors_hooks(stored.store, lambda tensor: tensor))
        value, _ = loss(model.train(), batch)
        value.backward()
    return CountedPass(counter.get_total_flops(), selection.operations, stored.total)


def make_ids(*shape: int) -> Tensor:
    """Return ids of this shape, without numbers."""
    return torch.empty(shape, dtype=torch.int64)


def make_flags(*shape: int) -> Tensor:
    """Return booleans of this shape, without numbers."""
    return torch.empty(shape, dtype=torch.bool)


def set_up_seq2seq(spec: RunSpec, sizes: BatchSizes) -> tuple[TrainingSetup, Batch]:
    """Return model and loss of a sequence-to-sequence task, and a batch."""
    source_vocabulary, target_vocabulary = sizes.vocabulary
    source_tokens, target_tokens = sizes.tokens
    model = import_model(spec.model.name).build(
        spec.model.settings,
        source_vocabulary=source_vocabulary,
        target_vocabulary=target_vocabulary,
    )
    target = make_ids(sizes.sentences, target_tokens)
    batch = Batch(make_ids(sizes.sentences, source_tokens), target, target)
    return TrainingSetup(model, WordLoss(spec.problem.label_smoothing), [batch], None), batch


def set_up_prompt(spec: RunSpec, sizes: BatchSizes) -> tuple[TrainingSetup, PromptBatch]:
    """Return model and loss of prompts that a token answers, and a batch."""
    (vocabulary,) = sizes.vocabulary
    model = import_model(spec.model.name).build(spec.model.settings, vocabulary)
    set_gradient_checkpointing(model, spec.training)
    shape = (sizes.sentences, *sizes.tokens)
    batch = PromptBatch(
        ids=make_ids(*shape),
        real=make_flags(*shape),
        words=make_ids(*shape),
        last=make_ids(sizes.sentences),
        label=make_ids(sizes.sentences),
    )

    loss = partial(compute_answer_loss, label_smoothing=spec.problem.label_smoothing)
    return TrainingSetup(model, loss, [batch], None), batch


def set_up_language_modelling(spec: RunSpec, sizes: BatchSizes) -> tuple[TrainingSetup, TextBatch]:
    """Return model and loss of a pre-training that predicts every next token, and a batch."""
    (vocabulary,) = sizes.vocabulary
    model = import_model(spec.model.name).build(spec.model.settings, vocabulary)
    shape = (sizes.sentences, *sizes.tokens)
    batch = TextBatch(ids=make_ids(*shape), real=make_flags(*shape))
    loss = partial(compute_text_loss, label_smoothing=spec.problem.label_smoothing)
    return TrainingSetup(model, loss, [batch], None), batch


def set_up_masked_lm(spec: RunSpec, sizes: BatchSizes) -> tuple[TrainingSetup, MaskedBatch]:
    """Return encoder, heads and loss of a pre-training on masked words, and a batch."""
    (vocabulary,) = sizes.vocabulary
    model = build_pretraining(spec.model, vocabulary)
    set_gradient_checkpointing(model.encoder, spec.training)
    shape = (sizes.sentences, *sizes.tokens)
    batch = MaskedBatch(
        ids=make_ids(*shape),
        types=make_ids(*shape),
        labels=make_ids(*shape),
        real=make_flags(*shape),
        follows=make_ids(sizes.sentences),
        share=torch.empty(shape),
        gold=torch.empty((*shape, SEMEMES), dtype=torch.int32),
    )
    return TrainingSetup(model, MaskedLoss(spec.problem.next_sentence), [batch], None), batch


def set_up_sentence_prediction(
    spec: RunSpec, sizes: BatchSizes
) -> tuple[TrainingSetup, SentenceBatch | StateBatch]:
    """Return encoder, head and loss of a task on sentences, and a batch.

    For a frozen encoder the batch has its states, which are computed once.
    """
    settings = spec.model.settings
    encoder = _build_encoder(spec, sizes)
    model = SentenceModel(encoder, settings, spec.problem, CLASSES)
    label = torch.empty(sizes.sentences)
    texts = 2 if spec.problem.prediction == "cosine" else 1
    shape = (sizes.sentences, texts, *sizes.tokens)
    batch: SentenceBatch | StateBatch
    if model.frozen:
        states = torch.empty(sizes.sentences, texts, encoder.config.hidden_size)
        batch = StateBatch(states, label)
    else:
        batch = SentenceBatch(make_ids(*shape), make_ids(*shape), make_flags(*shape), label)
    return TrainingSetup(model, compute_sentence_loss, [batch], None), batch


def set_up_question_answering(spec: RunSpec, sizes: BatchSizes) -> tuple[TrainingSetup, SpanBatch]:
    """Return encoder, head and loss of questions on paragraphs, and a batch."""
    model = SpanModel(_build_encoder(spec, sizes), spec.model.settings)
    shape = (sizes.sentences, *sizes.tokens)
    batch = SpanBatch(
        ids=make_ids(*shape),
        types=make_ids(*shape),
        real=make_flags(*shape),
        allowed=make_flags(*shape),
        ends=make_ids(sizes.sentences, 2),
    )
    return TrainingSetup(model, compute_span_loss, [batch], None), batch


def _build_encoder(spec: RunSpec, sizes: BatchSizes) -> Any:
    """Build the encoder that a fine-tuning starts from."""
    (vocabulary,) = sizes.vocabulary
    settings: EncoderSettings = spec.model.settings
    encoder = import_model(spec.model.name).build(settings, vocabulary)
    set_gradient_checkpointing(encoder, spec.training)
    return encoder


# kind of task -> the share of positions that a loss selects by booleans. Of texts all tokens are
# predicted but the first. Of other kinds it is MASKED, as in masked language models; objectives
# that select words of prompts store little for them.
SELECTED = {"language_modelling": 1.0}
# kind of task -> function that makes model, loss and batch
SETUPS: dict[str, Callable[[RunSpec, BatchSizes], tuple[TrainingSetup, Any]]] = {
    "language_modelling": set_up_language_modelling,
    "masked_lm": set_up_masked_lm,
    "prompt": set_up_prompt,
    "question_answering": set_up_question_answering,
    "sentence_prediction": set_up_sentence_prediction,
    "seq2seq": set_up_seq2seq,
}
