"""Model and objective of a resolved spec, from the modules that it names."""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch import nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.settings import without_module


def build_model(spec: dict, vocabulary: dict[str, list[str]]) -> nn.Module:
    """A freshly initialised model (from torch's global generator) for `spec["model"]`."""
    module, settings = _module(spec, "model")
    return module.build(
        settings, source_vocabulary=len(vocabulary["source"]), target_vocabulary=len(vocabulary["target"])
    )


def build_objective(spec: dict) -> Callable:
    """`objective(model, batch) -> (loss, parts)` for `spec["objective"]`."""
    module, settings = _module(spec, "objective")
    return module.build(settings)


def _module(spec: dict, section: str) -> tuple[ModuleType, dict[str, Any]]:
    name = spec[section]["module"]
    try:
        return importlib.import_module(name), without_module(spec[section])
    except ModuleNotFoundError as error:
        raise UserError(f"{section}.module names {name}, but there is no module {error.name}") from error
