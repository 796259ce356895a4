"""Find objectives by name: objectives/<name>/objective.py adds a paper's terms to the loss of a task."""

import importlib
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import drop_name
from workflow_scripts.tasks.base import Loss

PACKAGE = "workflow_scripts.objectives"


def build_objective(section: dict[str, Any], loss: Loss) -> Loss:
    """Build the objective of the section `objective` of a spec around the task's `loss`; return `loss` if it is empty.

    Raises UserError for an unknown name or wrong settings.
    """
    if not section:
        return loss
    try:
        module = importlib.import_module(f"{PACKAGE}.{section['name']}.objective")
    except ModuleNotFoundError as error:
        raise UserError(f"objective.name is '{section['name']}', but there is no module {error.name}") from error
    return module.build(drop_name(section), loss)
