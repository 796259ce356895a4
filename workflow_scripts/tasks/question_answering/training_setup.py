"""Fine-tuning of an encoder on questions.

Its inputs are windows of paragraphs, its targets the first and last token of the answer in them.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import is_list_of_texts, read_table
from workflow_scripts.evaluation.span_metrics import compute_exact_match, compute_f1
from workflow_scripts.models.encoder.model import SpecialTokens, extract_vocabulary
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.models.hugging_face import load_tokenizer, write_companions
from workflow_scripts.tasks.base import ExampleLoss, TrainingSetup
from workflow_scripts.tasks.batching import RowsBatch, TensorBatch, bucket_texts, shuffle_examples
from workflow_scripts.tasks.encoders import EncoderWithHeads, load_initial_encoder
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec
from workflow_scripts.training.settings import RecomputingTraining

COLUMNS = ["question", "context", "start", "answer", "answers"]
NOT_HERE = 0  # [CLS]: the first and last token of the answer in a window without it
MEASURES = {"exact_match": compute_exact_match, "f1": compute_f1}


@dataclass(frozen=True)
class SpanBatch(TensorBatch):
    """Windows `[CLS] question [SEP] part of the paragraph [SEP]`, padded on the right.

    ids, types [B, S] int64; real [B, S] bool, false on padding; allowed [B, S] bool: [CLS] and the
    paragraph's tokens; ends [B, 2] int64: the answer's first and last token, NOT_HERE in a window
    without it.
    """

    ids: Tensor
    types: Tensor
    real: Tensor
    allowed: Tensor
    ends: Tensor


@dataclass(frozen=True)
class Windows:
    """All windows of a split, in the order of its file.

    item [W]: row of a window's question. ids, types: tokens of each window, int64. offsets:
    characters of the paragraph where each token begins and ends, [length, 2] per window. ends
    [W, 2]: see SpanBatch.
    """

    item: np.ndarray
    ids: list[np.ndarray]
    types: list[np.ndarray]
    offsets: list[np.ndarray]
    ends: np.ndarray
    contexts: list[str]
    answers: list[list[str]]
    longest_answer: int
    pad: int

    def __len__(self) -> int:
        return len(self.contexts)

    @cached_property
    def length(self) -> np.ndarray:
        """Number of tokens of each window [W]."""
        return np.array([len(row) for row in self.ids])

    def make_batch(self, rows: np.ndarray) -> SpanBatch:
        """Make one padded batch of the windows `rows`."""
        length = self.length[rows]
        real = np.arange(length.max()) < length[:, None]
        ids = np.full(real.shape, self.pad, np.int64)
        ids[real] = np.concatenate([self.ids[row] for row in rows])
        types = np.zeros(real.shape, np.int64)
        types[real] = np.concatenate([self.types[row] for row in rows])
        # The paragraph and its [SEP] have type 1; the [SEP] is each window's last token.
        allowed = (types == 1) & (np.arange(real.shape[1]) < length[:, None] - 1)
        allowed[:, 0] = True
        return SpanBatch(
            ids=torch.from_numpy(ids),
            types=torch.from_numpy(types),
            real=torch.from_numpy(real),
            allowed=torch.from_numpy(allowed),
            ends=torch.from_numpy(self.ends[rows]),
        )

    def make_batches(self, batch_tokens: int, device: torch.device) -> list[RowsBatch[SpanBatch]]:
        """Make batches of windows of similar length, on `device`. Their rows are windows."""
        batches = []
        for rows in bucket_texts(self.length, batch_tokens):
            batches.append(RowsBatch(rows, self.make_batch(rows).to(device)))
        return batches


def read_windows(spec: ModelSpec, tokenizer_folder: Path, data: Path, split: str) -> Windows:
    """Read the windows of a split.

    Raises UserError if one can be longer than the model's positions, or if the answers are no
    JSON lists of texts.
    """
    columns = read_table(data, split, COLUMNS).to_pydict()
    file = DataFolder(data).split(split)
    columns["answers"] = [parse_answers(text, file) for text in columns["answers"]]
    return make_windows(spec, tokenizer_folder, columns)


def parse_answers(text: str, file: Path) -> list[str]:
    """Return the answers in a row of a split.

    Raises UserError if they are no JSON list of texts.
    """
    answers: Any = None
    with suppress(json.JSONDecodeError):
        answers = json.loads(text)
    if not is_list_of_texts(answers):
        raise UserError(
            f"{file}: {text!r:.50} in the column answers is no JSON list of texts; correct the "
            "data set's prepare"
        )
    return answers


def count_training_examples(spec: RunSpec, data: Path, init: Path | None) -> int:
    """Return how many examples a pass over the training set has: windows of the paragraphs."""
    assert init is not None, "an encoder has initial weights"
    return len(read_windows(spec, init, data, "train").item)


def make_windows(spec: ModelSpec, tokenizer_folder: Path, columns: dict[str, list]) -> Windows:
    """Make the windows of questions, from COLUMNS of a split; `answers` are lists of texts."""
    settings = spec.problem
    positions = spec.model.settings.positions
    if settings.longest > positions:
        raise UserError(
            f"{spec.method_name}: problem.longest is {settings.longest}, more than the model's "
            f"{positions} positions"
        )
    tokenizer = load_tokenizer(tokenizer_folder)
    vocabulary = extract_vocabulary(tokenizer, tokenizer_folder / "tokenizer.json")
    add_special_tokens(tokenizer, vocabulary.special)
    questions = shorten_questions(tokenizer, columns["question"], settings.longest_question)
    tokenizer.enable_truncation(settings.longest, stride=settings.stride, strategy="only_second")
    pairs = list(zip(questions, columns["context"], strict=True))
    item: list[int] = []
    ids = []
    types = []
    offsets = []
    ends = []
    for row, encoding in enumerate(tokenizer.encode_batch(pairs)):
        begin = columns["start"][row]
        end = begin + len(columns["answer"][row])
        for window in (encoding, *encoding.overflowing):
            item.append(row)
            ids.append(np.array(window.ids, np.int64))
            types.append(np.array(window.type_ids, np.int64))
            offsets.append(np.array(window.offsets, np.int64))
            ends.append(locate_answer(offsets[-1], types[-1], begin, end))
    return Windows(
        item=np.array(item),
        ids=ids,
        types=types,
        offsets=offsets,
        ends=np.array(ends),
        contexts=columns["context"],
        answers=columns["answers"],
        longest_answer=settings.longest_answer,
        pad=vocabulary.special.pad,
    )


def add_special_tokens(tokenizer: Tokenizer, special: SpecialTokens) -> None:
    """Let a tokenizer make `[CLS] question [SEP] paragraph [SEP]`, or RoBERTa's form of it.

    The type is 1 from the paragraph on. Tokens of RoBERTa begin with the space before them, which
    is no part of an answer: their offsets are without it.
    """
    from tokenizers.processors import BertProcessing, ByteLevel, Sequence, TemplateProcessing

    cls_token = tokenizer.id_to_token(special.cls)
    sep_token = tokenizer.id_to_token(special.sep)
    assert cls_token is not None and sep_token is not None, "find_special_tokens has found them"
    if special.separators == 1:
        tokenizer.post_processor = BertProcessing(
            (sep_token, special.sep), (cls_token, special.cls)
        )
        return
    between = " ".join([sep_token] * special.separators)
    template = TemplateProcessing(
        single=f"{cls_token} $A {sep_token}",
        pair=f"{cls_token} $A {between} $B:1 {sep_token}:1",
        special_tokens=[(cls_token, special.cls), (sep_token, special.sep)],
    )
    trimming = ByteLevel(add_prefix_space=False, trim_offsets=True)
    tokenizer.post_processor = Sequence([trimming, template])


def shorten_questions(tokenizer: Tokenizer, questions: list[str], longest: int) -> list[str]:
    """Cut each question after `longest` tokens, which becomes the truncation of the tokenizer."""
    tokenizer.enable_truncation(longest)
    encodings = tokenizer.encode_batch(questions, add_special_tokens=False)
    cut = []
    for question, encoding in zip(questions, encodings, strict=True):
        if encoding.overflowing:
            _, last_end = encoding.offsets[-1]
            question = question[:last_end]
        cut.append(question)
    return cut


def locate_answer(offsets: np.ndarray, types: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    """Return the first and the last token of the answer in a window, or twice NOT_HERE.

    The answer is the characters begin to end - 1 of the paragraph.
    """
    inside = np.flatnonzero(types == 1)[:-1]  # without the last [SEP]
    start = offsets[inside, 0]
    stop = offsets[inside, 1]
    first = inside[(start <= begin) & (begin < stop)]
    last = inside[(start < end) & (end <= stop)]
    if not len(first) or not len(last):
        return NOT_HERE, NOT_HERE
    return int(first[0]), int(last[-1])


class SpanModel(EncoderWithHeads):
    """Trained encoder with a random heads.span.

    It is linear, d -> 2, on each token's state of one readout.
    """

    def __init__(self, inner: PreTrainedModel, settings: EncoderSettings):
        super().__init__(inner, settings.frozen)
        self.readout = settings.readout
        dropout = nn.Dropout(settings.dropout)
        linear = nn.Linear(inner.config.hidden_size, 2)
        self.heads = nn.ModuleDict({"span": nn.Sequential(dropout, linear)})

    def forward(self, batch: SpanBatch) -> Tensor:
        """Score each token as the first and the last one: [B, 2, S].

        The scores are -inf outside of [CLS] and the paragraph.
        """
        states = self.compute_states(batch.ids, batch.real, batch.types)[self.readout]
        scores = self.heads["span"](states).transpose(1, 2)
        return scores.masked_fill(~batch.allowed[:, None], -torch.inf)


def set_up_training(
    spec: RunSpec, data: Path, init: Path | None, device: torch.device
) -> TrainingSetup:
    """Load the encoder of the folder `init` with a new head, and make batches on `device`.

    The batches are of shuffled windows. Validation: exact match and F1 (percent). Raises UserError
    if a file is missing or broken.
    """
    settings = spec.training
    assert isinstance(settings, RecomputingTraining)
    model = SpanModel(load_initial_encoder(spec, init), spec.model.settings).to(device)
    assert init is not None, "load_initial_encoder refuses it"
    train = read_windows(spec, init, data, "train")
    batches = shuffle_examples(
        train.length,
        settings.batch_tokens,
        settings.batch_sentences,
        lambda rows: train.make_batch(rows).to(device),
    )
    validate = None
    if settings.selection:
        valid = read_windows(spec, init, data, settings.selection.split)
        valid_batches = valid.make_batches(settings.batch_tokens, device)
        validate = partial(validate_spans, valid, valid_batches)
    return TrainingSetup(
        model,
        ExampleLoss(compute_span_loss),
        batches,
        validate,
        partial(write_companions, model.encoder.config, init),
    )


def validate_spans(
    windows: Windows, batches: Sequence[RowsBatch[SpanBatch]], model: SpanModel
) -> dict[str, float]:
    """Return exact match and F1 (percent) of a model in eval mode."""
    answers = find_answers(model, windows, batches)
    scores = {}
    for name, values in measure_answers(answers, windows.answers).items():
        scores[name] = 100 * float(np.mean(values))
    return scores


def measure_answers(predicted: list[str], right_answers: list[list[str]]) -> dict[str, list[float]]:
    """Return the values of each of MEASURES, by predicted and right answers of N questions."""
    values_of = {}
    for name, measure in MEASURES.items():
        values_of[name] = [
            measure(answer, right) for answer, right in zip(predicted, right_answers, strict=True)
        ]
    return values_of


def compute_span_loss(model: SpanModel, batch: SpanBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (loss, parts): the mean of -log p(first token) and -log p(last token), in nats.

    It is a mean over windows. In a window without the answer both tokens are [CLS].
    """
    scores = model(batch).float()  # [B, 2, S]
    loss = cross_entropy(scores.flatten(0, 1), batch.ends.flatten())
    return loss, {"span": loss.detach()}


