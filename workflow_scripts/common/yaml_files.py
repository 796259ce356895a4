"""Read YAML. Errors are one line with file and line number."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MAX_DEPTH

SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_VALUES = 1_000_000
CONSTRUCTOR = yaml.constructor.SafeConstructor()
TAGS_OF_NUMBERS = [f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp")]
KEYS = ("str", "int", "float", "merge")  # types that a key may have
# Numbers as people write them. YAML 1.1 has octal, hexadecimal and sexagesimal ones, too.
DECIMAL = re.compile(
    r"[-+]?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(_[0-9]{3})+|[0-9]*\.[0-9]+|[0-9]+\.)([eE][-+]?[0-9]+)?"
)
LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
# A number in Python; in YAML 1.1 mostly a text.
EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


def read_yaml(path: Path) -> Any:
    """Read a YAML file safely.

    Raises UserError with file and line if it is missing or not valid.
    """
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
        text = content.decode()
        _check_yaml_depth(text)
        loader = SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_node(node, {})
        return loader.construct_document(node)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; convert it") from error
    except (yaml.YAMLError, ValueError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = str(getattr(error, "problem", error)).partition("\n")[0]
        raise UserError(f"{path}{line}: not valid YAML ({problem})") from error


@lru_cache(maxsize=128)  # a command reads the same files more than once
def _check_yaml_depth(text: str) -> None:
    """Raise MarkedYAMLError for too many levels, at which the loader would exhaust the stack."""
    depth = 0
    for event in yaml.parse(text, SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _make_error(f"nested more than {MAX_DEPTH} levels deep", event)


def _make_error(problem: str, place: yaml.Node | yaml.Event) -> yaml.MarkedYAMLError:
    """Make the error of a problem at a place in the file."""
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def _check_node(node: yaml.Node, counts: dict[int, int]) -> int:
    """Check a node and count the values in it, with aliases expanded.

    The counts of finished nodes are added to `counts` by `id`. Raises MarkedYAMLError if the
    aliases expand to more than MAX_VALUES values; for a key that is repeated, of which PyYAML would
    silently use the last value, or that is no text or number; and for values that YAML reads
    otherwise than people do.
    """
    if id(node) in counts:
        return counts[id(node)]
    counts[id(node)] = MAX_VALUES  # an alias inside its own anchor never ends
    count = 1
    for inner in _list_inner_nodes(node):
        count += _check_node(inner, counts)
    counts[id(node)] = count
    if count > MAX_VALUES:
        raise _make_error(f"its aliases expand to more than {MAX_VALUES:,} values", node)
    return count


def _list_inner_nodes(node: yaml.Node) -> list[yaml.Node]:
    """List the items of a list, or the values of a mapping; check the keys, or a single value."""
    if isinstance(node, yaml.SequenceNode):
        return node.value
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
        return [value for _, value in node.value]
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node)
    return []


def _check_keys(node: yaml.MappingNode) -> None:
    """Raise MarkedYAMLError for a key that is repeated, or that is no text or number."""
    keys = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag.rpartition(":")[2] not in KEYS:
            problem = (
                f"a key must be a name or a number, and {key.value!r} is neither; put it in quotes"
            )
            raise _make_error(problem[:200], key)
        if key.value in keys:
            raise _make_error(f"'{key.value}' is listed twice; remove one", key)
        _check_scalar(key)
        keys.add(key.value)


def _check_scalar(node: yaml.ScalarNode) -> None:
    """Raise MarkedYAMLError for a value that YAML cannot read, or otherwise than people do.

    `no` is a truth value to YAML, 021 is 17, 12:30 is 750, 1e5 and 08 are texts.
    """
    if not node.style:  # neither quoted nor a text of several lines
        _check_plain_value(node)
    if node.tag in TAGS_OF_NUMBERS:
        try:
            CONSTRUCTOR.yaml_constructors[node.tag](CONSTRUCTOR, node)
        except (ValueError, AttributeError) as error:  # no such number, date or time
            raise _make_error(str(error), node) from error


def _check_plain_value(node: yaml.ScalarNode) -> None:
    """Raise MarkedYAMLError for a value without quotes that YAML reads otherwise than people do."""
    value = node.value
    kind = node.tag.rpartition(":")[2]
    if kind == "float" and value.lstrip("+-").lower() in (".nan", ".inf"):
        raise _make_error(f"{value} is no number", node)
    if kind == "bool" and value.lower() not in ("true", "false"):
        meant = SafeLoader.bool_values[value.lower()]
        problem = f"YAML reads {value} as {str(meant).lower()}; write that, or '{value}' for a text"
        raise _make_error(problem, node)
    if kind in ("int", "float") and not DECIMAL.fullmatch(value):
        problem = f"{value} is not a decimal number; write one, or '{value}' for a text"
        raise _make_error(problem, node)
    if kind == "str" and EXPONENT.fullmatch(value):
        mantissa, _, exponent = value.lower().partition("e")
        if "." not in mantissa:
            mantissa += ".0"
        number = f"{mantissa}e{int(exponent):+d}"
        raise _make_error(f"YAML reads {value} as text; write {number}", node)
    if kind == "str" and LEADING_ZERO.fullmatch(value):
        problem = f"YAML reads {value} as text; write {int(value)}, or '{value}' for a text"
        raise _make_error(problem, node)


def read_yaml_mapping(path: Path) -> dict:
    """Read a YAML file that is a mapping of named entries.

    Raises UserError for other content, and for a name that is a number.
    """
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must contain `key: value` lines")
    for key in content:
        if not isinstance(key, str):
            line = find_line(path, (key,))
            raise UserError(f"{path}:{line}: the name {key} is a number; put it in quotes")
    return content


def find_line(path: Path, keys: Iterable[str | int]) -> int:
    """Return the line of a key of a YAML file; that of the nearest outer key that the file has."""
    node = _read_nodes(path, path.stat().st_mtime_ns)
    line = 1
    for key in keys:
        entry = _find_entry(node, key)
        if entry is None:
            break
        line = entry.place.start_mark.line + 1
        node = entry.value
    return line


class _Entry(NamedTuple):
    """An entry of a list or a mapping: the node that begins it, and its value."""

    place: yaml.Node
    value: yaml.Node


def _find_entry(node: yaml.Node | None, key: str | int) -> _Entry | None:
    """Return the entry of a key or of a position in a list; None if there is none."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == str(key):
                return _Entry(key_node, value)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return _Entry(node.value[key], node.value[key])
    return None


@lru_cache(maxsize=32)
def _read_nodes(path: Path, changed: int) -> yaml.Node | None:
    """Read the nodes of a file; None for an empty one.

    changed: its time in nanoseconds, so that a changed file is not taken from the cache.
    """
    return SafeLoader(path.read_bytes().decode()).get_single_node()
