"""Fine-tuning of a causal language model on prompts, each answered by one token."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import has_column, read_table
from workflow_scripts.models.causal_lm.model import compute_last_logits, find_bos_id, load_causal_lm
from workflow_scripts.models.causal_lm.settings import Settings as ModelSettings
from workflow_scripts.models.hugging_face import load_tokenizer, use_gradient_checkpointing
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.batching import TensorBatch, bucket_texts, shuffle_examples
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec

OUTSIDE = -1  # of every word: BOS and padding
# A task with at most this many answers must not lose one, and is also scored by the choice among them alone.
FEW_ANSWERS = 10
COMPANIONS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class PromptBatch(TensorBatch):
    """Prompts, padded on the right, each with the single token that answers it.

    ids [B, S] int64; real [B, S] bool, false on padding; words [B, S] int64: number of the whitespace word (or group of
    words, see `encode_prompts`) of a token, -1 on BOS and padding; last [B] int64: position of the last real token;
    label [B] int64.
    """

    ids: Tensor
    real: Tensor
    words: Tensor
    last: Tensor
    label: Tensor


@dataclass(frozen=True)
class Prompts:
    """N tokenised prompts, without those whose answer has several tokens.

    `items` [N]: rows of the table; `ids` and `words`: one int64 array per prompt; `label` [N] int64.
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
        ids, words = np.zeros(real.shape, np.int64), np.full(real.shape, OUTSIDE, np.int64)
        ids[real] = np.concatenate([self.ids[row] for row in rows])
        words[real] = np.concatenate([self.words[row] for row in rows])
        return PromptBatch(*map(torch.from_numpy, (ids, real, words, length - 1, self.label[rows])))


def assign_words(text: str, ends: np.ndarray) -> np.ndarray:
    """Return the whitespace word of each token, by its last character: it may begin with a space. ends [n]: offsets."""
    characters = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    word_of_character = np.cumsum(characters == ord(" "))
    return word_of_character[np.maximum(ends - 1, 0)]


def merge_groups(groups: Sequence[int], before: int, count: int) -> np.ndarray:
    """Return for each of the `count` words of a prompt [count] the first word of its group.

    groups [n] numbers the words of the content, which come after `before` words of the template. Neighbours with the
    same number are one group. Words of the template are not grouped.
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

    Labels are tokenised alone, with a space before them if `label_space`; only labels of one token are kept. `groups`
    has a number for each word of each content (between single spaces): neighbours with the same number count as one
    word. Raises UserError for another count of numbers.
    """
    spaced = [f" {label}" if label_space else label for label in labels]
    answers = tokenizer.encode_batch(spaced, add_special_tokens=False)
    items = np.array([row for row, answer in enumerate(answers) if len(answer.ids) == 1], np.int64)
    texts = [template.replace("{content}", contents[row]) for row in items]
    before = template.partition("{content}")[0].count(" ")
    ids, words = [], []
    for row, text, encoding in zip(
        items, texts, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True
    ):
        start = [] if bos is None else [bos]
        ids.append(np.array(start + encoding.ids, np.int64))
        numbers = assign_words(text, np.array([end for _, end in encoding.offsets], np.int64))
        if groups is not None:
            count = contents[row].count(" ") + 1
            if len(groups[row]) != count:
                found = f"row {row + 1} has {len(groups[row])} groups for {count} words"
                raise UserError(f"{found}; give each word a number")
            numbers = merge_groups(groups[row], before, text.count(" ") + 1)[numbers]
        words.append(np.concatenate([np.full(len(start), OUTSIDE), numbers]))
    return Prompts(items, ids, words, np.array([answers[row].ids[0] for row in items], np.int64))


