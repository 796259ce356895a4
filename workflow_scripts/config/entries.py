"""Tasks and methods of catalogue/.

They say what `extends` copies, and which settings apply to which runs.
"""

from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.files import list_files
from workflow_scripts.common.validation import parse_as, parse_right_parts, suggest_name
from workflow_scripts.common.yaml_files import find_line, read_yaml_mapping
from workflow_scripts.config.schema import (
    Condition,
    DataSizes,
    Layer,
    MethodEntry,
    TaskEntry,
    list_names,
)


@dataclass(frozen=True)
class Place:
    """A key of a YAML file below `root`. As text: file, line and entry."""

    root: Path
    file: str
    entry: tuple[str | int, ...]
    keys: tuple[str, ...] = ()  # inside the entry

    def __str__(self) -> str:
        line = find_line(self.root / self.file, (*self.entry, *self.keys))
        return f"{self.file}:{line}: {'.'.join(map(str, self.entry))}"

    def __truediv__(self, key: str) -> "Place":
        return Place(self.root, self.file, self.entry, (*self.keys, key))


@dataclass(frozen=True)
class Block:
    """Settings and where they are set; those of a rule (of `when`) apply to some runs only."""

    place: Place
    content: Layer

    def applies(self, task: str, kind: str, scale: str) -> bool:
        """Whether the settings apply to a run."""
        rule = self.content
        if not isinstance(rule, Condition):
            return True
        for name, patterns in ((task, rule.task), (kind, rule.kind), (scale, rule.scale)):
            if patterns is not None and not _matches_any(name, list_names(patterns)):
                return False
        return True


def _matches_any(name: str, patterns: list[str]) -> bool:
    """Whether a name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Task:
    """A data set with its splits and its measures.

    is_right: False if wrong keys of it, or of an entry that it extends, are left out.
    """

    title: str
    kind: str
    prepare: str
    blocks: tuple[Block, ...]
    phrases: str | None = None
    disk: int | None = None
    sizes: DataSizes | None = None
    subsets: list[str] = field(default_factory=list)
    is_right: bool = True


@dataclass(frozen=True)
class Variant:
    """What one comparison changes of a method."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Method:
    """A model with its objective and the training choices of its authors.

    extended: the entries that it extends, the nearest first. is_right: False if wrong keys of it,
    or of one of these, are left out.
    """

    title: str
    kinds: list[str]
    blocks: tuple[Block, ...]
    variants: dict[str, Variant]
    extended: list[str]
    is_right: bool = True


@dataclass(frozen=True)
class _Entry:
    """An entry, or a variant of one, and where it is.

    content: without the keys that are wrong; None if nothing of it can be read.
    """

    place: Place
    content: Any
    is_right: bool = True


@dataclass(frozen=True)
class _ExtendedEntry:
    """An entry with those that it extends.

    lineage: the entry after those that it extends. values: by key, of the last that has the key.
    """

    name: str
    lineage: list[_Entry]
    values: dict[str, Any]

    @property
    def is_right(self) -> bool:
        """Whether no wrong key of these entries is left out."""
        return all(entry.is_right for entry in self.lineage)


def read_tasks(root: Path, problems: ErrorList) -> dict[str, Task]:
    """Read the entries of catalogue/tasks, as far as they are right."""
    names_of_fields = {field.name for field in fields(Task)}
    required = ("title", "kind", "prepare")
    tasks = {}
    for entry in _read_entries(root, "tasks", TaskEntry, required, problems):
        values = {key: value for key, value in entry.values.items() if key in names_of_fields}
        blocks = _list_blocks(entry.lineage)
        tasks[entry.name] = Task(blocks=blocks, is_right=entry.is_right, **values)
    return tasks


def read_methods(root: Path, problems: ErrorList) -> dict[str, Method]:
    """Read the entries of catalogue/methods, as far as they are right."""
    required = ("title", "kinds", "variants")
    methods = {}
    for entry in _read_entries(root, "methods", MethodEntry, required, problems):
        # What is said of an entry without its wrong keys may only follow from these.
        with (problems if entry.is_right else ErrorList()).collect():
            methods[entry.name] = Method(
                title=entry.values["title"],
                kinds=entry.values["kinds"],
                blocks=_list_blocks(entry.lineage),
                variants=_list_variants(entry.lineage),
                extended=[str(other.place.entry[0]) for other in entry.lineage[-2::-1]],
                is_right=entry.is_right,
            )
    return methods


