"""The words after --config, which change config.yaml for one call.

./reproduce and the commands read them alike.
"""

from collections.abc import Iterable
from typing import Any

from workflow_scripts.common.yaml_files import parse_yaml

# Keys of config.yaml that have an option of ./reproduce and of the commands.
OPTIONS = {"papers": "--papers", "claims": "--claim", "scale": "--scale"}
# Words before the value of such an option: they are refused where no value follows.
PLACEHOLDERS = {key: f"{key}=[]" for key in OPTIONS}


def name_option(words: Iterable[str], key: str) -> str:
    """Return the option with which a call sets a key: its own one, or `--config`."""
    if key in OPTIONS and PLACEHOLDERS[key] in words:
        return OPTIONS[key]
    return "--config"


def merge_overrides(content: dict[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """Return the content of config.yaml with `key=value` words, whose values are YAML.

    A mapping changes the keys that it has. Raises UserError for a value that is no YAML.
    """
    return _merge(content, read_overrides(words))


def read_overrides(words: Iterable[str]) -> dict[str, Any]:
    """Parse `key=value` words. Of a repeated key the last one counts."""
    written = list(words)
    values = {}
    for word in written:
        key, _, text = word.partition("=")
        option = name_option(written, key)
        place = f"{option} {key}" if option == "--config" else option
        values[key] = parse_yaml(text.encode(), place)
    return values


def _merge(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(content)
    for key, value in changes.items():
        before = content.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merge(before, value)
        merged[key] = value
    return merged
