"""Padded batches of questions with windows of their paragraphs."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.encoder.model import PAD, extract_vocabulary
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.models.importing import read_settings
from workflow_scripts.tasks.batching import TensorBatch, bucket_texts
from workflow_scripts.tasks.question_answering.settings import Settings

NOT_HERE = 0  # [CLS]: the first and last token of the answer in a window without it


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

    def make_batches(
        self, batch_tokens: int, batch_sentences: int | None, device: torch.device
    ) -> tuple[list[np.ndarray], list[SpanBatch]]:
        """Return (windows of each batch, batches on `device`) of similar length."""
        length = np.array([len(row) for row in self.ids])
        chosen, batches = bucket_texts(length, batch_tokens, batch_sentences), []
        for rows in chosen:
            real = np.arange(length[rows].max()) < length[rows][:, None]
            ids, types = np.full(real.shape, PAD, np.int64), np.zeros(real.shape, np.int64)
            ids[real] = np.concatenate([self.ids[row] for row in rows])
            types[real] = np.concatenate([self.types[row] for row in rows])
            # The paragraph and its [SEP] have type 1; the [SEP] is each window's last token.
            allowed = (types == 1) & (np.arange(real.shape[1]) < length[rows][:, None] - 1)
            allowed[:, 0] = True
            tensors = map(torch.from_numpy, (ids, types, real, allowed, self.ends[rows]))
            batches.append(SpanBatch(*tensors).to(device))
        return chosen, batches


def read_windows(spec: dict, tokenizer_folder: Path, data: Path, split: str) -> Windows:
    """Read the windows of a split. Raises UserError if one can be longer than the model's positions."""
    from tokenizers.processors import BertProcessing

    settings, positions = parse_as(Settings, spec["problem"], "problem"), read_settings(spec["model"]).positions
    if settings.longest > positions:
        found = f"problem.longest is {settings.longest}, more than the model's {positions} positions"
        raise UserError(f"{spec['task']}/{spec['method']}: {found}")
    table = read_table(data, split, ["question", "context", "start", "answer", "answers"]).to_pydict()
    tokenizer = load_tokenizer(tokenizer_folder)
    vocabulary = extract_vocabulary(tokenizer, tokenizer_folder / "tokenizer.json")
    tokenizer.post_processor = BertProcessing(("[SEP]", vocabulary.sep), ("[CLS]", vocabulary.cls))
    tokenizer.enable_truncation(settings.longest_question)
    encoded = tokenizer.encode_batch(table["question"], add_special_tokens=False)
    questions = [
        text[: one.offsets[-1][1]] if one.overflowing else text
        for text, one in zip(table["question"], encoded, strict=True)
    ]
    tokenizer.enable_truncation(settings.longest, stride=settings.stride, strategy="only_second")
    found = tokenizer.encode_batch(list(zip(questions, table["context"], strict=True)))
    windows = [(row, part) for row, first in enumerate(found) for part in (first, *first.overflowing)]
    item = np.array([row for row, _ in windows])
    types = [np.array(part.type_ids, np.int64) for _, part in windows]
    offsets = [np.array(part.offsets, np.int64) for _, part in windows]
    begin = np.array(table["start"], np.int64)
    end = begin + np.array([len(answer) for answer in table["answer"]])
    ends = [locate_answer(o, t, begin[row], end[row]) for o, t, row in zip(offsets, types, item, strict=True)]
    answers = [json.loads(text) for text in table["answers"]]
    ids = [np.array(part.ids, np.int64) for _, part in windows]
    return Windows(item, ids, types, offsets, np.array(ends), table["context"], answers, settings.longest_answer)


def locate_answer(offsets: np.ndarray, types: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    """Return the tokens of a window [length] that hold the paragraph's characters `begin` and `end` - 1.

    Both are NOT_HERE unless the window has both.
    """
    inside = np.flatnonzero(types == 1)[:-1]  # without the last [SEP]
    start, stop = offsets[inside, 0], offsets[inside, 1]
    first, last = inside[(start <= begin) & (begin < stop)], inside[(start < end) & (end <= stop)]
    return (int(first[0]), int(last[-1])) if len(first) and len(last) else (NOT_HERE, NOT_HERE)
