"""The words after --config, which change config.yaml for one call.

./reproduce and the commands read them alike.
"""

from collections.abc import Iterable
from typing import Any

from workflow_scripts.common.yaml_files import parse_yaml


def merge_overrides(content: dict[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """Return the content of config.yaml with `key=value` words, whose values are YAML.

    A mapping changes the keys that it has. Raises UserError for a value that is no YAML.
    """
    return _merge(content, read_overrides(words))


def read_overrides(words: Iterable[str]) -> dict[str, Any]:
    """Parse `key=value` words. Of a repeated key the last one counts."""
    values = {}
    for word in words:
        key, _, text = word.partition("=")
        values[key] = parse_yaml(text.encode(), f"--config {key}")
    return values


def _merge(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(content)
    for key, value in changes.items():
        before = content.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merge(before, value)
        merged[key] = value
    return merged
