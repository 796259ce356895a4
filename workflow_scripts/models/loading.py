"""Models by name: models/<name>/model.py builds what models/<name>/settings.py describes."""

import importlib
from types import ModuleType
from typing import Any

from workflow_scripts.common.errors import UserError

PACKAGE = "workflow_scripts.models"


def model_module(section: dict[str, Any]) -> ModuleType:
    """The module `model` of the package that the section `model` of a spec names. Raises UserError without one."""
    try:
        return importlib.import_module(f"{PACKAGE}.{section['name']}.model")
    except ModuleNotFoundError as error:
        raise UserError(f"model.name is '{section['name']}', but there is no module {error.name}") from error
