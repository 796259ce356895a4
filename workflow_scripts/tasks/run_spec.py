"""The resolved spec of a run, and its form in JSON files.

In JSON, settings that have the default of their class are left out, so that a new setting changes
the digest of no spec.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.files import digest
from workflow_scripts.common.run_names import Run, VariantKey
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
from workflow_scripts.tasks.settings import ObjectiveOfKind
from workflow_scripts.training.settings import Precision, Search, Training


@dataclass(frozen=True)
class NamedSettings:
    """The settings of a package of models/ or objectives/, and its name.

    settings: of the package's class Settings.
    """

    name: str
    settings: Any

    def to_json(self) -> dict[str, Any]:
        """Return the section of a spec."""
        return {"name": self.name} | _drop_defaults(self.settings)


def _read_run(value: Any) -> Run:
    """Read the name of a run in a file. Raises ValueError for another form."""
    if isinstance(value, Run):
        return value
    try:
        return Run.parse(str(value))
    except UserError as error:
        raise ValueError(str(error)) from None


RunName = Annotated[Run, PlainValidator(_read_run), PlainSerializer(str)]  # in files a text


class ParentRun(StrictModel):
    """The run whose weights another run begins with, and the digest of its spec."""

    run: RunName
    spec: str


class HubModel(StrictModel):
    """The model of the hub, or of a Python package, whose weights a run begins with."""

    hub: str
    revision: str


Origin = ParentRun | HubModel | None  # None: random weights


@dataclass(frozen=True)
class ModelSpec:
    """What scoring reads of a run: its names, data, model, and the origin of its first weights.

    problem: settings of the kind of task, of its class Settings. data: None in the spec file of a
    user who prepares data by hand.
    """

    task: str
    kind: str
    method: str
    variant: str
    seed: int
    protocol: str
    data: DataSpec | None
    model: NamedSettings
    problem: Any
    origin: Origin

    @property
    def run(self) -> Run:
        """The name of the run."""
        return Run(self.task, self.method, self.variant, self.seed)

    @property
    def variant_key(self) -> VariantKey:
        """The name of the run without its seed."""
        return self.run.variant_key

    @property
    def method_name(self) -> str:
        """The name of the task and the method, for messages."""
        return f"{self.task}/{self.method}"

    @property
    def digest(self) -> str:
        """The digest of the spec's JSON form."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the content for a JSON file.

        The sections `model` and `problem` are without settings that have their default, `data` has
        the options that were set.
        """
        return {
            "task": self.task,
            "kind": self.kind,
            "method": self.method,
            "variant": self.variant,
            "seed": self.seed,
            "protocol": self.protocol,
            "data": _to_json(self.data),
            "model": self.model.to_json(),
            "problem": _drop_defaults(self.problem),
            "init": None if self.origin is None else self.origin.model_dump(mode="json"),
        }


@dataclass(frozen=True)
class RunSpec(ModelSpec):
    """Everything but the code that can change a training.

    search: the hyperparameter search before the training, if there is one. phrases: regular
    expression of the source phrases that the objective takes for words.
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
        content["objective"] = _to_json(self.objective)
        content["training"] = _drop_defaults(self.training)
        if self.search:
            content["search"] = _drop_defaults(self.search)
        if self.phrases is not None:
            content["phrases"] = self.phrases
        return content


