"""Merge the settings of a run from three layers, and remember where each value is set.

A later layer overwrites an earlier one key by key: task, method, variant. In a task or a method its
own settings come first, after those that it `extends`, then the rules of `when` that apply,
inherited ones first, from top to bottom. The defaults of the code come in when the result is
parsed. The keys of `model` and `objective` are those of the package that the entry names: an entry
that names another package inherits none of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import StrictModel, suggest_name
from workflow_scripts.config.catalogue import Catalogue, find_scale, store_with_catalogue
from workflow_scripts.config.entries import Block, Place
from workflow_scripts.config.schema import Init, Layer
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.packages import (
    NAMED,
    find_settings_class,
    list_packages,
    load_kind_settings,
)
from workflow_scripts.training.settings import Search

SECTIONS = tuple(Layer.model_fields)
FIXED: dict[str, type[StrictModel]] = {"intervention": Intervention, "init": Init, "search": Search}
OF_KIND = ("problem", "training", "evaluation")  # sections whose keys depend on the kind of task


class Setting(NamedTuple):
    """A value, and where it is set."""

    value: Any
    place: Place | str


Entries = dict[str, Setting]  # of a section, by key


def list_task_blocks(catalogue: Catalogue, task: str, scale: str) -> list[Block]:
    """Return the settings of a task that apply at a scale, in their order.

    Raises UserError for an unknown name.
    """
    find_scale(catalogue, scale)
    if task not in catalogue.tasks:
        suggestion = suggest_name(task, catalogue.tasks)
        raise UserError(f"no task '{task}' in catalogue/tasks; {suggestion}")
    entry = catalogue.tasks[task]
    return [block for block in entry.blocks if block.applies(task, entry.kind, scale)]


def list_method_blocks(catalogue: Catalogue, run: Run, scale: str) -> list[Block]:
    """Return the settings of a run's method and variant that apply at a scale, in their order."""
    kind = catalogue.tasks[run.task].kind
    method = catalogue.methods[run.method]
    blocks = []
    for block in (*method.blocks, *method.variants[run.training.variant].blocks):
        if block.applies(run.task, kind, scale):
            blocks.append(block)
    return blocks


def merge_section(blocks: Iterable[Block], section: str) -> Entries:
    """Return the values of a section, of each key that of the last block."""
    if section in NAMED:
        blocks = _select_blocks_of_package(list(blocks), section)
    last_blocks: dict[str, Block] = {}
    for block in blocks:
        last_blocks |= dict.fromkeys(getattr(block.content, section), block)
    entries: Entries = {}
    for key, block in last_blocks.items():
        value = getattr(block.content, section)[key]
        entries[key] = Setting(value, block.place / section / key)
    return entries


def _select_blocks_of_package(blocks: Sequence[Block], section: str) -> list[Block]:
    """Leave out the blocks of entries that name another package than the last block that names one.

    An entry without a name has that of the entry before it, which it extends.
    """
    package_of_entry: dict[tuple[str, str | int], Any] = {}
    package = None
    for block in blocks:
        entry = (block.place.file, block.place.entry[0])
        settings = getattr(block.content, section)
        if "name" in settings:
            package = settings["name"]
            package_of_entry[entry] = package
        package_of_entry.setdefault(entry, package)
    selected = []
    for block in blocks:
        entry = (block.place.file, block.place.entry[0])
        if package_of_entry[entry] in (None, package):
            selected.append(block)
    return selected


def drop_places(entries: Entries) -> dict[str, Any]:
    """Return the values of a section by key."""
    return {key: setting.value for key, setting in entries.items()}


@store_with_catalogue
def merge_settings(catalogue: Catalogue, run: Run, scale: str) -> dict[str, Entries]:
    """Return what the catalogue sets of each section of a run.

    Keys of `model` and `objective` must exist in the settings of the package that they name, keys
    of `problem`, `training` and `evaluation` in those of the kind of task.
    """
    kind = catalogue.tasks[run.task].kind
    blocks = list_task_blocks(catalogue, run.task, scale)
    blocks += list_method_blocks(catalogue, run, scale)
    sections: dict[str, Entries] = {}
    problems = ErrorList()
    for section in SECTIONS:
        entries = merge_section(blocks, section)
        sections[section] = entries
        problems.add(*find_unknown_keys(section, entries, run.task, kind))
    problems.check_empty()
    return sections


