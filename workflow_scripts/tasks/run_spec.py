"""The resolved spec of a run, and its form in JSON files.

In JSON, settings that have the default of their class are left out, so that a new setting changes the digest of no
spec.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.files import digest
from workflow_scripts.common.validation import (
    Pattern,
    Seed,
    StrictModel,
    Word,
    parse_as,
    suggest_name,
)
from workflow_scripts.data.data_spec import DataSpec, read_data_spec
from workflow_scripts.evaluation.protocol import Protocol
from workflow_scripts.tasks.packages import (
    NAMED,
    find_settings_class,
    list_packages,
    load_kind_settings,
)
from workflow_scripts.tasks.settings import ObjectiveOfKind, Precision, Search, Training


@dataclass(frozen=True)
class NamedSettings:
    """The settings of a package of models/ or objectives/, and its name."""

    name: str
    settings: StrictModel

    def to_json(self) -> dict[str, Any]:
        """Return the section of a spec."""
        return {"name": self.name} | _drop_defaults(self.settings)


class ParentRun(StrictModel):
    """The run whose weights another run begins with: its name, and the digest of its spec."""

    run: str
    spec: str


class HubModel(StrictModel):
    """The model of the hub, or of a Python package, whose weights a run begins with."""

    hub: str
    revision: str


Origin = ParentRun | HubModel | None  # None: random weights


@dataclass(frozen=True)
class ModelSpec:
    """What scoring reads of a run: its names, data, model, and origin of the initial or given weights.

    problem: settings of the kind of task. data: None in the spec file of a user who prepares data by hand.
    """

    task: str
    kind: str
    method: str
    variant: str
    seed: int
    protocol: str
    data: DataSpec | None
    model: NamedSettings
    problem: StrictModel
    origin: Origin

    @property
    def run_name(self) -> str:
        """The name of the run: `<task>/<method>/<variant>/seed-<n>`."""
        return f"{self.variant_name}/seed-{self.seed}"

    @property
    def variant_name(self) -> str:
        """The name of the run without its seed."""
        return f"{self.task}/{self.method}/{self.variant}"

    @property
    def method_name(self) -> str:
        """The name of the task and the method, for messages."""
        return f"{self.task}/{self.method}"

    @property
    def digest(self) -> str:
        """The digest of the spec's JSON form."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the content for a JSON file, without settings that have their default."""
        return {
            "task": self.task,
            "kind": self.kind,
            "method": self.method,
            "variant": self.variant,
            "seed": self.seed,
            "protocol": self.protocol,
            "data": self.data.to_json() if self.data else {},
            "model": self.model.to_json(),
            "problem": _drop_defaults(self.problem),
            "init": self.origin.model_dump(mode="json") if self.origin else None,
        }


@dataclass(frozen=True)
class RunSpec(ModelSpec):
    """Everything but the code that can change a training.

    search: the hyperparameter search before the training, if there is one. phrases: regular expression of the source
    phrases that the objective takes for words.
    """

    objective: NamedSettings | None
    training: Training
    search: Search | None = None
    phrases: str | None = None

    @property
    def torch_threads(self) -> int:
        """Threads of the training, and of its scoring."""
        return self.training.torch_threads

    @property
    def precision(self) -> Precision:
        """The precision of the training's updates."""
        return self.training.precision

    @property
    def kept_checkpoints(self) -> list[str]:
        """Names of the checkpoints that are kept and scored in addition to the best one."""
        return self.training.list_kept_checkpoints()

    def to_json(self) -> dict[str, Any]:
        """Return the content for a JSON file, without settings that have their default."""
        content = super().to_json()
        content["objective"] = self.objective.to_json() if self.objective else {}
        content["training"] = _drop_defaults(self.training)
        if self.search:
            content["search"] = _drop_defaults(self.search)
        if self.phrases is not None:
            content["phrases"] = self.phrases
        return content


@dataclass(frozen=True)
class GivenWeightsSpec(ModelSpec):
    """What can change the scores of weights that are not trained for the task.

    weights: the task on which they were trained, or `start` for those that a training begins with. start: the spec of
    that training if these are random; it is no part of the JSON form, since it changes no score of other weights.
    """

    weights: str
    torch_threads: int
    start: RunSpec | None = None

    @property
    def precision(self) -> Precision:
        """The precision of the record: no update is made."""
        return Training.model_fields["precision"].default

    @property
    def kept_checkpoints(self) -> list[str]:
        """Given weights are one checkpoint."""
        return []

    def to_json(self) -> dict[str, Any]:
        """Return the content for a JSON file, without settings that have their default."""
        return super().to_json() | {
            "weights": self.weights,
            "objective": {},
            "training": {"torch_threads": self.torch_threads},
        }


class _Content(StrictModel):
    """The content of a RunSpec in a JSON file; sections are checked by themselves."""

    task: Word
    kind: str
    method: Word
    variant: Word
    seed: Seed
    protocol: Protocol
    data: dict[str, Any] = {}
    init: ParentRun | HubModel | None
    model: dict[str, Any]
    problem: dict[str, Any]
    objective: dict[str, Any]
    training: dict[str, Any]
    search: dict[str, Any] = {}
    phrases: Pattern = ""


