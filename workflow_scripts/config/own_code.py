"""Check the code that a name in catalogue/ or papers/ leads to, which a user may have written.

Its settings are imported. The rest is only read, since it may import torch.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import (
    MEASURES,
    describe_failed_import,
    import_own_module,
)
from workflow_scripts.common.system import PROJECT
from workflow_scripts.common.validation import StrictModel, find_close_name
from workflow_scripts.evaluation.measures import list_measures
from workflow_scripts.tasks.packages import list_packages
from workflow_scripts.tasks.settings import KindSettings

PACKAGE = "workflow_scripts"
SETTINGS_GROUPS = ("models", "objectives")  # their settings.py has a class Settings


class EntryPoint(NamedTuple):
    """A module that each package of a group has, and the function or class that it must define."""

    group: str
    module: str
    name: str


ENTRY_POINTS = (
    EntryPoint("models", "model", "build"),
    EntryPoint("objectives", "objective", "build"),
    EntryPoint("tasks", "training_setup", "set_up_training"),
    EntryPoint("tasks", "kind", "Kind"),
)


def check_settings() -> Iterator[str]:
    """Yield each settings.py of a model, an objective or a kind of task that cannot be used."""
    for group in SETTINGS_GROUPS:
        for name in list_packages(group):
            yield from _check_settings_class(f"{PACKAGE}.{group}.{name}.settings")
    for name in list_packages("tasks"):
        yield from _check_kind(f"{PACKAGE}.tasks.{name}.settings")


def _check_settings_class(module_name: str) -> Iterator[str]:
    """Yield why a module has no complete class Settings."""
    try:
        settings = getattr(import_own_module(module_name), "Settings", None)
    except UserError as error:
        yield str(error)
        return
    if not isinstance(settings, type) or not issubclass(settings, StrictModel):
        file = name_file(module_name)
        yield f"{file}:1: class `Settings`, a StrictModel, is missing; write it"
        return
    try:
        settings.model_rebuild()  # finds names of types that are not defined
    except Exception as error:
        yield describe_failed_import(module_name, error)


def _check_kind(module_name: str) -> Iterator[str]:
    """Yield why a module has no KIND."""
    try:
        kind = getattr(import_own_module(module_name), "KIND", None)
    except UserError as error:
        yield str(error)
        return
    if not isinstance(kind, KindSettings):
        yield f"{name_file(module_name)}:1: `KIND`, a KindSettings, is missing; write it"


def check_entry_points() -> Iterator[str]:
    """Yield each module of a model, objective, kind of task or measure that cannot be called.

    It lacks the function or class that this project calls, such as `build`.
    """
    for group, module, name in ENTRY_POINTS:
        for package in list_packages(group):
            yield from check_definition(f"{PACKAGE}.{group}.{package}.{module}", name)
    for measure in list_measures():
        yield from check_definition(f"{MEASURES}.{measure}", "score_outputs")


def check_definition(module_name: str, name: str) -> Iterator[str]:
    """Yield that a module, which is not imported, is missing, not valid or does not define a name.

    A module with `import *` may define any name.
    """
    file = name_file(module_name)
    path = PROJECT / file
    if not path.is_file():
        yield f"{file} is missing; write it, with `{name}`"
        return
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        yield describe_failed_import(module_name, error)
        return
    lines = dict(_list_definitions(tree.body))
    if name in lines or "*" in lines:
        return
    close = find_close_name(name, lines)
    if close:
        yield f"{file}:{lines[close]}: `{name}` is missing; rename `{close}`"
    else:
        yield f"{file}:1: `{name}` is missing; write it"


def _list_definitions(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Yield name and line of what statements define, those inside `if` and `try` too."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield part.id, node.lineno
        else:
            for block in ("body", "orelse", "finalbody"):
                yield from _list_definitions(getattr(node, block, []))


def name_file(module_name: str) -> Path:
    """Return the file of a module, as seen from the root of the project."""
    return Path(module_name.replace(".", "/")).with_suffix(".py")
