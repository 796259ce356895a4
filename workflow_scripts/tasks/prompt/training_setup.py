"""Fine-tuning of a causal language model on prompts, each answered by one token."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import has_column, read_table
from workflow_scripts.models.causal_lm.model import compute_last_logits, find_bos_id, load_causal_lm
from workflow_scripts.models.causal_lm.settings import Settings as ModelSettings
from workflow_scripts.models.hugging_face import (
    get_embeddings,
    load_tokenizer,
    place_on_device,
)
from workflow_scripts.tasks.base import ExampleLoss, TrainingSetup
from workflow_scripts.tasks.batching import TensorBatch, bucket_texts, shuffle_examples
from workflow_scripts.tasks.gradient_checkpointing import set_gradient_checkpointing
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec
from workflow_scripts.training.settings import RecomputingTraining

OUTSIDE = -1  # of every word: BOS and padding
# A task with at most this many answers must not lose one, and is also scored by the choice among
# them alone.
FEW_ANSWERS = 10
COMPANIONS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class PromptBatch(TensorBatch):
    """Prompts, padded on the right, each with the single token that answers it.

    ids [B, S] int64; real [B, S] bool, false on padding; words [B, S] int64: number of the
    whitespace word (or group of words, see `encode_prompts`) of a token, -1 on BOS and padding;
    last [B] int64: position of the last real token; label [B] int64.
    """

    ids: Tensor
    real: Tensor
    words: Tensor
    last: Tensor
    label: Tensor


@dataclass(frozen=True)
class Prompts:
    """N tokenised prompts, without those whose answer has several tokens.

    `items` [N]: rows of the table; `ids` and `words`: one int64 array per prompt; `label` [N]
    int64.
    """

    items: np.ndarray
    ids: list[np.ndarray]
    words: list[np.ndarray]
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def length(self) -> np.ndarray:
        """Number of tokens of each prompt [N]."""
        return np.array([len(row) for row in self.ids])

    def make_batch(self, rows: np.ndarray) -> PromptBatch:
        """Make one padded batch of the prompts of `rows`."""
        length = self.length[rows]
        real = np.arange(length.max()) < length[:, None]
        ids = np.zeros(real.shape, np.int64)
        ids[real] = np.concatenate([self.ids[row] for row in rows])
        words = np.full(real.shape, OUTSIDE, np.int64)
        words[real] = np.concatenate([self.words[row] for row in rows])
        return PromptBatch(
            ids=torch.from_numpy(ids),
            real=torch.from_numpy(real),
            words=torch.from_numpy(words),
            last=torch.from_numpy(length - 1),
            label=torch.from_numpy(self.label[rows]),
        )


def assign_words(text: str, ends: np.ndarray) -> np.ndarray:
    """Return the whitespace word of each token, by its last character: it may begin with a space.

    ends [n]: the offsets after the tokens' last characters.
    """
    characters = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    word_of_character = np.cumsum(characters == ord(" "))
    return word_of_character[np.maximum(ends - 1, 0)]


def merge_groups(groups: Sequence[int], before: int, count: int) -> np.ndarray:
    """Return for each of the `count` words of a prompt [count] the first word of its group.

    groups [n] numbers the words of the content, which come after `before` words of the template.
    Neighbours with the same number are one group. Words of the template are not grouped.
    """
    first = np.arange(count)
    starts = np.flatnonzero(np.diff(groups, prepend=np.nan))
    sizes = np.diff(starts, append=len(groups))
    first[before : before + len(groups)] = before + np.repeat(starts, sizes)
    return first


def encode_prompts(
    tokenizer: Tokenizer,
    contents: Sequence[str],
    labels: Sequence[str],
    template: str,
    bos: int | None,
    label_space: bool = False,
    groups: Sequence[Sequence[int]] | None = None,
) -> Prompts:
    """Tokenise `template` around each content, with `bos` before each prompt if given.

    Labels are tokenised alone, with a space before them if `label_space`; only labels of one token
    are kept. `groups` has a number for each word of each content (between single spaces):
    neighbours with the same number count as one word. Raises UserError for another count of
    numbers.
    """
    before_label = " " if label_space else ""
    spaced_labels = [before_label + label for label in labels]
    answers = tokenizer.encode_batch(spaced_labels, add_special_tokens=False)
    rows = [row for row, answer in enumerate(answers) if len(answer.ids) == 1]
    texts = [template.replace("{content}", contents[row]) for row in rows]
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    words_before = template.partition("{content}")[0].count(" ")
    start = [] if bos is None else [bos]
    outside = np.full(len(start), OUTSIDE)
    ids = []
    words = []
    for row, text, encoding in zip(rows, texts, encodings, strict=True):
        ids.append(np.array(start + encoding.ids, np.int64))
        ends = np.array([end for _, end in encoding.offsets], np.int64)
        numbers = assign_words(text, ends)
        if groups is not None:
            check_groups(groups[row], contents[row], row)
            numbers = merge_groups(groups[row], words_before, text.count(" ") + 1)[numbers]
        words.append(np.concatenate([outside, numbers]))
    label_ids = np.array([answers[row].ids[0] for row in rows], np.int64)
    return Prompts(np.array(rows, np.int64), ids, words, label_ids)


def check_groups(groups: Sequence[int], content: str, row: int) -> None:
    """Raise UserError unless `groups` has a number for each word of the content of `row`."""
    count = content.count(" ") + 1
    if len(groups) != count:
        raise UserError(
            f"row {row + 1} has {len(groups)} groups for {count} words; give each word a number"
        )


def read_prompts(
    spec: ModelSpec, model: PreTrainedModel, tokenizer_folder: Path, data: Path, split: str
) -> Prompts:
    """Read the prompts of a split for the model of `spec`.

    Its tokenizer is in `tokenizer_folder`. `encode_prompts` leaves out items whose answer has
    several tokens, and explains the optional column `groups`.

    Raises UserError for groups that do not fit the words, if `check_answers` finds that too much
    was left out, for a prompt that is longer than the model allows, and for a tokenizer of another
    model.
    """
    table = read_table(data, split, ["content", "label"])
    settings = get_prompt_settings(spec)
    bos = find_bos_id(model, settings.bos, spec.method_name)
    labels = table["label"].to_pylist()
    groups = None
    if has_column(data, split, "groups"):
        groups = read_table(data, split, ["groups"])["groups"].to_pylist()
    tokenizer = load_tokenizer(tokenizer_folder)
    check_embeddings(tokenizer, model, tokenizer_folder)
    file = DataFolder(data).split(split)
    try:
        prompts = encode_prompts(
            tokenizer,
            table["content"].to_pylist(),
            labels,
            settings.template,
            bos,
            settings.label_space,
            groups,
        )
    except UserError as error:
        raise UserError(f"{file}: {error}") from error
    check_answers(prompts, labels, file, tokenizer_folder / "tokenizer.json")
    check_lengths(prompts, model, file)
    return prompts


def check_lengths(prompts: Prompts, model: PreTrainedModel, place: str | Path) -> None:
    """Raise UserError, beginning with `place`, if a prompt is longer than the model's positions."""
    longest = int(prompts.length.max())
    positions = model.config.max_position_embeddings
    if longest > positions:
        raise UserError(
            f"{place}: a prompt has {longest} tokens, more than the model's {positions} positions"
        )


