"""Fingerprint jobs by their specs: everything except input files that can change a job's result.

A fingerprint is the job's spec and the code that it can import. Its short form is a parameter of
the Snakemake rule, so Snakemake reruns the job when it changes. The record of each result holds the
short form and the spec, so that `why` and `check` can compare them with the current ones.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, read_json, write_json
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.config.display_schema import Analysis
from workflow_scripts.data.data_spec import DataSpec
from workflow_scripts.interventions.settings import CandidateSpec, Intervention
from workflow_scripts.provenance.code import (
    PACKAGE,
    digest_code,
    find_closure,
    find_options_module,
)
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, ModelSpec, RunSpec
from workflow_scripts.tasks.settings import Evaluation

FINGERPRINT_PATTERN = re.compile(r"^spec (?P<spec>[0-9a-f]{16}), code (?P<code>[0-9a-f]{16})$")


@dataclass(frozen=True)
class Fingerprint:
    """A spec and code.

    spec: JSON content, such as a resolved spec. entry_points: the modules that a job begins with.
    settings: section of `spec` -> class of its settings, of which `spec` lacks those that have
    their default; under "" that of the settings in no section.
    """

    spec: Any
    entry_points: tuple[str, ...]
    settings: dict[str, type[BaseModel]] = field(default_factory=dict, compare=False)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules from which all other code is imported.

        Those of the settings and of the options are among them: `spec` lacks the defaults, so these
        are code.
        """
        classes = self.settings.values()
        modules = {settings_class.__module__ for settings_class in classes}
        for module in self.entry_points:
            modules |= find_options_module(module)
        return tuple(dict.fromkeys([*self.entry_points, *sorted(modules)]))

    @property
    def code(self) -> str:
        """Digest of the code that the modules import."""
        return digest_code(self.modules)

    def __str__(self) -> str:
        return f"spec {digest(self.spec)}, code {self.code}"


def fingerprint_data(spec: DataSpec) -> Fingerprint:
    """Fingerprint the preparation of data."""
    settings: dict[str, type[BaseModel]] = {"options": type(spec.options)}
    return Fingerprint(spec.to_json(), (f"{PACKAGE}.data.prepared", spec.prepare), settings)


def name_model_module(spec: ModelSpec) -> str:
    """Return the name of the module that builds the model of a spec."""
    return f"{PACKAGE}.models.{spec.model.name}.model"


def fingerprint_training(spec: RunSpec) -> Fingerprint:
    """Fingerprint a training."""
    settings = _map_training_settings(spec)
    return Fingerprint(spec.to_json(), _list_training_modules(spec), settings)


def _map_training_settings(spec: RunSpec) -> dict[str, type[BaseModel]]:
    """Return section -> class of its settings, of the spec of a training."""
    settings = _map_model_settings(spec) | {"training": type(spec.training)}
    if spec.objective:
        settings["objective"] = type(spec.objective.settings)
    if spec.search:
        settings["search"] = type(spec.search)
    return settings


def _map_model_settings(spec: ModelSpec) -> dict[str, type[BaseModel]]:
    """Return section -> class of its settings, of what scoring reads too."""
    return {"model": type(spec.model.settings), "problem": type(spec.problem)}


def _list_training_modules(spec: RunSpec) -> tuple[str, ...]:
    """Return the entry points of the code that trains a run."""
    modules = [
        f"{PACKAGE}.training.run",
        f"{PACKAGE}.tasks.{spec.kind}.training_setup",
        name_model_module(spec),
    ]
    if spec.objective:
        modules.append(f"{PACKAGE}.objectives.{spec.objective.name}.objective")
    selection = spec.training.selection
    if selection:
        modules += [f"{PACKAGE}.evaluation.{name}" for name in selection.get_measures()]
    return tuple(modules)


def fingerprint_search(spec: RunSpec) -> Fingerprint:
    """Fingerprint a hyperparameter search; `spec` is that of the run of its seed."""
    modules = (f"{PACKAGE}.training.search", *_list_training_modules(spec))
    return Fingerprint(spec.to_json(), modules, _map_training_settings(spec))


