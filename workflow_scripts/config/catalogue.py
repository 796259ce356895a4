"""The content of catalogue/ and papers/, and the names of runs. A run belongs to no paper; several may request it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import AnalysisPlan, PlannedClaim
from workflow_scripts.config.entries import Method, Task
from workflow_scripts.config.schema import Experiments, Scale

START = "start"  # in the place of a task whose weights are scored: those that a training begins with
Function = TypeVar("Function", bound=Callable[..., Any])
VariantKey = tuple[str, str, str]  # task, method, variant


@dataclass(frozen=True)
class Paper:
    """The content of a folder of papers/. `plans`: file in the folder -> analysis plan."""

    experiments: Experiments
    displays: dict[str, dict]
    analyses: dict[str, dict]
    claims: list[dict]
    plans: dict[str, AnalysisPlan] = field(default_factory=dict)

    def list_primary_claims(self, scale: str | None = None) -> list[PlannedClaim]:
        """Return the primary claims of all plans, or of those of a scale."""
        return [
            PlannedClaim(file, plan, entry)
            for file, plan in self.plans.items()
            if scale in (None, plan.scale)
            for entry in plan.primary
        ]


@dataclass(frozen=True)
class Catalogue:
    """The content of catalogue/ and papers/."""

    root: Path
    tasks: dict[str, Task]
    methods: dict[str, Method]
    scales: dict[str, Scale]
    papers: dict[str, Paper] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)  # what is left out because it is wrong
    stored: dict[Hashable, Any] = field(default_factory=dict)  # by `store_with_catalogue`


def store_with_catalogue(function: Function) -> Function:
    """Call a function of a catalogue and of hashable positional arguments only once for the same arguments."""

    @wraps(function)
    def find_or_call(catalogue: Catalogue, *arguments: Hashable) -> Any:
        key = (function, arguments)
        if key not in catalogue.stored:
            catalogue.stored[key] = function(catalogue, *arguments)
        return catalogue.stored[key]

    return find_or_call  # type: ignore[return-value]


def find_scale(catalogue: Catalogue, name: str) -> Scale:
    """Return the scale called `name`. Raises UserError with the nearest known name."""
    if name not in catalogue.scales:
        raise UserError(f"no scale '{name}' in catalogue/scales.yaml; {suggest_name(name, catalogue.scales)}")
    return catalogue.scales[name]


@dataclass(frozen=True)
class Run:
    """One training, the same for every paper that requests it.

    The variant `<variant>@<task>` is no training: it scores the weights that the variant has after its training on that
    task, `<variant>@start` those that it would begin with.
    """

    task: str
    method: str
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task}/{self.method}/{self.variant}/seed-{self.seed}"

    @property
    def unseeded(self) -> VariantKey:
        """The name without the seed."""
        return self.task, self.method, self.variant

    @property
    def weights(self) -> str | None:
        """Whose weights are scored, a task or START; None for a training."""
        return self.variant.partition("@")[2] or None

    @property
    def training(self) -> "Run":
        """The training of the variant on this task."""
        return replace(self, variant=self.variant.partition("@")[0])


def parse_run(catalogue: Catalogue, run_id: str) -> Run:
    """Parse `<task>/<method>/<variant>[@<weights>]/seed-<n>`. Raises UserError with the nearest known name."""
    parts = run_id.strip("/").split("/")
    if len(parts) != 4 or not parts[3].removeprefix("seed-").isdecimal() or not parts[3].startswith("seed-"):
        raise UserError(f"run '{run_id}' is not of the form <task>/<method>/<variant>/seed-<n>")
    task, method, variant, seed = parts
    for name, among, what in ((task, catalogue.tasks, "task"), (method, catalogue.methods, "method")):
        if name not in among:
            raise UserError(f"run '{run_id}': no {what} '{name}' in catalogue/; {suggest_name(name, among)}")
    trained, at, weights = variant.partition("@")
    if trained not in catalogue.methods[method].variants:
        known = catalogue.methods[method].variants
        raise UserError(f"run '{run_id}': {method} has no variant '{trained}'; {suggest_name(trained, known)}")
    if at and weights not in (known := (START, *catalogue.tasks)):
        raise UserError(f"run '{run_id}': no weights '{weights}'; {suggest_name(weights, known)}")
    return Run(task, method, variant, int(seed.removeprefix("seed-")))