@dataclass(frozen=True)
class GivenWeightsSpec(ModelSpec):
    """The spec of a run that scores given weights, which were not trained for its task.

    weights: the task on which the weights were trained, as in `ft@paws`; `start` means the
    weights with which the training of the same method and variant begins.
    start: the spec of that training, only where it begins with random weights, which are drawn
    again by its seed. It is no part of the JSON form, since it changes no score of other weights.
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


class _Threads(StrictModel):
    """What the scoring of given weights needs of the settings of a training."""

    torch_threads: Annotated[int, Field(gt=0)]


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
    training: _Threads


@dataclass(frozen=True)
class Sections:
    """The checked sections `model`, `problem`, `objective` and `training` of a spec."""

    model: NamedSettings
    problem: StrictModel
    objective: NamedSettings | None
    training: Training


def read_run_spec(content: Any, source: str | Path, key: str | tuple[str, ...] = ()) -> RunSpec:
    """Read the spec of a run, the value of `key` in the file `source`.

    Raises UserError for wrong keys and values.
    """
    parsed = parse_as(_Content, content, source, key)
    check_kind(parsed.kind, source)
    sections = parse_sections(parsed.model_dump(), parsed.kind, source)
    data = None
    if parsed.data:
        data = read_data_spec(parsed.data, source, "data")
    spec = RunSpec(
        task=parsed.task,
        kind=parsed.kind,
        method=parsed.method,
        variant=parsed.variant,
        seed=parsed.seed,
        protocol=parsed.protocol,
        data=data,
        model=sections.model,
        problem=sections.problem,
        origin=parsed.init,
        objective=sections.objective,
        training=sections.training,
        phrases=parsed.phrases or None,
    )
    check_validation(spec, source)
    if not parsed.search:
        return spec
    return replace(spec, search=parse_as(Search, parsed.search, source, "search"))


def read_given_weights_spec(content: Any, source: str | Path, key: str = "") -> GivenWeightsSpec:
    """Read the spec of scoring given weights, without the spec `start`.

    It is the value of `key` in the file `source`. Raises UserError for wrong keys and values.
    """
    parsed = parse_as(_GivenWeightsContent, content, source, key)
    check_kind(parsed.kind, source)
    return GivenWeightsSpec(
        task=parsed.task,
        kind=parsed.kind,
        method=parsed.method,
        variant=parsed.variant,
        seed=parsed.seed,
        protocol=parsed.protocol,
        data=read_data_spec(parsed.data, source, "data"),
        model=parse_named_settings(parsed.model, "model", source),
        problem=_parse_problem(parsed.problem, parsed.kind, source),
        origin=parsed.init,
        weights=parsed.weights,
        torch_threads=parsed.training.torch_threads,
    )


def check_kind(kind: str, source: str | Path) -> str:
    """Return the kind of a task. Raises UserError if there is no such kind."""
    kinds = list_packages("tasks")
    if kind not in kinds:
        raise UserError(f"{source}: key 'kind' is {kind!r}; {suggest_name(kind, kinds)}")
    return kind


def check_validation(spec: RunSpec, source: str | Path) -> None:
    """Raise UserError if the training does not compute what chooses its weights."""
    selection = spec.training.selection
    if selection is None:
        return
    metrics = load_kind_settings(spec.kind).validation_metrics
    if selection.metric not in metrics and not selection.is_decoded:
        raise UserError(
            f"{source}: key 'training.validation' needs {' or '.join(metrics)} as its metric"
        )


def parse_sections(sections: dict[str, dict[str, Any]], kind: str, source: str | Path) -> Sections:
    """Check the sections of the spec of a training. Raises UserError with all problems."""
    problems = ErrorList()
    parsed: dict[str, Any] = {"objective": None}
    with problems.collect():
        parsed["training"] = parse_as(
            load_kind_settings(kind).training, sections["training"], source, "training"
        )
    with problems.collect():
        parsed["model"] = parse_named_settings(sections["model"], "model", source)
    with problems.collect():
        parsed["problem"] = _parse_problem(sections["problem"], kind, source)
    if sections["objective"]:
        with problems.collect():
            objective = parse_named_settings(sections["objective"], "objective", source)
            check_objective(objective, kind, source)
            parsed["objective"] = objective
    problems.check_empty()
    return Sections(**parsed)


def check_objective(objective: NamedSettings, kind: str, source: str | Path) -> None:
    """Raise UserError if an objective cannot wrap the loss of a kind of task."""
    settings = objective.settings
    if isinstance(settings, ObjectiveOfKind) and settings.kind != kind:
        raise UserError(
            f"{source}: key 'objective.name' is {objective.name!r}, which changes the loss of "
            f"{settings.kind} alone; the task is of the kind {kind}: name another objective, "
            "or none"
        )


def _parse_problem(content: dict[str, Any], kind: str, source: str | Path) -> StrictModel:
    """Check the section `problem` of a spec. Raises UserError."""
    return parse_as(load_kind_settings(kind).problem, content, source, "problem")


def parse_named_settings(
    content: dict[str, Any], section: str, source: str | Path
) -> NamedSettings:
    """Check the section `model` or `objective` of a spec, which names its package.

    Raises UserError if it names none or an unknown one, or if one of its settings is wrong.
    """
    group = NAMED[section]
    packages = list_packages(group)
    if "name" not in content:
        raise UserError(f"{source}: key '{section}.name' is missing; known: {', '.join(packages)}")
    name = content["name"]
    if name not in packages:
        raise UserError(
            f"{source}: key '{section}.name' is {name!r}; {suggest_name(str(name), packages)}"
        )
    settings_class = find_settings_class(group, name)
    assert settings_class, f"{name} is one of the packages, and each has settings"
    settings = {key: value for key, value in content.items() if key != "name"}
    return NamedSettings(name, parse_as(settings_class, settings, source, section))


def _to_json(section: DataSpec | NamedSettings | None) -> dict[str, Any]:
    """Return a section of a spec for JSON; one that is not there is empty."""
    if section is None:
        return {}
    return section.to_json()


def _drop_defaults(settings: StrictModel) -> dict[str, Any]:
    """Return settings for JSON, without those that have the default of their class."""
    return settings.model_dump(mode="json", exclude_defaults=True)