def read_prompts(
    spec: ModelSpec, model: nn.Module, tokenizer_folder: Path, data: Path, split: str
) -> Prompts:
    """Read the prompts of a split for the model of `spec`, whose tokenizer is in `tokenizer_folder`.

    Items whose answer has several tokens are left out. With few answers that is an error. For the optional column
    `groups` see `encode_prompts`.
    """
    table = read_table(data, split, ["content", "label"])
    s = get_prompt_settings(spec)
    bos = find_bos_id(model, s.bos, spec.method_name)
    contents, labels = (table[column].to_pylist() for column in ("content", "label"))
    groups = (
        read_table(data, split, ["groups"])["groups"].to_pylist()
        if has_column(data, split, "groups")
        else None
    )
    tokenizer = load_tokenizer(tokenizer_folder)
    tokens, rows = tokenizer.get_vocab_size(), model.get_input_embeddings().num_embeddings
    if tokens > rows:
        has = f"tokenizer.json has {tokens} tokens, and the model embeddings of {rows}"
        raise UserError(f"{tokenizer_folder}: {has}; take the tokenizer that belongs to the model")
    where, whose = data / f"{split}.parquet", f"of {tokenizer_folder / 'tokenizer.json'}"
    try:
        prompts = encode_prompts(
            tokenizer, contents, labels, s.template, bos, s.label_space, groups
        )
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    if not len(prompts):
        raise UserError(f"{where}: no answer is a single token {whose}")
    lost = sorted(set(labels) - {labels[row] for row in prompts.items})
    if lost and len(set(labels)) <= FEW_ANSWERS:
        raise UserError(
            f"{where}: the answer '{lost[0]}', one of {len(set(labels))}, is no single token {whose}; "
            "take another tokenizer or set model.label_space"
        )
    longest, positions = int(prompts.length.max()), model.config.max_position_embeddings
    if longest > positions:
        raise UserError(
            f"{where}: a prompt has {longest} tokens, more than the model's {positions} positions"
        )
    return prompts


def get_prompt_settings(spec: ModelSpec) -> ModelSettings:
    """Return the settings of the model. Raises UserError if they have no template."""
    s = spec.model.settings
    if not s.template:
        raise UserError(f"{spec.method_name}: model.template is empty; it must contain {{content}}")
    return s


def make_problem(spec: RunSpec, data: Path, init: Path, device: torch.device) -> Problem:
    """Load the model of the folder `init`, and make batches on `device`, of shuffled prompts as in CARMA's code.

    Validation: exact match of the next token (percent) and its mean cross-entropy (nats), over the vocabulary. Raises
    UserError if a file is missing or broken, or if no answer is a single token of the model's tokenizer.
    """
    settings = spec.training
    model = load_causal_lm(init, get_prompt_settings(spec).family).to(device)
    if settings.gradient_checkpointing:
        use_gradient_checkpointing(model)

    train = read_prompts(spec, model, init, data, "train")
    sizes = settings.batch_tokens, settings.batch_sentences
    batches = shuffle_examples(train.length, *sizes, lambda rows: train.make_batch(rows).to(device))
    valid: list[PromptBatch] = []
    if settings.selection:
        prompts = read_prompts(spec, model, init, data, settings.selection.split)
        chosen = bucket_texts(prompts.length, settings.batch_tokens)
        valid = [prompts.make_batch(rows).to(device) for rows in chosen]

    def validate(trained: nn.Module) -> dict[str, float]:
        count = sum(len(batch.ids) for batch in valid)
        right = nats = torch.zeros((), dtype=torch.float64)
        for batch in valid:
            logits = compute_last_logits(trained, batch.ids, batch.last).float()
            right = right + (logits.argmax(-1) == batch.label).sum()
            nats = nats + cross_entropy(logits, batch.label, reduction="sum")
        return {"exact_match": 100 * float(right) / count, "cross_entropy": float(nats) / count}

    def save_extra_files(folder: Path) -> None:
        for name in COMPANIONS:
            if (init / name).exists():
                shutil.copyfile(init / name, folder / name)

    loss = partial(compute_answer_loss, label_smoothing=spec.problem.label_smoothing)
    # Exact match is often the same twice, so cross-entropy breaks ties.
    return Problem(model, loss, batches, validate, save_extra_files, "cross_entropy")


def compute_answer_loss(
    model: nn.Module, batch: PromptBatch, label_smoothing: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean over prompts of -log p(label | prompt), in nats; parts)."""
    logits = compute_last_logits(model, batch.ids, batch.last).float()
    loss = cross_entropy(logits, batch.label, label_smoothing=label_smoothing)
    return loss, {"answer": loss.detach()}