def _read_entries(
    root: Path, folder: str, model: type[BaseModel], required: tuple[str, ...], problems: ErrorList
) -> list[_ExtendedEntry]:
    """Return the entries of a folder, as far as they are right."""
    entries: dict[str, _Entry] = {}
    for path in list_files(root / "catalogue" / folder, "*.yaml"):
        content = {}
        with problems.collect():
            content = read_yaml_mapping(path)
        for name, values in content.items():
            place = Place(root, f"catalogue/{folder}/{path.name}", (name,))
            if name in entries:
                other_file = entries[name].place.file
                advice = "give one of them another name"
                problems.add(f"{place}: '{name}' is in {other_file}, too; {advice}")
            entries[name] = _Entry(place, parse_right_parts(model, values), is_right=False)
            with problems.collect():
                entries[name] = _Entry(place, parse_as(model, values, path, (name,)))
    extended_entries = []
    for name in entries:
        with problems.collect():
            lineage = _find_lineage(entries, name)
            if not lineage:
                continue
            entry = _ExtendedEntry(name, lineage, _merge_values(lineage, model))
            missing = [key for key in required if key not in entry.values]
            if not missing:
                extended_entries.append(entry)
            elif entry.is_right:
                raise UserError(f"{entries[name].place}: key '{name}.{missing[0]}' is missing")
    return extended_entries


def _merge_values(lineage: list[_Entry], model: type[BaseModel]) -> dict[str, Any]:
    """Return the values of an entry and of those that it extends, by key."""
    values: dict[str, Any] = {}
    for entry in lineage:
        for key in model.model_fields:
            value = getattr(entry.content, key)
            if value is not None:
                values[key] = value
    return values


def _list_variants(lineage: list[_Entry]) -> dict[str, Variant]:
    """Return the variants of a method: its own, and those of the entries that it extends.

    One that a list selects may extend one that the list leaves out.
    """
    entries: dict[str, _Entry] = {}
    known: dict[str, _Entry] = {}  # with those that a list leaves out
    for method in lineage:
        variants = method.content.variants
        if isinstance(variants, list):
            for name in variants:
                if name not in entries:
                    suggestion = suggest_name(name, entries)
                    place = method.place / "variants"
                    raise UserError(f"{place}: no variant '{name}'; {suggestion}")
            entries = {name: entries[name] for name in variants}
        elif variants:
            entries = {}
            known = entries
            for name, variant in variants.items():
                place = replace(method.place, entry=(*method.place.entry, "variants", name))
                entries[name] = _Entry(place, variant)
    variants_with_blocks = {}
    for name, entry in entries.items():
        blocks = [Block(each.place, each.content) for each in _find_lineage(known, name)]
        variants_with_blocks[name] = Variant(entry.content.title, tuple(blocks))
    return variants_with_blocks


def _find_lineage(entries: dict[str, _Entry], name: str) -> list[_Entry]:
    """Return an entry after those that it extends.

    Return nothing for an abstract entry, or if one of them cannot be read.
    """
    entry = entries[name]
    lineage = [entry]
    while lineage[0].content is not None and lineage[0].content.extends:
        base = lineage[0].content.extends
        place = lineage[0].place / "extends"
        if base not in entries:
            raise UserError(f"{place}: no entry '{base}'; {suggest_name(base, entries)}")
        if entries[base] in lineage:
            raise UserError(f"{place}: extends '{base}', which extends this entry")
        lineage.insert(0, entries[base])
    if lineage[0].content is None or getattr(entry.content, "abstract", False):
        return []
    return lineage


def _list_blocks(lineage: list[_Entry]) -> tuple[Block, ...]:
    """Return the settings of an entry: its own and inherited ones, then the rules.

    Each of both in the order from base to entry.
    """
    blocks = [Block(entry.place, entry.content) for entry in lineage]
    for entry in lineage:
        for number, rule in enumerate(entry.content.when):
            place = replace(entry.place, entry=(*entry.place.entry, "when", number))
            blocks.append(Block(place, rule))
    return tuple(blocks)
