"""Tasks and methods of catalogue/: what `extends` copies, and which settings apply to which runs."""

from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.common.yaml_files import find_line, read_yaml_mapping
from workflow_scripts.config.schema import Condition, Layer, MethodEntry, TaskEntry, list_names


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
        if not isinstance(rule := self.content, Condition):
            return True
        pairs = ((rule.task, task), (rule.kind, kind), (rule.scale, scale))
        return all(
            any(fnmatchcase(name, one) for one in list_names(wanted or "*"))
            for wanted, name in pairs
        )


@dataclass(frozen=True)
class Task:
    """A data set with its splits and its measures."""

    title: str
    kind: str
    prepare: str
    blocks: tuple[Block, ...]
    phrases: str | None = None
    disk: int | None = None
    subsets: list[str] = field(default_factory=list)


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
    tasks = {}
    for name, lineage, given in _read_entries(
        root, "tasks", TaskEntry, ("title", "kind", "prepare"), problems
    ):
        known = {field.name: given[field.name] for field in fields(Task) if field.name in given}
        tasks[name] = Task(blocks=_blocks(lineage), **known)
    return tasks


def read_methods(root: Path, problems: Problems) -> dict[str, Method]:
    """Read the entries of catalogue/methods that are right."""
    methods = {}
    for name, lineage, given in _read_entries(
        root, "methods", MethodEntry, ("title", "kinds", "variants"), problems
    ):
        with problems.collect():
            methods[name] = Method(
                given["title"], given["kinds"], _blocks(lineage), _variants(lineage)
            )
    return methods


def _read_entries(
    root: Path, folder: str, model: type[BaseModel], required: tuple[str, ...], problems: Problems
) -> list[tuple[str, list[tuple[Place, Any]], dict[str, Any]]]:
    """Return the entries of a folder that are right: name, the entry after those that it extends, and their values."""
    entries: dict[str, tuple[Place, Any]] = {}  # None for an entry that is not right
    for path in sorted((root / "catalogue" / folder).glob("*.yaml")):
        content = {}
        with problems.collect():
            content = read_yaml_mapping(path)
        for name, entry in content.items():
            place = Place(root, f"catalogue/{folder}/{path.name}", (name,))
            if name in entries:
                problems.add(
                    f"{place}: '{name}' is in {entries[name][0].file}, too; give one of them another name"
                )
            entries[name] = (place, None)
            with problems.collect():
                entries[name] = (place, parse_as(model, entry, path, (name,)))
    found = []
    for name, (place, _) in entries.items():
        with problems.collect():
            if lineage := _lineage(entries, name):
                given: dict[str, Any] = {}
                for _, entry in lineage:
                    given |= {
                        key: value
                        for key in model.model_fields
                        if (value := getattr(entry, key)) is not None
                    }
                if lacking := [key for key in required if key not in given]:
                    raise UserError(f"{place}: key '{name}.{lacking[0]}' is missing")
                found.append((name, lineage, given))
    return found


def _variants(lineage: list[tuple[Place, Any]]) -> dict[str, Variant]:
    """Return the variants of a method: its own, and those of the entries that it extends."""
    variants: dict[str, tuple[Place, Any]] = {}
    for place, entry in lineage:
        if isinstance(entry.variants, list):
            for one in entry.variants:
                if one not in variants:
                    raise UserError(
                        f"{place / 'variants'}: no variant '{one}'; {suggest_name(one, variants)}"
                    )
            variants = {one: variants[one] for one in entry.variants}
        elif entry.variants:
            at = (*place.entry, "variants")
            variants = {
                one: (replace(place, entry=(*at, one)), variant)
                for one, variant in entry.variants.items()
            }
    return {
        one: Variant(entry.title, tuple(Block(*each) for each in _lineage(variants, one)))
        for one, (_, entry) in variants.items()
    }


def _lineage(entries: dict[str, tuple[Place, Any]], name: str) -> list[tuple[Place, Any]]:
    """Return an entry after those that it extends; nothing for an abstract entry, or if one of them is not right."""
    chain = [entries[name]]
    while chain[0][1] and (base := chain[0][1].extends):
        place = chain[0][0]
        if base not in entries:
            raise UserError(
                f"{place / 'extends'}: no entry '{base}'; {suggest_name(base, entries)}"
            )
        if entries[base] in chain:
            raise UserError(f"{place / 'extends'}: extends '{base}', which extends this entry")
        chain.insert(0, entries[base])
    return chain if chain[0][1] and not getattr(chain[-1][1], "abstract", False) else []


def _blocks(lineage: list[tuple[Place, Any]]) -> tuple[Block, ...]:
    """Return the settings of an entry: its own and inherited ones, then the rules, from base to entry."""
    rules = [
        Block(replace(place, entry=(*place.entry, "when", number)), rule)
        for place, entry in lineage
        for number, rule in enumerate(entry.when)
    ]
    return (*(Block(*each) for each in lineage), *rules)
