"""The most probable next tokens of prompts, and whether they are the answers."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.causal_lm.model import compute_last_logits
from workflow_scripts.models.hugging_face import get_embeddings, load_tokenizer
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.prompt.training_setup import PromptBatch, Prompts


def decode_vocabulary(folder: Path, model: PreTrainedModel) -> np.ndarray:
    """Return the text of each of a model's V tokens, without spaces around it: [V] str.

    folder: that of the tokenizer. A model of the hub may have more tokens than its tokenizer, and
    may answer with one: their text is empty.
    """
    tokenizer = load_tokenizer(folder)
    ids = [[token] for token in range(get_embeddings(model).num_embeddings)]
    texts = tokenizer.decode_batch(ids, skip_special_tokens=False)
    return np.array([text.strip() for text in texts])


def matches(written: np.ndarray, label: np.ndarray, texts: np.ndarray, match: str) -> np.ndarray:
    """Return whether `written` [N] are the answers `label` [N]: [N] bool.

    They are compared as token ids, or by their `texts` [V].
    """
    if match == "token":
        return written == label
    lowered = np.char.lower(texts.astype(str))
    return lowered[written] == lowered[label]


@torch.no_grad()
def predict_answers(
    model: PreTrainedModel,
    prompts: Prompts,
    answers: np.ndarray,
    batch_tokens: int,
    device: torch.device,
    reporter: Reporter | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable next token of each prompt, as ids.

    The two results are (of the vocabulary [N], of `answers` [N]).
    """
    candidates = torch.from_numpy(answers).to(device)
    tokens = np.empty(len(prompts), np.int64)
    tokens_among_answers = np.empty(len(prompts), np.int64)
    for rows in bucket_texts(prompts.length, batch_tokens):
        batch: PromptBatch = prompts.make_batch(rows).to(device)
        logits: Tensor = compute_last_logits(model, batch.ids, batch.last)
        tokens[rows] = logits.argmax(-1).cpu()
        tokens_among_answers[rows] = candidates[logits[:, candidates].argmax(-1)].cpu()
        if reporter:
            reporter.advance(len(rows))
    return tokens, tokens_among_answers
