"""Fine-tuning of an encoder on questions: windows of paragraphs, the first and last token of the answer in them."""

import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.span_metrics import compute_exact_match, compute_f1
from workflow_scripts.models.encoder.model import PAD, extract_vocabulary
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings
from workflow_scripts.models.hugging_face import load_tokenizer, write_companions
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.batching import TensorBatch, bucket_texts, shuffle_examples
from workflow_scripts.tasks.encoders import EncoderWithHeads, load_initial_encoder
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec

COLUMNS = ["question", "context", "start", "answer", "answers"]
NOT_HERE = 0  # [CLS]: the first and last token of the answer in a window without it
MEASURES = {"exact_match": compute_exact_match, "f1": compute_f1}


@dataclass(frozen=True)
class SpanBatch(TensorBatch):
    """Windows `[CLS] question [SEP] part of the paragraph [SEP]`, padded on the right.

    ids, types [B, S] int64; real [B, S] bool, false on padding; allowed [B, S] bool: [CLS] and the paragraph's tokens;
    ends [B, 2] int64: the answer's first and last token, NOT_HERE in a window without it.
    """

    ids: Tensor
    types: Tensor
    real: Tensor
    allowed: Tensor
    ends: Tensor


@dataclass(frozen=True)
class Windows:
    """All windows of a split, in the order of its file.

    item [W]: row of a window's question. ids, types: tokens of each window, int64. offsets: characters of the paragraph
    where each token begins and ends, [length, 2] per window. ends [W, 2].
    """

    item: np.ndarray
    ids: list[np.ndarray]
    types: list[np.ndarray]
    offsets: list[np.ndarray]
    ends: np.ndarray
    contexts: list[str]
    answers: list[list[str]]
    longest_answer: int

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
        ids, types = np.full(real.shape, PAD, np.int64), np.zeros(real.shape, np.int64)
        ids[real] = np.concatenate([self.ids[row] for row in rows])
        types[real] = np.concatenate([self.types[row] for row in rows])
        # The paragraph and its [SEP] have type 1; the [SEP] is each window's last token.
        allowed = (types == 1) & (np.arange(real.shape[1]) < length[:, None] - 1)
        allowed[:, 0] = True
        return SpanBatch(*map(torch.from_numpy, (ids, types, real, allowed, self.ends[rows])))

    def make_batches(
        self, batch_tokens: int, device: torch.device
    ) -> tuple[list[np.ndarray], list[SpanBatch]]:
        """Return (windows of each batch, batches on `device`) of similar length."""
        chosen = bucket_texts(self.length, batch_tokens)
        return chosen, [self.make_batch(rows).to(device) for rows in chosen]


def read_windows(spec: ModelSpec, tokenizer_folder: Path, data: Path, split: str) -> Windows:
    """Read the windows of a split. Raises UserError if one can be longer than the model's positions."""
    return make_windows(spec, tokenizer_folder, read_table(data, split, COLUMNS).to_pydict())


def make_windows(spec: ModelSpec, tokenizer_folder: Path, columns: dict[str, list]) -> Windows:
    """Make the windows of questions, from COLUMNS as they are in a split."""
    from tokenizers.processors import BertProcessing

    settings, positions = spec.problem, spec.model.settings.positions
    if settings.longest > positions:
        found = (
            f"problem.longest is {settings.longest}, more than the model's {positions} positions"
        )
        raise UserError(f"{spec.method_name}: {found}")
    tokenizer = load_tokenizer(tokenizer_folder)
    vocabulary = extract_vocabulary(tokenizer, tokenizer_folder / "tokenizer.json")
    tokenizer.post_processor = BertProcessing(("[SEP]", vocabulary.sep), ("[CLS]", vocabulary.cls))
    tokenizer.enable_truncation(settings.longest_question)
    encoded = tokenizer.encode_batch(columns["question"], add_special_tokens=False)
    questions = [
        text[: one.offsets[-1][1]] if one.overflowing else text
        for text, one in zip(columns["question"], encoded, strict=True)
    ]
    tokenizer.enable_truncation(settings.longest, stride=settings.stride, strategy="only_second")
    found = tokenizer.encode_batch(list(zip(questions, columns["context"], strict=True)))
    windows = [
        (row, part) for row, first in enumerate(found) for part in (first, *first.overflowing)
    ]
    item = np.array([row for row, _ in windows])
    ids, types, offsets = (
        [np.array(getattr(part, name), np.int64) for _, part in windows]
        for name in ("ids", "type_ids", "offsets")
    )
    begin = np.array(columns["start"], np.int64)
    end = begin + np.array([len(answer) for answer in columns["answer"]])
    ends = [
        locate_answer(o, t, begin[row], end[row])
        for o, t, row in zip(offsets, types, item, strict=True)
    ]
    answers = [json.loads(text) for text in columns["answers"]]
    return Windows(
        item,
        ids,
        types,
        offsets,
        np.array(ends),
        columns["context"],
        answers,
        settings.longest_answer,
    )