class _GivenWeightsContent(StrictModel):
    """The content of a GivenWeightsSpec in a JSON file."""

    task: Word
    kind: str
    method: Word
    variant: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}@[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    ]
    seed: Seed
    protocol: Protocol
    data: dict[str, Any]
    init: ParentRun | HubModel | None
    model: dict[str, Any]
    problem: dict[str, Any]
    weights: Word
    objective: dict[str, Any]
    training: dict[str, int]


@dataclass(frozen=True)
class Sections:
    """The checked sections `model`, `problem`, `objective` and `training` of a spec."""

    model: NamedSettings
    problem: StrictModel
    objective: NamedSettings | None
    training: Training


def read_run_spec(content: Any, where: str | Path, key: str | tuple[str, ...] = ()) -> RunSpec:
    """Read the spec of a run, the value of `key` in the file `where`. Raises UserError for wrong keys and values."""
    parsed = parse_as(_Content, content, where, key)
    check_kind(parsed.kind, where)
    sections = parse_sections(parsed.model_dump(), parsed.kind, where)
    spec = RunSpec(
        parsed.task,
        parsed.kind,
        parsed.method,
        parsed.variant,
        parsed.seed,
        parsed.protocol,
        read_data_spec(parsed.data, where, "data") if parsed.data else None,
        sections.model,
        sections.problem,
        parsed.init,
        sections.objective,
        sections.training,
        phrases=parsed.phrases or None,
    )
    check_validation(spec, where)
    if not parsed.search:
        return spec
    return replace(spec, search=parse_as(Search, parsed.search, where, "search"))


def read_given_weights_spec(content: Any, where: str | Path, key: str = "") -> GivenWeightsSpec:
    """Read the spec of scoring given weights, the value of `key` in the file `where`, without the spec `start`.

    Raises UserError for wrong keys and values.
    """
    parsed = parse_as(_GivenWeightsContent, content, where, key)
    return GivenWeightsSpec(
        parsed.task,
        check_kind(parsed.kind, where),
        parsed.method,
        parsed.variant,
        parsed.seed,
        parsed.protocol,
        read_data_spec(parsed.data, where, "data"),
        parse_named_settings(parsed.model, "model", where),
        _parse_problem(parsed.problem, parsed.kind, where),
        parsed.init,
        parsed.weights,
        parsed.training["torch_threads"],
    )


def check_kind(kind: str, where: str | Path) -> str:
    """Return the kind of a task. Raises UserError if there is no such kind."""
    kinds = list_packages("tasks")
    if kind not in kinds:
        raise UserError(f"{where}: key 'kind' is {kind!r}; {suggest_name(kind, kinds)}")
    return kind


def check_validation(spec: RunSpec, where: str | Path) -> None:
    """Raise UserError if the training does not compute what chooses its weights."""
    selection = spec.training.selection
    if selection is None:
        return
    kind = load_kind_settings(spec.kind)
    metrics = kind.validation_metrics
    is_decoded = kind.decoding and selection.decoding is not None
    if selection.metric not in metrics and not is_decoded:
        needed = f"needs {' or '.join(metrics)} as its metric"
        raise UserError(f"{where}: key 'training.validation' {needed}")


def parse_sections(sections: dict[str, dict[str, Any]], kind: str, where: str | Path) -> Sections:
    """Check the sections of the spec of a training. Raises UserError with all problems."""
    problems = Problems()
    parsed: dict[str, Any] = {"objective": None}
    with problems.collect():
        parsed["training"] = parse_as(
            load_kind_settings(kind).training, sections["training"], where, "training"
        )
    with problems.collect():
        parsed["model"] = parse_named_settings(sections["model"], "model", where)
    with problems.collect():
        parsed["problem"] = _parse_problem(sections["problem"], kind, where)
    if sections["objective"]:
        with problems.collect():
            objective = parse_named_settings(sections["objective"], "objective", where)
            check_objective(objective, kind, where)
            parsed["objective"] = objective
    problems.check_empty()
    return Sections(**parsed)


def check_objective(objective: NamedSettings, kind: str, where: str | Path) -> None:
    """Raise UserError if an objective cannot wrap the loss of a kind of task."""
    settings = objective.settings
    if isinstance(settings, ObjectiveOfKind) and settings.kind != kind:
        what = f"key 'objective.name' is {objective.name!r}, which changes the loss of {settings.kind} alone"
        raise UserError(
            f"{where}: {what}; the task is of the kind {kind}: name another objective, or none"
        )


def _parse_problem(content: dict[str, Any], kind: str, where: str | Path) -> StrictModel:
    """Check the section `problem` of a spec. Raises UserError."""
    return parse_as(load_kind_settings(kind).problem, content, where, "problem")


def parse_named_settings(content: dict[str, Any], section: str, where: str | Path) -> NamedSettings:
    """Check the section `model` or `objective` of a spec, which names its package. Raises UserError."""
    known = list_packages(NAMED[section])
    if "name" not in content:
        raise UserError(f"{where}: key '{section}.name' is missing; known: {', '.join(known)}")
    name = content["name"]
    if name not in known:
        raise UserError(
            f"{where}: key '{section}.name' is {name!r}; {suggest_name(str(name), known)}"
        )
    settings_class = find_settings_class(NAMED[section], name)
    assert settings_class, name
    settings = {key: value for key, value in content.items() if key != "name"}
    return NamedSettings(name, parse_as(settings_class, settings, where, section))


def _drop_defaults(settings: StrictModel) -> dict[str, Any]:
    """Return settings for JSON, without those that have the default of their class."""
    return settings.model_dump(mode="json", exclude_defaults=True)
