"""Import the modules that a configuration names, and read their options."""

import importlib
from collections.abc import Callable
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import list_files
from workflow_scripts.common.system import PROJECT
from workflow_scripts.common.validation import suggest_name


def import_function(name: str, function: str, package: str) -> Callable[..., Any]:
    """Import a function of a module that a configuration names.

    The configuration may come from elsewhere, such as from a crate. So nothing is imported, and
    UserError is raised, unless the module is a file in the folder of `package` of this project.
    """
    folder = PROJECT / package.replace(".", "/")
    modules = [file.stem for file in list_files(folder, "*.py")]
    if name not in modules:
        raise UserError(f"no module '{name}' in {package}; {suggest_name(name, modules)}")
    module = importlib.import_module(f"{package}.{name}")
    imported = getattr(module, function, None)
    if imported is None:
        raise UserError(f"module '{name}' has no function {function}; name another module")
    return imported


def merge_options(options: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Overwrite `defaults` by `options`.

    Raises UserError for a key without a default, with the nearest known key.
    """
    for key in options:
        if key not in defaults:
            raise UserError(f"displays.yaml: unknown option '{key}'; {suggest_name(key, defaults)}")
    return {**defaults, **options}
