"""Fine-tuning of a causal language model on prompts."""

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import drop_name
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.prepared import has_column, read_table
from workflow_scripts.models.causal_lm.model import compute_last_logits, find_bos_id, load_causal_lm
from workflow_scripts.models.hugging_face import load_tokenizer, use_gradient_checkpointing
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.batching import bucket_by_length
from workflow_scripts.tasks.prompt.batches import PromptBatch, Prompts, encode_prompts
from workflow_scripts.tasks.prompt.settings import Settings
from workflow_scripts.tasks.settings import Training

# A task with at most this many answers must not lose one, and is also scored by the choice among them alone.
FEW_ANSWERS = 10
COMPANIONS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def make_problem(spec: dict, settings: Training, data: Path, init: Path, device: torch.device) -> Problem:
    """Load the model of the folder `init`, and make batches on `device`.

    Validation: exact match of the next token (percent) and its mean cross-entropy (nats), over the vocabulary. Raises
    UserError if a file is missing or broken, or if no answer is a single token of the model's tokenizer.
    """
    model = load_causal_lm(init, check_model_settings(spec)).to(device)
    if settings.gradient_checkpointing:
        use_gradient_checkpointing(model)
    train = read_prompts(spec, model, init, data, "train")
    batches = make_prompt_batches(train, settings.batch_tokens, settings.batch_sentences, device)
    valid_batches = []
    if settings.selection:
        valid = read_prompts(spec, model, init, data, settings.selection["split"])
        valid_batches = make_prompt_batches(valid, max(settings.batch_tokens, int(valid.length.max())), None, device)

    def validate(trained: nn.Module) -> dict[str, float]:
        count = sum(len(batch.ids) for batch in valid_batches)
        right = nats = torch.zeros((), dtype=torch.float64)
        for batch in valid_batches:
            logits = compute_last_logits(trained, batch.ids, batch.last).float()
            right = right + (logits.argmax(-1) == batch.label).sum()
            nats = nats + cross_entropy(logits, batch.label, reduction="sum")
        return {"exact_match": 100 * float(right) / count, "cross_entropy": float(nats) / count}

    def save_extra_files(folder: Path) -> None:
        for name in COMPANIONS:
            if (init / name).exists():
                shutil.copyfile(init / name, folder / name)

    loss = partial(compute_answer_loss, label_smoothing=parse_as(Settings, spec["problem"], "problem").label_smoothing)
    # Exact match is often the same twice, so cross-entropy breaks ties.
    return Problem(model, loss, batches, validate, save_extra_files, "cross_entropy")


def compute_answer_loss(
    model: nn.Module, batch: PromptBatch, label_smoothing: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean over prompts of -log p(label | prompt), in nats; parts)."""
    logits = compute_last_logits(model, batch.ids, batch.last).float()
    loss = cross_entropy(logits, batch.label, label_smoothing=label_smoothing)
    return loss, {"answer": loss.detach()}


def check_model_settings(spec: dict) -> dict:
    """Check the settings of the model. Raises UserError if they have no template."""
    settings = drop_name(spec["model"])
    if not settings.get("template"):
        raise UserError(f"{spec['task']}/{spec['method']}: model.template is empty; it must contain {{content}}")
    return settings


def read_prompts(spec: dict, model: nn.Module, tokenizer_folder: Path, data: Path, split: str) -> Prompts:
    """Read the prompts of a split for the model of `spec`, whose tokenizer is in `tokenizer_folder`.

    Items whose answer has several tokens are left out. With few answers that is an error. For the optional column
    `groups` see `encode_prompts`.
    """
    table = read_table(data, split, ["content", "label"])
    settings = check_model_settings(spec)
    bos = find_bos_id(model, settings.get("bos", False), f"{spec['task']}/{spec['method']}")
    contents, labels = (table[column].to_pylist() for column in ("content", "label"))
    groups = read_table(data, split, ["groups"])["groups"].to_pylist() if has_column(data, split, "groups") else None
    tokenizer, space = load_tokenizer(tokenizer_folder), settings.get("label_space", False)
    tokens, rows = tokenizer.get_vocab_size(), model.get_input_embeddings().num_embeddings
    if tokens > rows:
        has = f"tokenizer.json has {tokens} tokens, and the model embeddings of {rows}"
        raise UserError(f"{tokenizer_folder}: {has}; take the tokenizer that belongs to the model")
    where, whose = data / f"{split}.parquet", f"of {tokenizer_folder / 'tokenizer.json'}"
    try:
        prompts = encode_prompts(tokenizer, contents, labels, settings["template"], bos, space, groups)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    if not len(prompts.items):
        raise UserError(f"{where}: no answer is a single token {whose}")
    lost = sorted(set(labels) - {labels[row] for row in prompts.items})
    if lost and len(set(labels)) <= FEW_ANSWERS:
        raise UserError(
            f"{where}: the answer '{lost[0]}', one of {len(set(labels))}, is no single token {whose}; "
            "take another tokenizer or set model.label_space"
        )
    longest, positions = int(prompts.length.max()), model.config.max_position_embeddings
    if longest > positions:
        raise UserError(f"{where}: a prompt has {longest} tokens, more than the model's {positions} positions")
    return prompts


def make_prompt_batches(
    prompts: Prompts, batch_tokens: int, batch_sentences: int | None, device: torch.device
) -> list[PromptBatch]:
    """Make batches of all prompts of similar length. Raises UserError if one is longer than `batch_tokens`."""
    length = prompts.length
    try:
        chosen = bucket_by_length(length, np.zeros_like(length), batch_tokens, batch_sentences)
    except ValueError as error:
        raise UserError(f"{error}; raise training.batch_tokens") from error
    return [prompts.make_batch(rows).to(device) for rows in chosen]