def fingerprint_evaluation(settings: Evaluation, spec: ModelSpec) -> Fingerprint:
    """Fingerprint the evaluation of the run of `spec`. The run itself is an input file."""
    modules = [
        f"{PACKAGE}.evaluation.scores",
        f"{PACKAGE}.tasks.{spec.kind}.kind",
        name_model_module(spec),
    ]
    modules += [f"{PACKAGE}.evaluation.{name}" for name in settings.get_measures()]
    return _fingerprint_scoring(settings, spec, tuple(modules))


def _fingerprint_scoring(
    settings: Evaluation | Intervention, spec: ModelSpec, modules: tuple[str, ...]
) -> Fingerprint:
    """Fingerprint a scoring of the run of `spec` by its settings.

    Device, threads and seeds are set as for a training. Random weights are drawn as one draws them.
    """
    modules += (f"{PACKAGE}.training.machine",)
    if isinstance(spec, GivenWeightsSpec) and spec.origin is None:
        modules += (f"{PACKAGE}.training.run", f"{PACKAGE}.tasks.{spec.kind}.training_setup")
    classes: dict[str, type[BaseModel]] = {"": type(settings)}
    if isinstance(spec, GivenWeightsSpec):
        for section, settings_class in _map_model_settings(spec).items():
            classes[f"scored.{section}"] = settings_class
    return Fingerprint(_describe_scoring(settings, spec), modules, classes)


def _describe_scoring(settings: Evaluation | Intervention, spec: ModelSpec) -> dict[str, Any]:
    """Return the settings of scoring, of given weights with their spec.

    It is the spec of all seeds, which no run.json holds.
    """
    content = settings.model_dump(mode="json", exclude_defaults=True)
    if isinstance(spec, GivenWeightsSpec):
        scored = spec.to_json()
        keys = ("kind", "protocol", "model", "problem", "training", "init")
        content["scored"] = {key: scored[key] for key in keys}
    return content


def fingerprint_candidates(spec: CandidateSpec) -> Fingerprint:
    """Fingerprint the search for replacement words."""
    modules = (
        f"{PACKAGE}.interventions.candidates",
        f"{PACKAGE}.interventions.synonym_resources",
    )
    return Fingerprint(spec.to_json(), modules)


def fingerprint_intervention(settings: Intervention, match: str, spec: ModelSpec) -> Fingerprint:
    """Fingerprint the interventions on the run of `spec`.

    The run and the candidates are input files. match: the rule for right answers, a setting of the
    run's evaluation.
    """
    modules = (f"{PACKAGE}.interventions.intervene", name_model_module(spec))
    fingerprint = _fingerprint_scoring(settings, spec, modules)
    return replace(fingerprint, spec=fingerprint.spec | {"evaluation": {"match": match}})


def fingerprint_analysis(
    analysis: Analysis, models: Iterable[str], numbers: dict[str, dict[str, str]] | None = None
) -> Fingerprint:
    """Fingerprint an analysis of runs of these models.

    `numbers` are the published numbers that it reads instead.
    """
    modules = [f"{PACKAGE}.evaluation.scores", f"{PACKAGE}.analyses.{analysis.module}"]
    modules += [f"{PACKAGE}.models.{name}.model" for name in sorted(set(models))]
    entry = analysis.make_json()
    if numbers is None:
        return Fingerprint(entry, tuple(modules))
    modules.append(f"{PACKAGE}.evaluation.published_numbers")
    return Fingerprint({"entry": entry, "published": numbers}, tuple(modules))


def store_modules(fingerprints: Iterable[Fingerprint], store: Path = RESULTS.code_digests) -> None:
    """Store the digests of the modules of jobs, so that a later `why` can name changed modules."""
    for fingerprint in fingerprints:
        path = store / f"{fingerprint.code}.json"
        if not path.exists():
            write_json(path, find_closure(fingerprint.modules))


def load_modules(code: str, store: Path = RESULTS.code_digests) -> dict[str, str] | None:
    """Return module -> digest as `store_modules` stored it for a code digest.

    None if it did not.
    """
    try:
        return read_json(store / f"{code}.json")
    except UserError:
        return None
