"""Read YAML. Errors are one line with file and line number."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.common.errors import UserError


def read_yaml(path: Path) -> Any:
    """Read a YAML file safely. Raises UserError with file and line if it is missing or not valid."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise UserError(
            f"{path} does not exist; call this in the repository's own folder, and write or restore the file there"
        ) from error
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(content.decode())
        node = loader.get_single_node()
        _check_keys(node)
        return loader.construct_document(node) if node else None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; convert it") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not valid YAML ({getattr(error, 'problem', error)})") from error


def _check_keys(node: yaml.Node | None) -> None:
    """Raise MarkedYAMLError for a repeated key in a mapping, because PyYAML would silently use the last value."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"'{key.value}' stands there twice", problem_mark=key.start_mark)
            seen.add(key.value)
            _check_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(item)


def read_yaml_mapping(path: Path) -> dict:
    """Read a YAML file that is a mapping of named entries. Raises UserError for other content."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: it must hold keys with their values, as `key: value`")
    return content


def find_line(path: Path, keys: Iterable[str | int]) -> int:
    """Return the line of a key of a YAML file; that of the nearest outer key that the file has."""
    node, line = _compose(path, path.stat().st_mtime_ns), 1
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == str(key)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            found = (node.value[key], node.value[key])
        else:
            found = None
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


@lru_cache(maxsize=32)
def _compose(path: Path, changed: int) -> yaml.Node | None:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(path.read_bytes().decode()).get_single_node()
