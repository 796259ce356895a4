"""Find the settings classes of models/, objectives/ and tasks/ by the name of the package."""

import importlib
from functools import cache
from pathlib import Path

from workflow_scripts.common.errors import Problems
from workflow_scripts.common.plug_ins import drop_name
from workflow_scripts.common.validation import StrictModel, parse_as, suggest_name
from workflow_scripts.tasks.settings import Traits

FOLDER = Path(__file__).parents[1]
NAMED = {"model": "models", "objective": "objectives"}  # sections that name a package -> its group


@cache
def list_packages(group: str) -> tuple[str, ...]:
    """List the packages of a group (`models`, `objectives` or `tasks`) that have settings."""
    return tuple(sorted(file.parent.name for file in (FOLDER / group).glob("*/settings.py")))


@cache
def find_settings_class(section: str, name: str | None, kind: str) -> type[StrictModel] | None:
    """Return the settings class of the section `model`, `problem` or `objective` of a run; None if there is none.

    `model` and `objective` name their package; `problem` belongs to the kind of task.
    """
    group, name = (NAMED[section], name) if section in NAMED else ("tasks", kind)
    if name not in list_packages(group):
        return None
    return importlib.import_module(f"workflow_scripts.{group}.{name}.settings").Settings


@cache
def load_traits(kind: str) -> Traits:
    """Return the options that a kind of task supports."""
    return importlib.import_module(f"workflow_scripts.tasks.{kind}.settings").TRAITS


def check_sections(sections: dict[str, dict], kind: str, where: str) -> dict[str, StrictModel | None]:
    """Check and return the settings of model, problem and objective; None without a class. Raises UserError."""
    found: dict[str, StrictModel | None] = {}
    problems = Problems()
    for section in ("model", "problem", "objective"):
        content, name = sections[section], sections[section].get("name")
        name = str(name) if isinstance(name, list | dict) else name  # no name can be looked up in the caches by it
        if section in NAMED and (content or section == "model"):
            known = list_packages(NAMED[section])
            if "name" not in content:
                problems.add(f"{where}: key '{section}.name' is missing; known: {', '.join(known)}")
            elif name not in known:
                problems.add(f"{where}: key '{section}.name' is {name!r}; {suggest_name(str(name), known)}")
        described = find_settings_class(section, name, kind)
        with problems.collect():
            found[section] = parse_as(described, drop_name(content), where, section) if described else None
    problems.check_empty()
    return found