def check_embeddings(tokenizer: Tokenizer, model: PreTrainedModel, tokenizer_folder: Path) -> None:
    """Raise UserError if a tokenizer has tokens that the model has no embeddings of."""
    tokens = tokenizer.get_vocab_size()
    embeddings = get_embeddings(model).num_embeddings
    if tokens > embeddings:
        raise UserError(
            f"{tokenizer_folder}: tokenizer.json has {tokens} tokens, and the model embeddings of "
            f"{embeddings}; take the tokenizer that belongs to the model"
        )


def check_answers(prompts: Prompts, labels: list[str], file: Path, tokenizer_file: Path) -> None:
    """Raise UserError if no answer is a single token, or if one of few answers is not.

    labels: those of all rows of the file.
    """
    if not len(prompts):
        raise UserError(f"{file}: no answer is a single token of {tokenizer_file}")
    answers = set(labels)
    lost = sorted(answers - {labels[row] for row in prompts.items})
    if lost and len(answers) <= FEW_ANSWERS:
        raise UserError(
            f"{file}: the answer '{lost[0]}', one of {len(answers)}, is no single token of "
            f"{tokenizer_file}; take another tokenizer or set model.label_space"
        )


def get_prompt_settings(spec: ModelSpec) -> ModelSettings:
    """Return the settings of the model. Raises UserError if they have no template."""
    settings = spec.model.settings
    if not settings.template:
        raise UserError(f"{spec.method_name}: model.template is empty; it must contain {{content}}")
    return settings


