"""Import the modules that a configuration names, and parse their options.

The configuration may come from elsewhere, such as from a crate. So nothing is imported but files in
the folder of a package of this project.
"""

import importlib
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
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


def import_own_module(name: str) -> ModuleType:
    """Import a module of this project, which a user may have written.

    Raises UserError with the file and line at which the import fails.
    """
    try:
        return importlib.import_module(name)
    except Exception as error:  # anything that a user's module may raise
        raise UserError(describe_failed_import(name, error)) from error


def describe_failed_import(name: str, error: Exception) -> str:
    """Say in one line, with file and line, why a module of this project cannot be imported."""
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    first_line = reason.partition("\n")[0]
    problem = f"cannot be imported: {first_line} ({type(error).__name__})"
    advice = "correct it"
    if isinstance(error, ModuleNotFoundError):
        advice = "correct the name, or install the package"
    return f"{_locate_failure(name, error)}: {problem}; {advice}"


def _locate_failure(name: str, error: Exception) -> str:
    """Return the file and line at which an import fails, the innermost one of this project."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shorten_path(error.filename)}:{error.lineno or 1}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        is_own = Path(frame.filename).is_relative_to(PROJECT / "workflow_scripts")
        if is_own and frame.filename != __file__:
            return f"{_shorten_path(frame.filename)}:{frame.lineno}"
    return f"{name.replace('.', '/')}.py:1"


def _shorten_path(file: str) -> str:
    """Return the path of a file of this project as seen from its root."""
    path = Path(file)
    if path.is_relative_to(PROJECT):
        return str(path.relative_to(PROJECT))
    return file


def import_function(name: str, function: str, package: str) -> Callable[..., Any]:
    """Import a function of a module that a configuration names.

    Raises UserError, without an import, unless the module is a file in the folder of `package`,
    and with file and line if the import fails.
    """
    _check_module(name, package)
    module = import_own_module(f"{package}.{name}")
    imported = getattr(module, function, None)
    if imported is None:
        raise UserError(f"module '{name}' has no function {function}; name another module")
    return imported


def load_options_class(name: str, package: str) -> type[BaseModel]:
    """Load the class of the options of a module that a configuration names.

    It is `Options` of the module of the same name in `options/` of `package`, or NoOptions if there
    is none. The module itself is not imported, because that may take seconds.

    Raises UserError, without an import, unless the module is a file in the folder of `package`,
    and with file and line if the import of its options fails.
    """
    _check_module(name, package)
    if name not in list_modules(f"{package}.options"):
        return NoOptions
    module = import_own_module(f"{package}.options.{name}")
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
