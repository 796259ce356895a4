"""Read the options of analyses and figures, and sections of a spec."""

from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name


def merge_options(given: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Overwrite `defaults` by `given`. Raises UserError for a key without a default, with the nearest known key."""
    for key in given:
        if key not in defaults:
            raise UserError(f"displays.yaml: unknown option '{key}'; {suggest_name(key, defaults)}")
    return {**defaults, **given}


def drop_name(section: dict[str, Any]) -> dict[str, Any]:
    """Return a section `model` or `objective` of a spec without the name of its package."""
    return {key: value for key, value in section.items() if key != "name"}
