"""Find wrong settings of runs, also those that a later layer replaces, and keys without effect."""

from collections.abc import Iterator
from typing import NamedTuple

from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import StrictModel, list_wrong_values
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.entries import Block, Place
from workflow_scripts.config.layers import (
    SECTIONS,
    Setting,
    drop_places,
    find_section_class,
    find_unknown_keys,
    list_method_blocks,
    list_task_blocks,
    merge_section,
    merge_settings,
)
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.packages import NAMED

SHARED = "intervention"  # the section with keys that all methods on a task share


class ReplacedKey(NamedTuple):
    """A key of a method's entry, and the rule of another file that replaces its value."""

    key: str
    place: Place
    rule: Place


class Case(NamedTuple):
    """A task at a scale."""

    scale: str
    task: str


def list_setting_problems(catalogue: Catalogue, run: Run, scale: str) -> list[str]:
    """Return the unknown keys of a run's settings, and the values that are wrong by themselves.

    Values that a later layer replaces are among them.
    """
    kind = catalogue.tasks[run.task].kind
    blocks = list_task_blocks(catalogue, run.task, scale)
    blocks += list_method_blocks(catalogue, run, scale)
    problems: dict[str, None] = {}
    problems |= dict.fromkeys(_find_shared_keys(catalogue, run, scale))
    for section in SECTIONS:
        entries = merge_section(blocks, section)
        problems |= dict.fromkeys(find_unknown_keys(section, entries, run.task, kind))
        name = entries["name"].value if "name" in entries else None
        settings_class = find_section_class(section, kind, name)
        if settings_class is None:
            continue
        checked = [*entries.items(), *_iterate_settings(catalogue, run, blocks, section)]
        for key, setting in checked:
            if key in settings_class.model_fields:
                lines = _locate_wrong_values(settings_class, section, key, setting)
                problems |= dict.fromkeys(lines)
    return list(problems)


def _find_shared_keys(catalogue: Catalogue, run: Run, scale: str) -> Iterator[str]:
    """Yield a problem for each key of a method's interventions that only a task may have.

    The candidate words are made once for all methods, from a split and options of the task.
    """
    of_task = drop_places(merge_section(list_task_blocks(catalogue, run.task, scale), SHARED))
    of_task.setdefault("split", Intervention.model_fields["split"].default)
    for block in list_method_blocks(catalogue, run, scale):
        for key in ("split", "candidates"):
            value = getattr(block.content, SHARED).get(key)
            if value is None or value == of_task.get(key):
                continue
            place = block.place / SHARED / key
            rule = f"key '{SHARED}.{key}' has no effect here: all methods on a task share it"
            yield f"{place}: {rule}; set it in catalogue/tasks, in an entry that extends the task"


def _locate_wrong_values(
    settings_class: type[StrictModel], section: str, key: str, setting: Setting
) -> Iterator[str]:
    """Yield what is wrong with a value, with its place."""
    for problem in list_wrong_values(settings_class, key, setting.value, section):
        yield f"{setting.place}: {problem}"


def _iterate_settings(
    catalogue: Catalogue, run: Run, blocks: list[Block], section: str
) -> Iterator[tuple[str, Setting]]:
    """Yield the keys of a section in each block, with their values.

    Of a section that names a package, entries before the one that names it are left out: their
    values may be those of another package.
    """
    lineage = _list_lineage(catalogue, run)
    first = 0
    if section in NAMED:
        for block in blocks:
            if "name" in getattr(block.content, section):
                first = _find_position(lineage, block)
    for block in blocks:
        if section not in NAMED or _find_position(lineage, block) >= first:
            yield from merge_section([block], section).items()


def _list_lineage(catalogue: Catalogue, run: Run) -> list[str]:
    """Return the entries that the method of a run extends, and then the method."""
    return [*reversed(catalogue.methods[run.method].extended), run.method]


def _find_position(lineage: list[str], block: Block) -> int:
    """Return where in a lineage the entry of a block is; a task is before all."""
    entry = str(block.place.entry[0])
    if not block.place.file.startswith("catalogue/methods/"):
        return -1
    return lineage.index(entry)


def list_replaced_keys(catalogue: Catalogue, run: Run, scale: str) -> list[ReplacedKey]:
    """Return the keys of a method's entries whose values a rule of another file replaces in a run.

    Such a rule is one of an entry that they extend. Rules of the same file are seen next to the
    key.
    """
    lineage = _list_lineage(catalogue, run)
    positions = {entry: position for position, entry in enumerate(lineage)}
    blocks = list_method_blocks(catalogue, run, scale)
    own_blocks = [block for block in blocks if len(block.place.entry) == 1]
    replaced = []
    for section, entries in merge_settings(catalogue, run, scale).items():
        for key, own in merge_section(own_blocks, section).items():
            place, rule = own.place, entries[key].place
            assert isinstance(place, Place)
            assert isinstance(rule, Place)
            if rule.file == place.file or own.value == entries[key].value:
                continue
            is_rule = rule.entry[1:2] == ("when",)
            if is_rule and positions[str(rule.entry[0])] < positions[str(place.entry[0])]:
                replaced.append(ReplacedKey(f"{section}.{key}", place, rule))
    return replaced


def describe_replaced_keys(replaced: dict[ReplacedKey, list[Case]]) -> Iterator[str]:
    """Yield a sentence for each key that rules of another file replace in some cases."""
    for place in dict.fromkeys(it.place for it in replaced):
        of_key = [it for it in replaced if it.place == place]
        cases: dict[Case, None] = {}
        for it in of_key:
            cases |= dict.fromkeys(replaced[it])
        rules = " and ".join(dict.fromkeys(str(it.rule) for it in of_key))
        method = place.entry[0]
        problem = f"key '{of_key[0].key}' has no effect {_join_cases(list(cases))}"
        verb = "sets it" if len({it.rule for it in of_key}) == 1 else "set it"
        advice = f"put it under a variant, or in a rule of {method}.when"
        yield f"{place}: {problem}: {rules} {verb}; {advice}"


def _join_cases(cases: list[Case]) -> str:
    """Say at which scales the cases are on which tasks."""
    tasks_by_scale: dict[str, list[str]] = {}
    for case in cases:
        tasks_by_scale.setdefault(case.scale, []).append(case.task)
    scales_by_tasks: dict[str, list[str]] = {}
    for scale, tasks in tasks_by_scale.items():
        scales_by_tasks.setdefault(", ".join(sorted(tasks)), []).append(scale)
    parts = [f"at {' and '.join(scales)} on {tasks}" for tasks, scales in scales_by_tasks.items()]
    return " and ".join(parts)
