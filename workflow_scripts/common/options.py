"""Reading the `options` that displays.yaml gives to an analysis or a figure."""

from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import nearest


def options_from(given: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """`defaults` overwritten by `given`. Raises UserError for a key that has no default, with the nearest known one."""
    for key in given:
        if key not in defaults:
            raise UserError(f"displays.yaml: unknown option '{key}'; {nearest(key, defaults)}")
    return {**defaults, **given}