@torch.no_grad()
def find_answers(
    model: SpanModel, windows: Windows, batches: Sequence[RowsBatch[SpanBatch]]
) -> list[str]:
    """Return the answer to each question: the text of the most probable span of all its windows."""
    best = np.full(len(windows), -np.inf)
    answers = [""] * len(windows)
    for rows, batch in batches:
        spans = find_best_spans(model(batch).float(), windows.longest_answer)
        score, first, last = (part.cpu().numpy() for part in spans)
        for number, row in enumerate(rows):
            item = windows.item[row]
            if score[number] > best[item]:
                best[item] = score[number]
                begin = windows.offsets[row][first[number], 0]
                end = windows.offsets[row][last[number], 1]
                answers[item] = windows.contexts[item][begin:end]
    return answers


def find_best_spans(scores: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return (score, first, last token), each [B], of the best span, by scores [B, 2, S].

    The span is without [CLS], and has at most `longest` tokens.
    """
    first = scores[:, 0, 1:]
    last = scores[:, 1, 1:]
    size = first.size(-1)
    summed = first[:, :, None] + last[:, None, :]
    position = torch.arange(size, device=scores.device)
    distance = position[None, :] - position[:, None]
    summed = summed.masked_fill((distance < 0) | (distance >= longest), -torch.inf)
    best, index = summed.flatten(1).max(-1)
    return best, index // size + 1, index % size + 1
