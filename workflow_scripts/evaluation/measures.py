"""Measures of decoded outputs: modules that score them in addition to exact match.

Without what measures import, such as sacrebleu: it is slow, and `lint` reads their options.
"""

from abc import ABC, abstractmethod
from inspect import isabstract
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import MEASURES, list_modules, load_options_class
from workflow_scripts.common.validation import parse_as


class MeasureOptions(BaseModel, ABC):
    """Options of every measure, which state its metrics."""

    @abstractmethod
    def list_metrics(self) -> list[str]:
        """Return the names of the metrics that `score_outputs` gives with these options."""


def list_measures() -> list[str]:
    """Return the names of all measures."""
    return list_modules(f"{MEASURES}.options")


def parse_measure_options(
    name: str, content: Any, place: str, keys: tuple[str, ...] = ()
) -> MeasureOptions:
    """Parse the options of a measure, which `place` has under `keys`.

    Raises UserError if they are wrong, or if there is no such measure.
    """
    options = load_options_class(name, MEASURES)
    if not issubclass(options, MeasureOptions) or isabstract(options):
        raise UserError(
            f"module '{name}' of {MEASURES} is no measure: "
            f"options/{name}.py has no class `Options`, a MeasureOptions with `list_metrics`"
        )
    return parse_as(options, content, place, keys)
