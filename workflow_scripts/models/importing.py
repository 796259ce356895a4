"""Find models by name.

models/<name>/model.py builds a model from the settings in models/<name>/settings.py.
"""

import importlib
from types import ModuleType

from workflow_scripts.common.errors import UserError


def import_model(name: str) -> ModuleType:
    """Import the module that builds a model. Raises UserError if it is missing."""
    try:
        return importlib.import_module(f"workflow_scripts.models.{name}.model")
    except ModuleNotFoundError as error:
        raise UserError(f"model.name is '{name}', but there is no module {error.name}") from error