def locate_answer(offsets: np.ndarray, types: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    """Return the tokens of a window that hold the paragraph's characters `begin` and `end` - 1, or twice NOT_HERE."""
    inside = np.flatnonzero(types == 1)[:-1]  # without the last [SEP]
    start, stop = offsets[inside, 0], offsets[inside, 1]
    first, last = inside[(start <= begin) & (begin < stop)], inside[(start < end) & (end <= stop)]
    return (int(first[0]), int(last[-1])) if len(first) and len(last) else (NOT_HERE, NOT_HERE)


class SpanModel(EncoderWithHeads):
    """Trained encoder with a random heads.span: linear d -> 2 on each token's state of one readout."""

    def __init__(self, inner: PreTrainedModel, s: EncoderSettings):
        super().__init__(inner, s.frozen)
        self.readout = s.readout
        layers = nn.Sequential(nn.Dropout(s.dropout), nn.Linear(inner.config.hidden_size, 2))
        self.heads = nn.ModuleDict({"span": layers})

    def forward(self, batch: SpanBatch) -> Tensor:
        """Score each token as the first and the last one, [B, 2, S]; -inf outside of [CLS] and the paragraph."""
        states = self.compute_states(batch.ids, batch.real, batch.types)[self.readout]
        scores = self.heads["span"](states).transpose(1, 2)
        return scores.masked_fill(~batch.allowed[:, None], -torch.inf)


def make_problem(spec: RunSpec, data: Path, init: Path | None, device: torch.device) -> Problem:
    """Load the encoder of the folder `init` with a new head, and make batches on `device`, of shuffled windows.

    Validation: exact match and F1 (percent). Raises UserError if a file is missing or broken.
    """
    settings = spec.training
    model = SpanModel(load_initial_encoder(spec, init), spec.model.settings).to(device)
    read = read_windows(spec, init, data, "train")
    sizes = settings.batch_tokens, settings.batch_sentences
    train = shuffle_examples(read.length, *sizes, lambda rows: read.make_batch(rows).to(device))
    split = settings.selection.split if settings.selection else None
    valid = read_windows(spec, init, data, split) if split else read
    batches = valid.make_batches(settings.batch_tokens, device) if split else ([], [])

    def validate(trained: SpanModel) -> dict[str, float]:
        given = find_answers(trained, valid, batches)
        return {
            name: 100
            * float(np.mean([measure(*pair) for pair in zip(given, valid.answers, strict=True)]))
            for name, measure in MEASURES.items()
        }

    return Problem(
        model,
        compute_span_loss,
        train,
        validate,
        partial(write_companions, model.encoder.config, init),
    )


def compute_span_loss(model: SpanModel, batch: SpanBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean over windows of the mean of -log p(first token) and -log p(last token), in nats; parts).

    In a window without the answer both tokens are [CLS].
    """
    scores = model(batch).float()  # [B, 2, S]
    loss = cross_entropy(scores.flatten(0, 1), batch.ends.flatten())
    return loss, {"span": loss.detach()}


@torch.no_grad()
def find_answers(
    model: SpanModel, windows: Windows, batches: tuple[list[np.ndarray], list[SpanBatch]]
) -> list[str]:
    """Return the answer to each question: the text of the most probable span of all its windows."""
    best = np.full(len(windows), -np.inf)
    answers = [""] * len(windows)
    for rows, batch in zip(*batches, strict=True):
        found = find_best_spans(model(batch).float(), windows.longest_answer)
        for row, score, begin, end in zip(
            rows, *(part.cpu().numpy() for part in found), strict=True
        ):
            item = windows.item[row]
            if score > best[item]:
                best[item] = score
                answers[item] = windows.contexts[item][
                    windows.offsets[row][begin, 0] : windows.offsets[row][end, 1]
                ]
    return answers


def find_best_spans(scores: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return (score, first, last token), each [B], of the best span without [CLS], by scores [B, 2, S]."""
    first, last = scores[:, 0, 1:], scores[:, 1, 1:]
    size = first.size(-1)
    summed = first[:, :, None] + last[:, None, :]
    position = torch.arange(size, device=scores.device)
    distance = position[None, :] - position[:, None]
    summed = summed.masked_fill((distance < 0) | (distance >= longest), -torch.inf)
    best, where = summed.flatten(1).max(-1)
    return best, where // size + 1, where % size + 1
