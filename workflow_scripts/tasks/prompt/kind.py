"""The kind of task prompt."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from workflow_scripts.tasks.base import Checkpoint, Problem, TaskKind
from workflow_scripts.tasks.prompt.problem import (
    FEW_ANSWERS,
    Prompts,
    get_prompt_settings,
    make_problem,
    read_prompts,
)
from workflow_scripts.tasks.prompt.scoring import decode_vocabulary, matches, predict_answers
from workflow_scripts.tasks.run_spec import RunSpec


class Kind(TaskKind):
    """Fine-tuning on prompts: the token that a causal language model writes next, against the answer."""

    def make_problem(
        self, spec: RunSpec, data: Path, init: Path | None, device: torch.device
    ) -> Problem:
        """Make what trains a model: see `problem.make_problem`."""
        return make_problem(spec, data, init, device)

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
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Return (predictions, score rows) of every split.

        `exact_match` is over the whole vocabulary; `constrained` over the answers of the split, if these are few. Items
        whose answer is not one token are left out; `n` counts the others.
        """
        settings, folder = checkpoint.settings, checkpoint.folder
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

    def predict(
        self, checkpoint: Checkpoint, model: PreTrainedModel, contents: Sequence[str]
    ) -> list[str]:
        """Put each content into the template, and return the most probable next token of the vocabulary as text."""
        s, folder = get_prompt_settings(checkpoint.spec), checkpoint.folder
        bos = find_bos_id(model, s.bos, str(folder))
        texts = [s.template.replace("{content}", content) for content in contents]
        found = load_tokenizer(folder).encode_batch(texts, add_special_tokens=False)
        ids = [
            np.array([*([] if bos is None else [bos]), *encoding.ids], np.int64)
            for encoding in found
        ]
        if (longest := max(map(len, ids))) > model.config.max_position_embeddings:
            raise UserError(
                f"a prompt has {longest} tokens, more than {model.config.max_position_embeddings}; shorten it"
            )
        # no label is given; words matter to interventions only
        unknown = np.zeros(len(ids), np.int64)
        prompts = Prompts(np.arange(len(ids)), ids, ids, unknown)
        device = next(model.parameters()).device
        written, _ = predict_answers(
            model, prompts, unknown[:1], checkpoint.settings.batch_tokens, device
        )
        return decode_vocabulary(folder, model)[written].tolist()
