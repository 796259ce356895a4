"""Tasks and methods of catalogue/: what `extends` copies, and which settings apply to which runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.common.yaml_files import find_line, read_yaml_mapping
from workflow_scripts.config.schema import Condition, Layer, MethodEntry, TaskEntry, VariantEntry, list_names

Entry = TypeVar("Entry", TaskEntry, MethodEntry)


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
        pairs = ((rule.task, task), (rule.kind, kind), (rule.scale, scale))
        return all(
            wanted is None or any(fnmatchcase(name, one) for one in list_names(wanted)) for wanted, name in pairs
        )


@dataclass(frozen=True)
class Task:
    """A data set with its splits and its measures."""

    title: str
    kind: str
    prepare: str
    phrases: str | None
    disk: int | None
    subsets: list[str]
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Variant:
    """What one comparison changes of a method."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Method:
    """A model with its objective and the training choices of its authors."""

    title: str
    kinds: list[str]
    blocks: tuple[Block, ...]
    variants: dict[str, Variant]


def read_tasks(root: Path, problems: Problems) -> dict[str, Task]:
    """Read the entries of catalogue/tasks that are right."""
    tasks, entries = {}, _read_entries(root, "tasks", TaskEntry, problems)
    for name in entries:
        with problems.collect():
            if lineage := _lineage(entries, name):
                found = _fields(name, lineage, ("title", "kind", "prepare"))
                fields = {key: found[key] for key in ("title", "kind", "prepare", "phrases", "disk", "subsets")}
                tasks[name] = Task(**fields, blocks=_blocks(lineage))
    return tasks


def read_methods(root: Path, problems: Problems) -> dict[str, Method]:
    """Read the entries of catalogue/methods that are right."""
    methods, entries = {}, _read_entries(root, "methods", MethodEntry, problems)
    for name in entries:
        with problems.collect():
            if lineage := _lineage(entries, name):
                found = _fields(name, lineage, ("title", "kinds", "variants"))
                methods[name] = Method(found["title"], found["kinds"], _blocks(lineage), _variants(lineage))
    return methods


def _read_entries(
    root: Path, folder: str, model: type[Entry], problems: Problems
) -> dict[str, tuple[Place, Entry | None]]:
    """Return each entry of the files of a folder with its place; None for an entry that is not right."""
    entries: dict[str, tuple[Place, Entry | None]] = {}
    for path in sorted((root / "catalogue" / folder).glob("*.yaml")):
        file, content = f"catalogue/{folder}/{path.name}", {}
        with problems.collect():
            content = read_yaml_mapping(path)
        for name, entry in content.items():
            place = Place(root, file, (name,))
            if name in entries:
                problems.add(f"{place}: '{name}' is in {entries[name][0].file}, too; give one of them another name")
            entries[name] = (place, None)
            with problems.collect():
                entries[name] = (place, parse_as(model, entry, path, (name,)))
    return entries


def _variants(lineage: list[tuple[Place, MethodEntry]]) -> dict[str, Variant]:
    """Return the variants of a method: its own, and those of the entries that it extends."""
    variants: dict[str, tuple[Place, VariantEntry]] = {}
    for place, entry in lineage:
        given = entry.variants
        if isinstance(given, list):
            for one in given:
                if one not in variants:
                    raise UserError(f"{place / 'variants'}: no variant '{one}'; {suggest_name(one, variants)}")
            variants = {one: variants[one] for one in given}
        elif given:
            at = {one: Place(place.root, place.file, (*place.entry, "variants", one)) for one in given}
            variants = {one: (at[one], variant) for one, variant in given.items()}
    return {one: Variant(variants[one][1].title, tuple(_variant_blocks(variants, one))) for one in variants}


def _lineage(entries: dict[str, tuple[Place, Any]], name: str) -> list[tuple[Place, Any]]:
    """Return an entry after those that it extends; nothing for an abstract entry, or if one of them is not right."""
    chain = [entries[name]]
    while chain[0][1] and (base := chain[0][1].extends):
        place = chain[0][0]
        if base not in entries:
            raise UserError(f"{place / 'extends'}: no entry '{base}'; {suggest_name(base, entries)}")
        if entries[base] in chain:
            raise UserError(f"{place / 'extends'}: extends '{base}', which extends this entry")
        chain.insert(0, entries[base])
    return chain if chain[0][1] and not getattr(chain[-1][1], "abstract", False) else []


def _fields(name: str, lineage: list[tuple[Place, Entry]], required: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of an entry, with those that it inherits. Raises UserError if a required one is missing."""
    found: dict[str, Any] = {}
    for _, entry in lineage:
        found |= {key: value for key in type(entry).model_fields if (value := getattr(entry, key)) is not None}
    place = lineage[-1][0]
    for key in required:
        if key not in found:
            raise UserError(f"{place}: key '{name}.{key}' is missing")
    return {"phrases": None, "disk": None, "subsets": [], **found}


def _blocks(lineage: list[tuple[Place, Entry]]) -> tuple[Block, ...]:
    """Return the settings of an entry: its own and inherited ones, then the rules, from base to entry."""
    own = [Block(place, entry) for place, entry in lineage]
    rules = [
        Block(Place(place.root, place.file, (*place.entry, "when", number)), rule)
        for place, entry in lineage
        for number, rule in enumerate(entry.when)
    ]
    return (*own, *rules)


def _variant_blocks(variants: dict[str, tuple[Place, VariantEntry]], name: str) -> Iterator[Block]:
    for place, entry in _lineage(variants, name):
        yield Block(place, entry)
