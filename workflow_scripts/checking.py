"""Reading YAML, and checking what it says against a typed description: every error is one line with file and key."""

import difflib
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from workflow_scripts.errors import UserError

Model = TypeVar("Model", bound=BaseModel)
MOST_KNOWN = 40  # names of one message


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def read_yaml(path: Path) -> Any:
    """Read YAML safely. Raises UserError with file and line."""
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
    """Refuse a key that stands twice in one mapping: YAML's own readers take the second."""
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


def read_entries(path: Path) -> dict:
    """Read a YAML file of named entries. Raises UserError where it holds anything else."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: it must hold keys with their values, as `key: value`")
    return content


def nearest(key: str, known: Any) -> str:
    """Say which known key was probably meant, or list them, those of a long list in part."""
    known = sorted(map(str, known))
    if close := difflib.get_close_matches(key, known, n=1):
        return f"did you mean '{close[0]}'?"
    more = f" and {len(known) - MOST_KNOWN} more" if len(known) > MOST_KNOWN else ""
    return f"known: {', '.join(known[:MOST_KNOWN])}{more}"


def checked(model: type[Model], content: Any, file: str | Path, where: str = "") -> Model:
    """Validate `content`; an error becomes one line that names file, key and what is allowed."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        found = error.errors(include_url=False)
        # A needed key that is misspelt is missing, too: its wrong name says more.
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
        place = _place(first, content)
        # Where a value may be of several kinds, that which fits furthest says what is wrong, or all that fit as far.
        below = [one for one in found if _place(one, content)[: len(place)] == place]
        place = max((_place(one, content) for one in below), key=len)
        first, *others = (one for one in below if _place(one, content) == place)
        keys = [str(key) for key in ([where] if where else []) + place]
        path = ".".join(keys)
        said = "; or ".join(dict.fromkeys(map(_said, (first, *others))))
        if first["type"] == "extra_forbidden":
            message = f"unknown key '{path}'; {nearest(keys[-1], _fields_at(model, first['loc'][:-1]))}"
        elif first["type"] == "missing":
            message = f"key '{path}' is missing"
        else:
            what = f"key '{path}'" if path else "it"
            if first["type"] == "list_type" and isinstance(first["input"], str | int | float):
                said += f", as [{first['input']}]"
            message = f"{what} is {first['input']!r}; {said}"
            if first["type"] == "value_error" and isinstance(first["input"], dict):  # what is said names its keys
                message = f"key '{path}': {said}" if path else said
        raise UserError(f"{file}: {message}") from error


def _place(error: dict[str, Any], content: Any) -> list[str | int]:
    """The keys that lead to what is wrong, without the kinds that pydantic puts among them where there are several."""
    place = []
    for key in error["loc"]:
        inside = key in content if isinstance(content, dict) else isinstance(content, list) and isinstance(key, int)
        if inside or (error["type"] == "missing" and key == error["loc"][-1]):
            place.append(key)
        content = content[key] if inside else content
    return place


def _said(error: dict[str, Any]) -> str:
    said = error["msg"].removeprefix("Value error, ")
    return f"{said[0].lower()}{said[1:]}"


def _fields_at(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Names of the fields of the model that stands at `location` inside `model`."""
    schema = model.model_json_schema()

    def resolved(node: dict) -> dict:
        for option in (node, *node.get("anyOf", [])):
            if "$ref" in option:
                return schema["$defs"][option["$ref"].rsplit("/", 1)[1]]
        return node

    node = schema
    for key in location:
        inner = node["items"] if isinstance(key, int) else node.get("properties", {}).get(key)
        # A dict's values stand under additionalProperties, or, where its keys have a form, under patternProperties.
        values = [node.get("additionalProperties"), *node.get("patternProperties", {}).values()]
        node = resolved(inner or next(filter(None, values)))
    return list(node.get("properties", {}))
