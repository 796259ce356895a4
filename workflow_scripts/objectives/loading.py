"""Objectives by name: objectives/<name>/objective.py adds to the loss of a task what a paper adds."""

import importlib
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import without_name
from workflow_scripts.tasks.base import Loss

PACKAGE = "workflow_scripts.objectives"


def build_objective(section: dict[str, Any], loss: Loss) -> Loss:
    """The objective that the section `objective` of a spec names, around the task's `loss`; that loss where it names
    none. Raises UserError where there is none of the name, or its settings are wrong."""
    if not section:
        return loss
    try:
        module = importlib.import_module(f"{PACKAGE}.{section['name']}.objective")
    except ModuleNotFoundError as error:
        raise UserError(f"objective.name is '{section['name']}', but there is no module {error.name}") from error
    return module.build(without_name(section), loss)
