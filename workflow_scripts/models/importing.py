"""Find models by name: models/<name>/model.py builds a model from the settings in models/<name>/settings.py."""

import importlib
from types import ModuleType
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import drop_name
from workflow_scripts.common.validation import StrictModel, parse_as


def import_model(section: dict[str, Any]) -> ModuleType:
    """Import the module that builds the model of the section `model` of a spec. Raises UserError if it is missing."""
    try:
        return importlib.import_module(f"workflow_scripts.models.{section['name']}.model")
    except ModuleNotFoundError as error:
        raise UserError(f"model.name is '{section['name']}', but there is no module {error.name}") from error


def read_settings(section: dict[str, Any]) -> StrictModel:
    """Return the settings of the section `model` of a spec, with the defaults, which a spec leaves out."""
    return parse_as(import_model(section).Settings, drop_name(section), "model")
