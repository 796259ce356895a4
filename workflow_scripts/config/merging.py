"""Merge the settings of a run from the layers of catalogue/ and papers/, and remember where each value is set."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.hashing import format_canonical_json
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.loading import Catalogue, find_scale
from workflow_scripts.config.packages import NAMED, settings_class
from workflow_scripts.config.runs import Run
from workflow_scripts.config.schema import Init, Settings
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.settings import Evaluation, Search, Training

SECTIONS = ("model", "problem", "objective", "training", "evaluation", "intervention", "init", "search")


def layers(catalogue: Catalogue, run: Run, scale: str) -> Iterator[tuple[str, Settings]]:
    """Yield (place, settings) of each layer that applies to a run. A later layer overrides an earlier one."""
    task, method, at = catalogue.tasks[run.task], catalogue.methods[run.method], find_scale(catalogue, scale)
    variant = method.variants[run.variant]
    yield f"catalogue/methods.yaml {run.method}", method.settings
    yield f"catalogue/tasks.yaml {run.task}", task.settings
    for where, settings in (
        (f"catalogue/methods.yaml {run.method}.by_task.{run.task}", method.by_task.get(run.task)),
        (f"catalogue/scales.yaml {scale}", at.settings),
        (f"catalogue/scales.yaml {scale}.by_method.{run.method}", at.by_method.get(run.method)),
        (f"catalogue/scales.yaml {scale}.by_task.{run.task}", at.by_task.get(run.task)),
        (
            f"catalogue/scales.yaml {scale}.by_method_and_task.{run.method}.{run.task}",
            at.by_method_and_task.get(run.method, {}).get(run.task),
        ),
    ):
        if settings:
            yield where, settings
    yield from _request_layers(catalogue, run)
    yield f"catalogue/methods.yaml {run.method}.variants.{run.variant}", variant.settings
    if run.task in variant.by_task:
        yield (
            f"catalogue/methods.yaml {run.method}.variants.{run.variant}.by_task.{run.task}",
            variant.by_task[run.task],
        )


def _request_layers(catalogue: Catalogue, run: Run) -> Iterator[tuple[str, Settings]]:
    """Yield the settings that papers request. Raises UserError if two papers request different values for one run."""
    found: dict[str, tuple[str, Settings]] = {}
    for paper, entry in catalogue.papers.items():
        for number, request in enumerate(entry.requests.requests):
            if run.task in request.tasks and run.variant in request.methods.get(run.method, ()):
                where = f"papers/{paper}/requests.yaml requests.{number}"
                found.setdefault(format_canonical_json(request.settings.model_dump()), (where, request.settings))
    if len(found) > 1:
        places = " and ".join(where for where, _ in found.values())
        raise UserError(
            f"{places} ask for different settings of {'/'.join(run.unseeded)}; give one of them a variant of its own"
        )
    yield from found.values()


def merged(catalogue: Catalogue, run: Run, scale: str) -> dict[str, dict[str, tuple[Any, str]]]:
    """Return section -> key -> (value, place where it is set).

    Keys of `model` and `objective` must exist in the settings of the package that they name, keys of `problem` in those
    of the kind of task. A layer that names another package replaces the whole section.
    """
    result: dict[str, dict[str, tuple[Any, str]]] = {section: {} for section in SECTIONS}
    fixed = {kind.__name__.lower(): kind.model_fields for kind in (Training, Evaluation, Intervention, Init, Search)}
    kind = catalogue.tasks[run.task].kind
    for where, settings in layers(catalogue, run, scale):
        for section in SECTIONS:
            given = getattr(settings, section)
            before = result[section]["name"][0] if "name" in result[section] else None
            name = given.get("name", before)
            if name != before:
                result[section] = {}
            fields = fixed.get(section) or getattr(settings_class(section, name, kind), "model_fields", None)
            known = {*(fields or ()), *(["name"] if section in NAMED else ())}
            for key, value in given.items():
                # A name that no package has is an error of its own, after the merge.
                if key not in known and (fields or name is None):
                    file, entry = where.split(" ")
                    path = f"{entry if '.by_' in entry else f'{entry}.settings'}.{section}.{key}"
                    raise UserError(f"{file}: unknown key '{path}'; {suggest_name(key, known)}")
                result[section][key] = (value, where)
    return result


@contextmanager
def placed(entries: dict[str, dict[str, tuple[Any, str]]]) -> Iterator[None]:
    """Add to a UserError the file and entry that set each key that the message names.

    A key of `entries` counts as named if it and its section are words of the message before the advice.
    """
    try:
        yield
    except UserError as error:
        words = set(re.findall(r"\w+", str(error).split(";")[0]))
        named = {
            f"{section}.{key}": where
            for section, found in entries.items()
            for key, (_, where) in found.items()
            if section in words and key in words
        }
        places = list(dict.fromkeys(named.values()))
        said = places if len(places) == 1 else [f"{key}: {where}" for key, where in named.items()]
        raise UserError(f"{error} ({'; '.join(said)})" if said else str(error)) from error
