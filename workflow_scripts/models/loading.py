"""Find models by name: models/<name>/model.py builds a model from models/<name>/settings.py."""

import importlib
from types import ModuleType
from typing import Any

from workflow_scripts.common.errors import UserError

PACKAGE = "workflow_scripts.models"


def model_module(section: dict[str, Any]) -> ModuleType:
    """Return the module `model` of the package in the section `model` of a spec. Raises UserError if there is none."""
    try:
        return importlib.import_module(f"{PACKAGE}.{section['name']}.model")
    except ModuleNotFoundError as error:
        raise UserError(f"model.name is '{section['name']}', but there is no module {error.name}") from error
