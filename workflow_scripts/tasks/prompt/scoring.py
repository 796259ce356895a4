"""The token that a causal language model would write next after a prompt, against the answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import score_shares
from workflow_scripts.models.causal_lm.model import compute_last_logits, find_bos_id, load_causal_lm
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.prompt.problem import (
    FEW_ANSWERS,
    PromptBatch,
    Prompts,
    get_prompt_settings,
    read_prompts,
)


def load_model(checkpoint: Checkpoint) -> PreTrainedModel:
    """Load the model. Raises UserError if a file is missing or broken."""
    return load_causal_lm(checkpoint.folder, get_prompt_settings(checkpoint.spec).family)


def predict(checkpoint: Checkpoint, model: PreTrainedModel, contents: Sequence[str]) -> list[str]:
    """Put each content into the template, and return the most probable next token of the vocabulary as text."""
    s, folder = get_prompt_settings(checkpoint.spec), checkpoint.folder
    bos = find_bos_id(model, s.bos, str(folder))
    texts = [s.template.replace("{content}", content) for content in contents]
    found = load_tokenizer(folder).encode_batch(texts, add_special_tokens=False)
    ids = [
        np.array([*([] if bos is None else [bos]), *encoding.ids], np.int64) for encoding in found
    ]
    if (longest := max(map(len, ids))) > model.config.max_position_embeddings:
        raise UserError(
            f"a prompt has {longest} tokens, more than {model.config.max_position_embeddings}; shorten it"
        )
    unknown = np.zeros(len(ids), np.int64)  # no label is given; words matter to interventions only
    prompts = Prompts(np.arange(len(ids)), ids, ids, unknown)
    device = next(model.parameters()).device
    written, _ = predict_answers(
        model, prompts, unknown[:1], checkpoint.settings.batch_tokens, device
    )
    return decode_vocabulary(folder, model)[written].tolist()


def score(
    checkpoint: Checkpoint, data: Path, device: torch.device, progress: str
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return (predictions, score rows) of every split.

    `exact_match` is over the whole vocabulary; `constrained` over the answers of the split, if these are few. Items
    whose answer is not one token are left out; `n` counts the others.
    """
    model, settings, folder = checkpoint.load_model(device), checkpoint.settings, checkpoint.folder
    splits = {
        split: read_prompts(checkpoint.spec, model, folder, data, split)
        for split in settings.splits
    }
    texts = decode_vocabulary(folder, model)
    predictions, scores = [], []
    with Reporter(
        checkpoint.name, sum(map(len, splits.values())), progress, unit="prompts"
    ) as reporter:
        for split, prompts in splits.items():
            reporter.set_stage(f"answer {split}")
            table = read_table(data, split, ["item", "subset"]).take(prompts.items)
            answers = np.unique(prompts.label)
            written, chosen = predict_answers(
                model, prompts, answers, settings.batch_tokens, device, reporter
            )
            subsets = table["subset"].to_numpy()
            correct = matches(written, prompts.label, texts, settings.match)
            rows = score_shares("exact_match", correct, subsets, {})
            scores += [{"split": split, "readout": "vocabulary", **row} for row in rows]
            content = {
                "item": table["item"],
                "subset": subsets,
                "prediction": texts[written],
                "correct": correct,
            }
            if len(answers) <= FEW_ANSWERS:
                right = chosen == prompts.label
                rows = score_shares("constrained", right, subsets, {})
                scores += [{"split": split, "readout": "labels", **row} for row in rows]
                content["correct_among_answers"] = right
            predictions.append(pa.table({"split": [split] * len(prompts), **content}))
    return pa.concat_tables(predictions), scores


def decode_vocabulary(folder: Path, model: nn.Module) -> np.ndarray:
    """Return the text of each of a model's V tokens by the tokenizer of a folder, without spaces around it: [V] str.

    A model of the hub may have more tokens than its tokenizer, and may answer with one: their text is empty.
    """
    tokenizer = load_tokenizer(folder)
    ids = [[token] for token in range(model.get_input_embeddings().num_embeddings)]
    return np.array(
        [text.strip() for text in tokenizer.decode_batch(ids, skip_special_tokens=False)]
    )


def matches(written: np.ndarray, label: np.ndarray, texts: np.ndarray, match: str) -> np.ndarray:
    """Return whether `written` [N] are the answers `label` [N], as token ids or by their `texts` [V]: [N] bool."""
    if match == "token":
        return written == label
    lowered = np.char.lower(texts.astype(str))
    return lowered[written] == lowered[label]


@torch.no_grad()
def predict_answers(
    model: nn.Module,
    prompts: Prompts,
    answers: np.ndarray,
    batch_tokens: int,
    device: torch.device,
    reporter: Reporter | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable next token of each prompt: (of the vocabulary [N], of `answers` [N]), as ids."""
    among = torch.from_numpy(answers).to(device)
    written, chosen = (np.empty(len(prompts), np.int64) for _ in range(2))
    for rows in bucket_texts(prompts.length, batch_tokens):
        batch: PromptBatch = prompts.make_batch(rows).to(device)
        logits: Tensor = compute_last_logits(model, batch.ids, batch.last)
        written[rows] = logits.argmax(-1).cpu()
        chosen[rows] = among[logits[:, among].argmax(-1)].cpu()
        if reporter:
            reporter.advance(len(rows))
    return written, chosen
