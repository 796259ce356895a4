"""Reading options: those that displays.yaml gives to an analysis or a figure, and the settings of a named package."""

from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import nearest


def options_from(given: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """`defaults` overwritten by `given`. Raises UserError for a key that has no default, with the nearest known one."""
    for key in given:
        if key not in defaults:
            raise UserError(f"displays.yaml: unknown option '{key}'; {nearest(key, defaults)}")
    return {**defaults, **given}


def without_name(section: dict[str, Any]) -> dict[str, Any]:
    """The settings in a section `model` or `objective` of a spec: all but the name of their package."""
    return {key: value for key, value in section.items() if key != "name"}
