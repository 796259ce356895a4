"""Read YAML. Errors are one line with file and line number."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MAX_DEPTH

MAX_VALUES = 1_000_000
KEYS = ("str", "int", "float", "merge")  # types that a key may have
EXPONENT = re.compile(
    r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+"
)  # a number in Python; in YAML 1.1 mostly a text


def read_yaml(path: Path) -> Any:
    """Read a YAML file safely. Raises UserError with file and line if it is missing or not valid."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise UserError(
            f"{path} does not exist; run this in the root of the repository, or restore it"
        ) from error
    return parse_yaml(content, path)


def parse_yaml(content: bytes, path: str | Path) -> Any:
    """Parse YAML safely. Raises UserError with `path` and the line if it is not valid."""
    try:
        text, make_loader = content.decode(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        depth = 0
        for event in yaml.parse(text, make_loader):  # the loader would exhaust the stack
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
                event, yaml.CollectionEndEvent
            )
            if depth > MAX_DEPTH:
                problem = f"nested more than {MAX_DEPTH} levels deep"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        loader = make_loader(text)
        node = loader.get_single_node()
        _check_node(node, {})
        return loader.construct_document(node) if node else None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; convert it") from error
    except (
        yaml.YAMLError,
        ValueError,
        AttributeError,
    ) as error:  # the last two: no such number, date or time
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = str(getattr(error, "problem", error)).partition("\n")[0]
        raise UserError(f"{path}{line}: not valid YAML ({problem})") from error


def _check_node(node: yaml.Node | None, counts: dict[int, int]) -> int:
    """Check a node and count the values in it, with aliases expanded; `counts` stores those of finished nodes by `id`.

    Raises MarkedYAMLError if the aliases expand to more than MAX_VALUES values, for a key that is repeated, of which
    PyYAML would silently use the last value, or that is no text or number, and for numbers that YAML reads otherwise
    than Python does, or that are no numbers.
    """
    if id(node) in counts:
        return counts[id(node)]
    counts[id(node)] = MAX_VALUES  # an alias inside its own anchor never ends
    inner = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.ScalarNode):
        if node.tag == "tag:yaml.org,2002:float" and node.value.lstrip("+-").lower() in (
            ".nan",
            ".inf",
        ):
            raise yaml.MarkedYAMLError(
                problem=f"{node.value} is no number", problem_mark=node.start_mark
            )
        if (
            node.tag == "tag:yaml.org,2002:str"
            and not node.style
            and EXPONENT.fullmatch(node.value)
        ):
            mantissa, _, exponent = node.value.lower().partition("e")
            number = f"{mantissa}{'' if '.' in mantissa else '.0'}e{int(exponent):+d}"
            problem = f"YAML reads {node.value} as text; write {number}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.rpartition(":")[2] not in KEYS:
                problem = f"a key must be a name or a number, and {key.value!r} is neither; put it in quotes"
                raise yaml.MarkedYAMLError(problem=problem[:200], problem_mark=key.start_mark)
            if key.value in seen:
                problem = f"'{key.value}' is listed twice; remove one"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
            inner.append(value)
    counts[id(node)] = 1 + sum(_check_node(value, counts) for value in inner)
    if node and counts[id(node)] > MAX_VALUES:
        problem = f"its aliases expand to more than {MAX_VALUES:,} values"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return counts[id(node)]


def read_yaml_mapping(path: Path) -> dict:
    """Read a YAML file that is a mapping of named entries. Raises UserError for other content."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must contain `key: value` lines")
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
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(
        path.read_bytes().decode()
    ).get_single_node()
