"""Read and check a finished run, and use its checkpoint: load the model, score it, predict from texts."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, hash_files, read_json
from workflow_scripts.tasks.run_spec import ModelSpec, RunSpec, read_run_spec
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
    spec: ModelSpec
    settings: Evaluation
    labels: list[str] | None

    def load_model(self, device: str = "cpu") -> "torch.nn.Module":
        """Load the model with the weights of its best validation, in eval mode. Raises UserError for broken files."""
        return self._find_module().load_model(self).to(device).eval()

    def score(
        self, data: Path, device: "torch.device", progress: str
    ) -> "tuple[pa.Table, list[dict[str, Any]]]":
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
            raise UserError(
                f"{self.folder}: a run of the kind {self.spec.kind} predicts no text; use its model"
            )
        return module.predict(self, model, inputs) if len(inputs) else []

    def _find_module(self) -> ModuleType:
        return importlib.import_module(f"workflow_scripts.tasks.{self.spec.kind}.scoring")


@dataclass(frozen=True)
class FinishedRun:
    """The content of the run.json of a training.

    scale: None for a spec file without a scale. files: sha256 of each file of the run's folder, by its name there.
    """

    name: str
    scale: str | None
    spec: RunSpec
    spec_digest: str
    data_digest: str
    files: dict[str, str]

    @property
    def weights_sha256(self) -> str:
        """The sha256 of the best weights."""
        return self.files["checkpoint/model.safetensors"]


def read_run(run_dir: Path) -> FinishedRun:
    """Read run.json of a trained run. Raises UserError if it is missing, not one, or its spec was changed."""
    file = run_dir / "run.json"
    content = read_json(file)
    needed = {"run", "scale", "spec", "spec_digest", "data_digest", "files"}
    if (
        not isinstance(content, dict)
        or not needed <= content.keys()
        or not isinstance(content["files"], dict)
    ):
        raise UserError(f"{file} is not what train writes; train the run again")
    if digest(content["spec"]) != content["spec_digest"]:
        raise UserError(
            f"{file} was changed after training: its spec has another digest; train the run again"
        )
    spec = read_run_spec(content["spec"], file, "spec")
    digests = content["spec_digest"], content["data_digest"]
    return FinishedRun(content["run"], content["scale"], spec, *digests, content["files"])


def check_checkpoint(run_dir: Path, run: FinishedRun) -> None:
    """Raise UserError if a file of the checkpoint is missing, added, or differs from its sha256 in run.json."""
    recorded = {name: value for name, value in run.files.items() if name.startswith("checkpoint/")}
    actual = {
        f"checkpoint/{name}": value for name, value in hash_files(run_dir / "checkpoint").items()
    }
    for name in sorted(recorded.keys() | actual.keys()):
        if (found := actual.get(name)) != (expected := recorded.get(name)):
            found, expected = (
                f"sha256 {value}" if value else "no such file" for value in (found, expected)
            )
            raise UserError(
                f"{run_dir / name}: expected {expected}, by run.json, found {found}; delete {run_dir} and train again"
            )


def read_checked_run(run_dir: Path, data_dir: Path) -> FinishedRun:
    """Read run.json. Raises UserError if it or the checkpoint was changed, or if the data are not those of the run."""
    from workflow_scripts.data.prepared import digest_data

    run = read_run(run_dir)
    if digest_data(data_dir) != run.data_digest:
        raise UserError(
            f"{run_dir} was trained on other data than {data_dir}; give its own, or train the run again"
        )
    check_checkpoint(run_dir, run)
    return run
