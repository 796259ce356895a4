"""Find the settings classes of models/, objectives/ and tasks/ by the name of the package."""

import importlib
from functools import cache
from pathlib import Path

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.tasks.settings import KindSettings

FOLDER = Path(__file__).parents[1]
NAMED = {"model": "models", "objective": "objectives"}  # sections that name a package -> its group


@cache
def list_packages(group: str) -> tuple[str, ...]:
    """List the packages of a group (`models`, `objectives` or `tasks`) that have settings."""
    settings_files = (FOLDER / group).glob("*/settings.py")
    return tuple(sorted(file.parent.name for file in settings_files))


@cache
def find_settings_class(group: str, name: str | None) -> type[StrictModel] | None:
    """Return the settings class of a package of a group; None if there is no such package."""
    if name not in list_packages(group):
        return None
    module = importlib.import_module(f"workflow_scripts.{group}.{name}.settings")
    return module.Settings


@cache
def load_kind_settings(kind: str) -> KindSettings:
    """Return what the configuration knows about a kind of task."""
    module = importlib.import_module(f"workflow_scripts.tasks.{kind}.settings")
    return module.KIND
