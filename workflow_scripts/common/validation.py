"""Validate content with pydantic: each error is one line with file and key. Shared types."""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from workflow_scripts.common.errors import UserError

Model = TypeVar("Model", bound=BaseModel)


def require_unique(entries: list) -> list:
    """Return the list. Raises ValueError if an entry is repeated."""
    if twice := [entry for number, entry in enumerate(entries) if entry in entries[:number]]:
        raise ValueError(f"{twice[0]} is listed twice; remove one")
    return entries


def require_pattern(pattern: str) -> str:
    """Return the pattern. Raises ValueError if it is not a regular expression."""
    try:
        re.compile(f"(?:{pattern})")  # it must also be valid as a part of a larger pattern
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return pattern


Seed = Annotated[int, Field(ge=0, lt=2**31)]
# A repeated seed would count as two independent runs.
Seeds = Annotated[list[Seed], AfterValidator(require_unique)]
SplitName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
Pattern = Annotated[str, AfterValidator(require_pattern)]
AtLeastOne = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
Dropout = Annotated[float, Field(ge=0, le=0.99)]
MAX_LISTED = 40  # names listed in one message


class StrictModel(BaseModel):
    """Base class of settings: unknown keys and values of another type are errors, and instances are read-only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def suggest_name(key: str, known: Any) -> str:
    """Suggest the known key that was probably meant, or list the known keys, at most MAX_LISTED of them."""
    known = sorted(map(str, known))
    if close := difflib.get_close_matches(key, known, n=1):
        return f"did you mean '{close[0]}'?"
    more = f" and {len(known) - MAX_LISTED} more" if len(known) > MAX_LISTED else ""
    return f"known: {', '.join(known[:MAX_LISTED])}{more}"


def parse_as(model: type[Model], content: Any, file: str | Path, where: str = "") -> Model:
    """Validate `content` as `model`. Raises UserError with one line that names file, key and allowed values."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        found: list[dict[str, Any]] = [dict(one) for one in error.errors(include_url=False)]
        # A misspelt required key causes two errors, missing and unknown key. The unknown name is more useful.
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
        place = _place(first, content)
        # For a union type, report the member whose error is deepest inside the value; all members if several are equal.
        below = [one for one in found if _place(one, content)[: len(place)] == place]
        place = max((_place(one, content) for one in below), key=len)
        first, *others = (one for one in below if _place(one, content) == place)
        keys = [str(key) for key in ([where] if where else []) + place]
        path = ".".join(keys)
        texts = [one["msg"].removeprefix("Value error, ") for one in (first, *others)]
        said = "; or ".join(dict.fromkeys(f"{text[0].lower()}{text[1:]}" for text in texts))
        if first["type"] == "extra_forbidden":
            message = f"unknown key '{path}'; {suggest_name(keys[-1], _fields_at(model, place[:-1]))}"
        elif first["type"] == "missing":
            message = f"key '{path}' is missing"
        else:
            what = f"key '{path}'" if path else "it"
            if first["type"] == "list_type" and isinstance(first["input"], str | int | float):
                said += f", as [{first['input']}]"
            message = f"{what} is {first['input']!r}; {said}"
            if first["type"] == "value_error" and isinstance(first["input"], dict):  # the error names the dict's keys
                message = f"key '{path}': {said}" if path else said
        raise UserError(f"{file}: {message}".replace("\n", "\\n")) from error


def _place(error: dict[str, Any], content: Any) -> list[str | int]:
    """Return the keys that lead to the error, without the names of union members that pydantic adds to its path."""
    place = []
    for key in error["loc"]:
        inner: dict[Any, Any] = dict(enumerate(content)) if isinstance(content, list) else {}
        inner = content if isinstance(content, dict) else inner
        if key in inner or (error["type"] == "missing" and key == error["loc"][-1]):
            place.append(key)
        content = inner.get(key, content)
    return place


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the field names of the model at `location` inside `model`."""
    schema = model.model_json_schema()

    def options(node: dict) -> list[dict]:
        """List the node, or the members of a union."""
        nodes = [node, *node.get("anyOf", [])]
        return [schema["$defs"][one["$ref"].rsplit("/", 1)[1]] if "$ref" in one else one for one in nodes]

    def inside(node: dict, key: str | int) -> dict | None:
        if isinstance(key, int):
            return node.get("items")
        # JSON schema describes a dict's values in additionalProperties, or in patternProperties if keys have a pattern.
        values = [node.get("additionalProperties"), *node.get("patternProperties", {}).values()]
        return next(filter(None, [node.get("properties", {}).get(key), *values]), None)

    node = schema
    for key in location:
        node = next(filter(None, (inside(option, key) for option in options(node))))
    return next((list(option["properties"]) for option in options(node) if "properties" in option), [])
