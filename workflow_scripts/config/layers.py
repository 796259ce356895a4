"""Merge the settings of a run from four layers, and remember where each value is set.

A later layer overwrites an earlier one key by key: defaults of the code, task, method, variant. In a task or a method
its own settings come first, then the rules of its `when`, from top to bottom.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.validation import StrictModel, suggest_name
from workflow_scripts.config.catalogue import Catalogue, Run, find_scale, store_with_catalogue
from workflow_scripts.config.entries import Block, Place
from workflow_scripts.config.schema import Init, Layer
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.packages import (
    NAMED,
    find_settings_class,
    list_packages,
    load_kind_settings,
)
from workflow_scripts.tasks.settings import Search

Entries = dict[str, tuple[Any, Place | str]]  # key of a section -> value, place where it is set
SECTIONS = tuple(Layer.model_fields)
FIXED: dict[str, type[StrictModel]] = {"intervention": Intervention, "init": Init, "search": Search}
OF_KIND = ("problem", "training", "evaluation")  # sections whose keys depend on the kind of task


def list_task_blocks(catalogue: Catalogue, task: str, scale: str) -> list[Block]:
    """Return the settings of a task that apply at a scale, in their order. Raises UserError for an unknown name."""
    find_scale(catalogue, scale)
    if task not in catalogue.tasks:
        raise UserError(
            f"no task '{task}' in catalogue/tasks; {suggest_name(task, catalogue.tasks)}"
        )
    entry = catalogue.tasks[task]
    return [block for block in entry.blocks if block.applies(task, entry.kind, scale)]


def merge_section(blocks: Iterable[Block], section: str) -> Entries:
    """Return the values of a section, of each key that of the last block."""
    last = {key: block for block in blocks for key in getattr(block.content, section)}
    return {
        key: (getattr(block.content, section)[key], block.place / section / key)
        for key, block in last.items()
    }


def drop_places(entries: Entries) -> dict[str, Any]:
    """Return the values of a section by key."""
    return {key: value for key, (value, _) in entries.items()}


@store_with_catalogue
def merge_settings(catalogue: Catalogue, run: Run, scale: str) -> dict[str, Entries]:
    """Return what the catalogue sets of each section of a run.

    Keys of `model` and `objective` must exist in the settings of the package that they name, keys of `problem`,
    `training` and `evaluation` in those of the kind of task.
    """
    method, kind = catalogue.methods[run.method], catalogue.tasks[run.task].kind
    later = (*method.blocks, *method.variants[run.training.variant].blocks)
    blocks = list_task_blocks(catalogue, run.task, scale)
    blocks += [block for block in later if block.applies(run.task, kind, scale)]
    result, problems = {}, Problems()
    for section in SECTIONS:
        result[section] = merge_section(blocks, section)
        name = result[section]["name"][0] if "name" in result[section] else None
        settings_class = find_section_class(section, kind, name)
        if settings_class is None and name is not None:
            continue  # a name that no package has is an error of its own, after the merge
        known = set(settings_class.model_fields) if settings_class else set()
        if section in NAMED:
            known.add("name")
        for key, (_, place) in result[section].items():
            if key in known:
                continue
            if list_kinds_that_read(section, key):
                what = f"{run.task} is of the kind {kind}, which does not read '{section}.{key}'"
                problems.add(
                    f"{place}: {what}; remove it, or name the kinds that do in a rule's `kind`"
                )
            else:
                problems.add(f"{place}: unknown key '{section}.{key}'; {suggest_name(key, known)}")
    problems.check_empty()
    return result


def find_section_class(section: str, kind: str, name: str | None) -> type[StrictModel] | None:
    """Return the class of a section of the settings, for tasks of a kind.

    name: that of the package which a section `model` or `objective` names; None is returned if there is no such one.
    """
    if section in FIXED:
        return FIXED[section]
    if section in NAMED:
        return find_settings_class(NAMED[section], name)
    return getattr(load_kind_settings(kind), section)


def list_kinds_that_read(section: str, key: str) -> list[str]:
    """List the kinds of tasks that read a key of a section, if its keys depend on the kind."""
    if section not in OF_KIND:
        return []
    kinds = list_packages("tasks")
    return [
        kind for kind in kinds if key in getattr(load_kind_settings(kind), section).model_fields
    ]


@contextmanager
def locate_errors(entries: Mapping[str, Entries]) -> Iterator[None]:
    """Put file, line and entry, where the key is set that the message names, before each problem of a UserError.

    A key of `entries` counts as named if it and its section are words of the message before the advice. Where one
    message names several keys, all their places follow it.
    """
    try:
        yield
    except UserError as error:
        raise UserError(
            "\n".join(_locate(line, entries) for line in str(error).splitlines())
        ) from error


def _locate(line: str, entries: Mapping[str, Entries]) -> str:
    words = set(re.findall(r"\w+", re.sub(r"^settings of \S+:", "", line).split(";")[0]))
    named = {
        f"{section}.{key}": str(place)
        for section, found in entries.items()
        for key, (_, place) in found.items()
        if section in words and key in words
    }
    places = list(dict.fromkeys(named.values()))
    if len(places) > 1:
        line += f" ({'; '.join(f'{key}: {where}' for key, where in named.items())})"
    return f"{places[0]}: {line}" if places else line
