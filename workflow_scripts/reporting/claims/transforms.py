"""What is taken of a value before two sides of a claim are compared: its logarithm, or its odds."""

import math
from collections.abc import Callable

from workflow_scripts.config.axes import UNITS_OF_MEASURES

Transform = Callable[[float], float | None]


def compute_logarithm(value: float) -> float | None:
    """Return ln(value); None at 0 and below, where there is none."""
    if value <= 0:
        return None
    return math.log(value)


def compute_log_odds(percent: float) -> float | None:
    """Return ln(p / (1 - p)) of a percentage; None at 0% and at 100%, where it is infinite."""
    if not 0 < percent < 100:
        return None
    return math.log(percent / (100 - percent))


TRANSFORMS: dict[str, Transform] = {  # by the measure of a claim
    "log_ratio": compute_logarithm,
    "log_odds": compute_log_odds,
}
TRANSFORMS_BY_UNIT: dict[str, Transform] = {  # by the unit of its effect
    UNITS_OF_MEASURES[measure]: transform for measure, transform in TRANSFORMS.items()
}
