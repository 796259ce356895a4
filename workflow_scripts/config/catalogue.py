"""The content of catalogue/ and papers/."""

from dataclasses import dataclass, field
from pathlib import Path

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.config.entries import Method, Task
from workflow_scripts.config.schema import Experiments, Scale

START = "start"  # in the place of a task whose weights are scored: those that a training begins with


@dataclass(frozen=True)
class Paper:
    """The content of a folder of papers/."""

    experiments: Experiments
    displays: dict[str, dict]
    analyses: dict[str, dict]
    claims: list[dict]
    plan: AnalysisPlan | None = None


@dataclass(frozen=True)
class Catalogue:
    """The content of catalogue/ and papers/."""

    root: Path
    tasks: dict[str, Task]
    methods: dict[str, Method]
    scales: dict[str, Scale]
    papers: dict[str, Paper] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)  # what is left out because it is wrong


def find_scale(catalogue: Catalogue, name: str) -> Scale:
    """Return the scale called `name`. Raises UserError with the nearest known name."""
    if name not in catalogue.scales:
        raise UserError(f"no scale '{name}' in catalogue/scales.yaml; {suggest_name(name, catalogue.scales)}")
    return catalogue.scales[name]
