"""Import the modules that a configuration names, and read their options."""

import importlib
from collections.abc import Callable
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.system import PROJECT
from workflow_scripts.common.validation import suggest_name


def import_function(name: str, function: str, package: str) -> Callable[..., Any]:
    """Import a function of a module that a configuration names.

    The configuration may come from elsewhere, such as from a crate. So nothing is imported, and UserError is raised,
    unless the module is a file in the folder of `package` of this project.
    """
    known = [file.stem for file in (PROJECT / package.replace(".", "/")).glob("*.py")]
    if name not in known:
        raise UserError(f"no module '{name}' in {package}; {suggest_name(name, known)}")
    found = getattr(importlib.import_module(f"{package}.{name}"), function, None)
    if found is None:
        raise UserError(f"module '{name}' has no function {function}; name another module")
    return found


def merge_options(given: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Overwrite `defaults` by `given`. Raises UserError for a key without a default, with the nearest known key."""
    for key in given:
        if key not in defaults:
            raise UserError(f"displays.yaml: unknown option '{key}'; {suggest_name(key, defaults)}")
    return {**defaults, **given}
