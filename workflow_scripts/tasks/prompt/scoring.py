"""The most probable next tokens of prompts, and whether they are the answers."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.causal_lm.model import compute_last_logits
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.tasks.batching import bucket_texts
from workflow_scripts.tasks.prompt.problem import PromptBatch, Prompts


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
