"""The packages of models/, objectives/ and tasks/, each with its settings beside its code. No torch here."""

import importlib
from functools import cache
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import without_name
from workflow_scripts.common.validation import Strict, checked, nearest
from workflow_scripts.tasks.settings import Traits

FOLDER = Path(__file__).parents[1]
NAMED = {"model": "models", "objective": "objectives"}  # sections that name a package -> its group


@cache
def packages(group: str) -> tuple[str, ...]:
    """Names of the packages of a group (`models`, `objectives` or `tasks`) that have settings."""
    return tuple(sorted(file.parent.name for file in (FOLDER / group).glob("*/settings.py")))


@cache
def settings_class(section: str, name: str | None, kind: str) -> type[Strict] | None:
    """The class that checks the section `model`, `problem` or `objective` of a run. `model` and `objective` name their
    package, and `problem` belongs to the kind of task. None where there is no such package."""
    group, name = (NAMED[section], name) if section in NAMED else ("tasks", kind)
    if name not in packages(group):
        return None
    return importlib.import_module(f"workflow_scripts.{group}.{name}.settings").Settings


def traits(kind: str) -> Traits:
    """What the settings of runs of a kind of task may ask for."""
    return importlib.import_module(f"workflow_scripts.tasks.{kind}.settings").TRAITS


def check_sections(sections: dict[str, dict], kind: str, where: str) -> None:
    """Check the settings of model, problem and objective. Raises UserError."""
    for section in ("model", "problem", "objective"):
        content = sections[section]
        if section in NAMED and (content or section == "model"):
            known = packages(NAMED[section])
            if "name" not in content:
                raise UserError(f"{where}: key '{section}.name' is missing; known: {', '.join(known)}")
            if content["name"] not in known:
                raise UserError(
                    f"{where}: key '{section}.name' is {content['name']!r}; {nearest(content['name'], known)}"
                )
        if described := settings_class(section, content.get("name"), kind):
            checked(described, without_name(content), where, section)
