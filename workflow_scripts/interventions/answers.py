"""Answers of a trained model to the prompts of a split, unchanged or under an intervention."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.causal_lm.model import find_bos_id
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.tasks.prompt.batches import Prompts, encode_prompts
from workflow_scripts.tasks.prompt.problem import FEW_ANSWERS, read_prompts
from workflow_scripts.tasks.prompt.scoring import decode_vocabulary, load_model, matches, predict_answers
from workflow_scripts.tasks.trained_run import read_checked_run

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BATCH_TOKENS = 8192


@dataclass
class AnsweredPrompts:
    """A model and N prompts whose answer is one token.

    contents, answers, items: texts [N]; texts: of all tokens; labels: ids of the answers if there are few, else None.
    """

    model: nn.Module
    folder: Path
    spec: dict[str, Any]
    device: torch.device
    prompts: Prompts
    contents: list[str]
    answers: list[str]
    items: list[str]
    texts: np.ndarray
    match: str
    labels: Tensor | None
    tokenizer: "Tokenizer"

    @classmethod
    def read(cls, run_dir: Path, data: Path, split: str, match: str, device: torch.device) -> "AnsweredPrompts":
        """Load the model of a run, and read its prompts."""
        run, folder = read_checked_run(run_dir, data), run_dir / "checkpoint"
        model = load_model(run["spec"], folder, device)
        prompts = read_prompts(run["spec"], model, folder, data, split)
        table = read_table(data, split, ["item", "content", "label"]).take(prompts.items)
        contents, answers, items = (table[name].to_pylist() for name in ("content", "label", "item"))
        texts = decode_vocabulary(folder, model)
        distinct = np.unique(prompts.label)
        labels = torch.from_numpy(distinct) if len(distinct) <= FEW_ANSWERS else None
        tokenizer = load_tokenizer(folder)
        return cls(
            model, folder, run["spec"], device, prompts, contents, answers, items, texts, match, labels, tokenizer
        )

    @cached_property
    def correct(self) -> dict[str, np.ndarray]:
        """Readout -> [N] bool: whether the answers to the unchanged prompts are right."""
        return self.evaluate_answers(self.prompts)

    def evaluate_answers(self, prompts: Prompts) -> dict[str, np.ndarray]:
        """Return readout -> [N] bool: whether the most probable token (of the vocabulary, of the answers) is right."""
        among = np.unique(prompts.label) if self.labels is None else self.labels.numpy()
        written, chosen = predict_answers(self.model, prompts, among, BATCH_TOKENS, self.device)
        found = {"vocabulary": self.compare_answers(written, "vocabulary")}
        return found if self.labels is None else found | {"labels": self.compare_answers(chosen, "labels")}

    def answer(self, contents: list[str]) -> dict[str, np.ndarray]:
        """Evaluate the answers for the same items with other contents [N]."""
        settings = self.spec["model"]
        template, space = settings["template"], settings.get("label_space", False)
        bos = find_bos_id(self.model, settings.get("bos", False), str(self.folder))
        return self.evaluate_answers(encode_prompts(self.tokenizer, contents, self.answers, template, bos, space))

    def compare_answers(self, ids: np.ndarray, readout: str) -> np.ndarray:
        """Return [N] bool: whether the answers `ids` [N] are right."""
        if readout == "labels":
            return ids == self.prompts.label
        return matches(ids, self.prompts.label, self.texts, self.match)

    def make_table(self, right: np.ndarray, **where: Any) -> pa.Table:
        """Return one row per item: whether it was right under the intervention `where`, and before."""
        count = len(right)
        kinds = {
            "intervention": pa.string(),
            "layer": pa.int32(),
            "pooling": pa.string(),
            "rate": pa.float64(),
            "intervention_seed": pa.int64(),
            "readout": pa.string(),
        }
        columns = {name: pa.array([where.get(name)] * count, kind) for name, kind in kinds.items()}
        before = self.correct[where["readout"]]
        return pa.table({"item": self.items, **columns, "correct_before": before, "correct": right})
