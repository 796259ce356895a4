"""Which settings reach a run: layers of catalogue/ and papers/, merged key by key, each value with its origin."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from workflow_scripts.canonical import canonical_json
from workflow_scripts.catalogue.loading import Catalogue, find_scale
from workflow_scripts.catalogue.modules import MODULES
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.checking import nearest
from workflow_scripts.errors import UserError
from workflow_scripts.schema import Evaluation, Init, Intervention, Search, Settings, Training

SECTIONS = ("model", "objective", "training", "evaluation", "intervention", "init", "search")


def layers(catalogue: Catalogue, run: Run, scale: str) -> Iterator[tuple[str, Settings]]:
    """The layers of settings that reach a run, first to last; a later one overwrites."""
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
    """Settings that papers ask for; two papers may not ask different things of one run."""
    found: dict[str, tuple[str, Settings]] = {}
    for paper, entry in catalogue.papers.items():
        for number, request in enumerate(entry.requests.requests):
            if run.task in request.tasks and run.variant in request.methods.get(run.method, ()):
                where = f"papers/{paper}/requests.yaml requests.{number}"
                found.setdefault(canonical_json(request.settings.model_dump()), (where, request.settings))
    if len(found) > 1:
        places = " and ".join(where for where, _ in found.values())
        raise UserError(
            f"{places} ask for different settings of {'/'.join(run.unseeded)}; give one of them a variant of its own"
        )
    yield from found.values()


def merged(catalogue: Catalogue, run: Run, scale: str) -> dict[str, dict[str, tuple[Any, str]]]:
    """Section -> key -> (value, its origin). Keys of model and objective must stand in the method's own settings or be
    settings of its module. A layer that names another module begins the section anew: no key of the one before is the
    new one's."""
    result: dict[str, dict[str, tuple[Any, str]]] = {section: {} for section in SECTIONS}
    fixed = {kind.__name__.lower(): kind.model_fields for kind in (Training, Evaluation, Intervention, Init, Search)}
    for where, settings in layers(catalogue, run, scale):
        for section in SECTIONS:
            given = getattr(settings, section)
            begins = section not in fixed and "module" in given and given["module"] != _module(result[section])
            if begins:
                result[section] = {}
            known = fixed.get(section) or {*result[section], *_module_settings(section, result[section])}
            for key, value in given.items():
                if key not in known and not begins:
                    file, entry = where.split(" ")
                    path = f"{entry}.settings.{section}.{key}"
                    raise UserError(f"{file}: unknown key '{path}'; {nearest(key, known)}")
                result[section][key] = (value, where)
    return result


@contextmanager
def placed(entries: dict[str, dict[str, tuple[Any, str]]]) -> Iterator[None]:
    """An error about the value of a key, as `training.key` or `model: key`, says in which file and entry it is set."""
    try:
        yield
    except UserError as error:
        named = re.search(r"\b(\w+)(?:\.|: )(\w+)(?=' is | is |\.)", str(error))
        section, key = named.groups() if named else ("", "")
        place = entries.get(section, {}).get(key)
        raise UserError(f"{error} ({place[1]})" if place else str(error)) from error


def _module_settings(section: str, given: dict[str, tuple[Any, str]]) -> list[str]:
    """Names of the settings of the module that a section names; none where it names none that is known."""
    module = MODULES.get(section, {}).get(_module(given))
    return [field.name for field in fields(module)] if module else []


def _module(section: dict[str, tuple[Any, str]]) -> str | None:
    return section["module"][0] if "module" in section else None
