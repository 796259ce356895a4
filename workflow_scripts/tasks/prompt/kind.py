"""The kind of task prompt."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import score_shares
from workflow_scripts.models.causal_lm.model import find_bos_id, load_causal_lm
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.tasks.base import Checkpoint, EvaluationResult, TaskKind
from workflow_scripts.tasks.prompt.scoring import decode_vocabulary, matches, predict_answers
from workflow_scripts.tasks.prompt.settings import PromptEvaluation
from workflow_scripts.tasks.prompt.training_setup import (
    FEW_ANSWERS,
    Prompts,
    get_prompt_settings,
    read_prompts,
)


class Kind(TaskKind):
    """Fine-tuning on prompts: the next token of a causal language model, against the answer."""

    def load_model(self, checkpoint: Checkpoint) -> PreTrainedModel:
        """Load the model. Raises UserError if a file is missing or broken."""
        return load_causal_lm(checkpoint.folder, get_prompt_settings(checkpoint.spec).family)

    def score(
        self,
        checkpoint: Checkpoint,
        model: PreTrainedModel,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> EvaluationResult:
        """Return predictions and scores of every split.

        `exact_match` is over the whole vocabulary; `constrained` over the answers of the split, if
        these are few. Items whose answer is not one token are left out; `n` counts the others.
        """
        settings = checkpoint.settings
        assert isinstance(settings, PromptEvaluation)
        folder = checkpoint.folder
        splits = {}
        for split in settings.splits:
            splits[split] = read_prompts(checkpoint.spec, model, folder, data, split)
        total = sum(len(prompts) for prompts in splits.values())
        texts = decode_vocabulary(folder, model)
        predictions = []
        scores = []
        with Reporter(checkpoint.name, total, progress, unit="prompts") as reporter:
            for split, prompts in splits.items():
                reporter.set_stage(f"answer {split}")
                answers = np.unique(prompts.label)
                tokens, tokens_among_answers = predict_answers(
                    model, prompts, answers, settings.batch_tokens, device, reporter
                )
                table = read_table(data, split, ["item", "subset"]).take(prompts.items)
                subsets = table["subset"].to_numpy()
                correct = matches(tokens, prompts.label, texts, settings.match)
                for score in score_shares("exact_match", correct, subsets, {}):
                    scores.append(score._replace(split=split, readout="vocabulary"))
                columns = {
                    "split": [split] * len(prompts),
                    "item": table["item"],
                    "subset": subsets,
                    "prediction": texts[tokens],
                    "correct": correct,
                }
                if len(answers) <= FEW_ANSWERS:
                    correct_among_answers = tokens_among_answers == prompts.label
                    for score in score_shares("constrained", correct_among_answers, subsets, {}):
                        scores.append(score._replace(split=split, readout="labels"))
                    columns["correct_among_answers"] = correct_among_answers
                predictions.append(pa.table(columns))
        return EvaluationResult(pa.concat_tables(predictions), scores)

    def predict(
        self, checkpoint: Checkpoint, model: PreTrainedModel, inputs: Sequence[str]
    ) -> list[str]:
        """Put each text into the template, and return the most probable next token as text."""
        prompts = make_unanswered_prompts(checkpoint, model, inputs)
        no_answers = np.zeros(1, np.int64)
        device = next(model.parameters()).device
        tokens, _ = predict_answers(
            model, prompts, no_answers, checkpoint.settings.batch_tokens, device
        )
        return decode_vocabulary(checkpoint.folder, model)[tokens].tolist()


def make_unanswered_prompts(
    checkpoint: Checkpoint, model: PreTrainedModel, contents: Sequence[str]
) -> Prompts:
    """Put each content into the template. Raises UserError for a prompt that is too long."""
    settings = get_prompt_settings(checkpoint.spec)
    bos = find_bos_id(model, settings.bos, str(checkpoint.folder))
    start = [] if bos is None else [bos]
    texts = [settings.template.replace("{content}", content) for content in contents]
    tokenizer = load_tokenizer(checkpoint.folder)
    ids = []
    for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
        ids.append(np.array([*start, *encoding.ids], np.int64))
    longest = max(len(row) for row in ids)
    positions = model.config.max_position_embeddings
    if longest > positions:
        raise UserError(f"a prompt has {longest} tokens, more than {positions}; shorten it")
    return Prompts(
        items=np.arange(len(ids)),
        ids=ids,
        words=ids,  # they matter to interventions only
        label=np.zeros(len(ids), np.int64),  # none is given
    )