def set_up_training(spec: RunSpec, data: Path, init: Path, device: torch.device) -> TrainingSetup:
    """Load the model of the folder `init`, and make batches of shuffled prompts on `device`.

    The prompts are shuffled as in CARMA's code.
    Validation: exact match of the next token (percent) and its mean cross-entropy (nats), over the
    vocabulary. Raises UserError if a file is missing or broken, or if no answer is a single token
    of the model's tokenizer.
    """
    settings = spec.training
    assert isinstance(settings, RecomputingTraining)
    model = load_causal_lm(init, get_prompt_settings(spec).family)
    place_on_device(model, device)
    set_gradient_checkpointing(model, settings)
    train = read_prompts(spec, model, init, data, "train")
    batches = shuffle_examples(
        train.length,
        settings.batch_tokens,
        settings.batch_sentences,
        lambda rows: train.make_batch(rows).to(device),
    )
    validate = None
    if settings.selection:
        valid = read_prompts(spec, model, init, data, settings.selection.split)
        rows_of_batches = bucket_texts(valid.length, settings.batch_tokens)
        valid_batches = [valid.make_batch(rows).to(device) for rows in rows_of_batches]
        validate = partial(validate_answers, valid_batches)
    return TrainingSetup(
        model,
        ExampleLoss(partial(compute_answer_loss, label_smoothing=spec.problem.label_smoothing)),
        batches,
        validate,
        partial(copy_companions, init),
        # Exact match is often the same twice.
        tie_break_metric="cross_entropy",
    )


def validate_answers(batches: Sequence[PromptBatch], model: PreTrainedModel) -> dict[str, float]:
    """Return exact match of the next token (percent) and its mean cross-entropy (nats)."""
    count = 0
    right = torch.zeros((), dtype=torch.float64)
    nats = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        count += len(batch.ids)
        logits = compute_last_logits(model, batch.ids, batch.last).float()
        right = right + (logits.argmax(-1) == batch.label).sum()
        nats = nats + cross_entropy(logits, batch.label, reduction="sum")
    return {"exact_match": 100 * float(right) / count, "cross_entropy": float(nats) / count}


def copy_companions(init: Path, folder: Path) -> None:
    """Copy what a checkpoint needs in addition to the weights from the folder `init`."""
    for name in COMPANIONS:
        if (init / name).exists():
            shutil.copyfile(init / name, folder / name)


def compute_answer_loss(
    model: PreTrainedModel, batch: PromptBatch, label_smoothing: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean over prompts of -log p(label | prompt), in nats; parts)."""
    logits = compute_last_logits(model, batch.ids, batch.last).float()
    loss = cross_entropy(logits, batch.label, label_smoothing=label_smoothing)
    return loss, {"answer": loss.detach()}
