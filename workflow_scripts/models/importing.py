"""Find models by name: models/<name>/model.py builds a model from the settings in models/<name>/settings.py."""

import importlib
from types import ModuleType
from typing import Any

from workflow_scripts.common.errors import UserError


def import_model(section: dict[str, Any]) -> ModuleType:
    """Import the module that builds the model of the section `model` of a spec. Raises UserError if it is missing."""
    try:
        return importlib.import_module(f"workflow_scripts.models.{section['name']}.model")
    except ModuleNotFoundError as error:
        raise UserError(f"model.name is '{section['name']}', but there is no module {error.name}") from error