def find_unknown_keys(section: str, entries: Entries, task: str, kind: str) -> Iterator[str]:
    """Yield a problem for each key of a section that is not read for a task of this kind."""
    name = None
    if "name" in entries:
        name = entries["name"].value
    settings_class = find_section_class(section, kind, name)
    if settings_class is None and name is not None:
        return  # a name that no package has is an error of its own, after the merge
    known_keys: set[str] = set()
    if settings_class is not None:
        known_keys.update(settings_class.model_fields)
    if section in NAMED:
        known_keys.add("name")
    for key, setting in entries.items():
        if key in known_keys:
            continue
        problem = f"unknown key '{section}.{key}'; {suggest_name(key, known_keys)}"
        if list_kinds_that_read(section, key):
            reason = f"{task} is of the kind {kind}, which does not read '{section}.{key}'"
            problem = f"{reason}; remove it, or name the kinds that do in a rule's `kind`"
        yield f"{setting.place}: {problem}"


def find_section_class(section: str, kind: str, name: Any) -> type[StrictModel] | None:
    """Return the class of a section of the settings, for tasks of a kind.

    name: that of the package which a section `model` or `objective` names; None is returned if
    there is no such package.
    """
    if section in FIXED:
        return FIXED[section]
    if section in NAMED:
        is_name = isinstance(name, str)  # a file may have anything there
        return find_settings_class(NAMED[section], name) if is_name else None
    return getattr(load_kind_settings(kind), section)


def list_kinds_that_read(section: str, key: str) -> list[str]:
    """List the kinds of tasks that read a key of a section, if its keys depend on the kind."""
    if section not in OF_KIND:
        return []
    kinds = []
    for kind in list_packages("tasks"):
        settings_class = getattr(load_kind_settings(kind), section)
        if key in settings_class.model_fields:
            kinds.append(kind)
    return kinds


def find_setting(key: str) -> str | None:
    """Return a setting of that name as `<section>.<key>`; None if no section has one."""
    for section in SECTIONS:
        if any(key in settings_class.model_fields for settings_class in _list_classes(section)):
            return f"{section}.{key}"
    return None


def _list_classes(section: str) -> list[type[StrictModel]]:
    """List the classes that a section of the settings can have."""
    if section in FIXED:
        return [FIXED[section]]
    if section in NAMED:
        group = NAMED[section]
        found = [find_settings_class(group, name) for name in list_packages(group)]
        return [settings_class for settings_class in found if settings_class]
    return [getattr(load_kind_settings(kind), section) for kind in list_packages("tasks")]


@contextmanager
def locate_errors(entries: Mapping[str, Entries]) -> Iterator[None]:
    """Put file, line and entry of the key that it names before each problem of a UserError.

    A key of `entries` counts as named if it and its section are words of the message before the
    advice. Where one message names several keys, the place nearest to the run leads, and the places
    of all follow.
    """
    try:
        yield
    except UserError as error:
        lines = [_locate(line, entries) for line in str(error).splitlines()]
        raise UserError("\n".join(lines)) from error


def _locate(line: str, entries: Mapping[str, Entries]) -> str:
    """Put the place of the key that a problem names before it."""
    problem, _, _ = re.sub(r"^settings of \S+:", "", line).partition(";")
    words = set(re.findall(r"\w+", problem))
    named: dict[str, Place | str] = {}  # key with its section -> its place
    for section, settings in entries.items():
        if section not in words:
            continue
        for key, setting in settings.items():
            if key in words:
                named[f"{section}.{key}"] = setting.place
        # A key that is missing, or a wrong default: where its package is named.
        if not named and "name" in settings and f"key '{section}." in problem:
            named[f"{section}.name"] = settings["name"].place
    if not named:
        return line
    run = re.match(r"settings of (\S+):", line)
    run_names = run[1].split("/") if run else []
    places = sorted(set(named.values()), key=lambda place: _rank_place(place, run_names))
    if len(places) > 1:
        keys_with_places = "; ".join(f"{key}: {place}" for key, place in named.items())
        line = f"{line} ({keys_with_places})"
    return f"{places[0]}: {line}"


def _rank_place(place: Place | str, run_names: list[str]) -> tuple[int, str]:
    """Return how far a place is from a run: its variant, another one, its method, all others.

    run_names: task, method and variant. Places that are equally far are in the order of the files.
    """
    if not isinstance(place, Place):
        return 4, place
    _, method, variant = run_names if len(run_names) == 3 else ("", "", "")
    entry, *inner = place.entry
    distance = 3
    if inner[:1] == ["variants"]:
        distance = 0 if inner == ["variants", variant] else 1
    elif entry == method:
        distance = 2
    return distance, str(place)
