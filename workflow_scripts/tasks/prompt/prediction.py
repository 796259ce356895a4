"""Answers of a causal language model that was fine-tuned on prompts."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.causal_lm.model import find_bos_id
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.tasks.checkpoints import Checkpoint
from workflow_scripts.tasks.prompt import scoring
from workflow_scripts.tasks.prompt.batches import Prompts
from workflow_scripts.tasks.prompt.problem import check_model_settings


def load_model(checkpoint: Checkpoint) -> nn.Module:
    """Load the model of a checkpoint. Raises UserError if a file is missing or broken."""
    return scoring.load_model(checkpoint.spec, checkpoint.folder, torch.device("cpu"))


def predict(checkpoint: Checkpoint, model: PreTrainedModel, contents: Sequence[str]) -> list[str]:
    """Put each content into the template, and return the most probable next token of the vocabulary as text."""
    settings, folder = check_model_settings(checkpoint.spec), checkpoint.folder
    bos = find_bos_id(model, settings.get("bos", False), str(folder))
    texts = [settings["template"].replace("{content}", content) for content in contents]
    found = load_tokenizer(folder).encode_batch(texts, add_special_tokens=False)
    ids = [np.array([*([] if bos is None else [bos]), *encoding.ids], np.int64) for encoding in found]
    if (longest := max(map(len, ids))) > model.config.max_position_embeddings:
        raise UserError(f"a prompt has {longest} tokens, more than {model.config.max_position_embeddings}; shorten it")
    unknown = np.zeros(len(ids), np.int64)  # no label is given; words matter to interventions only
    prompts = Prompts(np.arange(len(ids)), ids, ids, unknown)
    device = next(model.parameters()).device
    written, _ = scoring.predict_answers(model, prompts, unknown[:1], checkpoint.settings.batch_tokens, device)
    return scoring.decode_vocabulary(folder, model)[written].tolist()
