"""Import the modules that a configuration names, and parse their options.

The configuration may come from elsewhere, such as from a crate. So nothing is imported but files in
the folder of a package of this project.
"""

import importlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import list_files
from workflow_scripts.common.system import PROJECT
from workflow_scripts.common.validation import StrictModel, parse_as, suggest_name

# Packages whose modules a configuration names.
ANALYSES = "workflow_scripts.analyses"
FIGURES = "workflow_scripts.reporting.figures"
MEASURES = "workflow_scripts.evaluation"


class NoOptions(StrictModel):
    """Options of a module that has none."""


def list_modules(package: str) -> list[str]:
    """Return the names of the modules of a package of this project; none if it has no folder."""
    folder = PROJECT / package.replace(".", "/")
    if not folder.is_dir():
        return []
    return list(_list_stems(folder, folder.stat().st_mtime_ns))


@lru_cache
def _list_stems(folder: Path, changed: int) -> tuple[str, ...]:
    """Return the names of the modules in a folder, sorted.

    changed: its time in nanoseconds, so that a folder with a new file is not taken from the cache.
    """
    stems = [file.stem for file in list_files(folder, "*.py") if file.stem != "__init__"]
    return tuple(sorted(stems))


def import_function(name: str, function: str, package: str) -> Callable[..., Any]:
    """Import a function of a module that a configuration names.

    Raises UserError, without an import, unless the module is a file in the folder of `package`.
    """
    _check_module(name, package)
    module = importlib.import_module(f"{package}.{name}")
    imported = getattr(module, function, None)
    if imported is None:
        raise UserError(f"module '{name}' has no function {function}; name another module")
    return imported


def load_options_class(name: str, package: str) -> type[BaseModel]:
    """Load the class of the options of a module that a configuration names.

    It is `Options` of the module of the same name in `options/` of `package`, or NoOptions if there
    is none. The module itself is not imported, because that may take seconds.

    Raises UserError, without an import, unless the module is a file in the folder of `package`.
    """
    _check_module(name, package)
    if name not in list_modules(f"{package}.options"):
        return NoOptions
    module = importlib.import_module(f"{package}.options.{name}")
    options = getattr(module, "Options", None)
    if not isinstance(options, type) or not issubclass(options, BaseModel):
        raise UserError(f"{module.__file__} has no class `Options` of pydantic; write it")
    return options


def parse_options(
    name: str, package: str, content: Any, file: str | Path, keys: tuple[str, ...]
) -> BaseModel:
    """Parse the options of a module, which a file has under `keys`.

    Raises UserError as `load_options_class` and `parse_as` do.
    """
    return parse_as(load_options_class(name, package), content, file, keys)


def _check_module(name: str, package: str) -> None:
    """Raise UserError unless a module is a file in the folder of a package of this project."""
    modules = list_modules(package)
    if name not in modules:
        raise UserError(f"no module '{name}' in {package}; {suggest_name(name, modules)}")
