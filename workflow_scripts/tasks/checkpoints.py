"""Use the checkpoint of a finished run: load its model, score it, and predict from texts as the evaluation does."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.settings import Evaluation

if TYPE_CHECKING:
    import pyarrow as pa
    import torch


@dataclass(frozen=True)
class Checkpoint:
    """What a finished run has learnt, and what its predictions need.

    name: of the run. folder: weights, config.json, and vocabulary.json or tokenizer.json. spec: that of run.json.
    settings: those of its evaluation. labels: names of the classes; None if the task has none.
    """

    name: str
    folder: Path
    spec: dict[str, Any]
    settings: Evaluation
    labels: list[str] | None

    def load_model(self, device: str = "cpu") -> "torch.nn.Module":
        """Load the model with the weights of its best validation, in eval mode. Raises UserError for broken files."""
        return self._find_module().load_model(self).to(device).eval()

    def score(self, data: Path, device: "torch.device", progress: str) -> "tuple[pa.Table, list[dict[str, Any]]]":
        """Return (predictions, score rows) on every split of the settings. progress: see `common.progress`.

        A metric that is undefined has a row with a `reason` instead of a value.
        """
        return self._find_module().score(self, data, device, progress)

    def predict(self, model: "torch.nn.Module", inputs: Sequence) -> list:
        """Predict from texts with a model of `load_model`, as the run's evaluation does.

        seq2seq: sentences, as tokens with a space between, to sentences. prompt: texts, for which the template has a
        place, to the next token. sentence_prediction: sentences, or pairs of them, to names of classes or numbers.
        question_answering: pairs of question and paragraph to answers. Raises UserError for pre-trainings.
        """
        module = self._find_module()
        if isinstance(inputs, str):
            raise UserError(f"the inputs are a text, {inputs!r:.50}; give a list of texts")
        if not hasattr(module, "predict"):
            raise UserError(f"{self.folder}: a run of the kind {self.spec['kind']} predicts no text; use its model")
        return module.predict(self, model, inputs) if len(inputs) else []

    def _find_module(self) -> ModuleType:
        return importlib.import_module(f"workflow_scripts.tasks.{self.spec['kind']}.scoring")
