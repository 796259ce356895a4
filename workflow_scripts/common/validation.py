"""Validate content with pydantic: each problem is one line with file, line and key. Shared types."""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import find_line

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
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
SplitName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
Pattern = Annotated[str, AfterValidator(require_pattern)]
AtLeastOne = Annotated[int, Field(ge=1, le=1_000_000)]  # a larger size exhausts any memory
NonNegative = Annotated[float, Field(ge=0)]
Dropout = Annotated[float, Field(ge=0, le=0.99)]
MAX_LISTED = 40  # names listed in one message


class StrictModel(BaseModel):
    """Base class of settings: unknown keys and values of another type are errors, and instances are read-only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def suggest_name(key: str, known: Any) -> str:
    """Suggest the known key that was probably meant, or list the known keys, at most MAX_LISTED of them."""
    known = sorted(map(str, known))
    if close := difflib.get_close_matches(key, known, n=1):
        return f"did you mean '{close[0]}'?"
    more = f" and {len(known) - MAX_LISTED} more" if len(known) > MAX_LISTED else ""
    return f"known: {', '.join(known[:MAX_LISTED])}{more}"


def parse_as(
    model: type[Model],
    content: Any,
    file: str | Path,
    where: str | tuple = (),
    at: tuple | None = None,
) -> Model:
    """Validate `content`, the entry `where` of a file, as `model`.

    Raises UserError with one line per problem: file, key, what is wrong and what is allowed; of a YAML file also the
    line: that of the key, or of the entry `at` if `content` is not what the file has there.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        outer = (where,) if isinstance(where, str) and where else tuple(where)
        problems = [
            f"{locate(file, (*outer, *place) if at is None else at)}: {message}"
            for place, message in _list_problems(model, error, content, outer)
        ]
        raise UserError("\n".join(problem.replace("\n", "\\n") for problem in problems)) from error


def locate(file: str | Path, keys: tuple) -> str:
    """Return the file; of a YAML file `file:line` of a key, or of the nearest outer key that it has."""
    return (
        f"{file}:{find_line(file, keys)}"
        if isinstance(file, Path) and file.suffix == ".yaml"
        else str(file)
    )


def describe_unknown(file: str | Path, keys: tuple, name: str, known: Any) -> str:
    """Say that the value of a key is none of the known names, and which one was probably meant."""
    return f"{locate(file, keys)}: key '{'.'.join(map(str, keys))}' names '{name}'; {suggest_name(name, known)}"


def _list_problems(
    model: type[BaseModel], error: ValidationError, content: Any, outer: tuple
) -> Iterator[tuple[tuple, str]]:
    """Yield the keys inside `content` and the message of each problem."""
    found: list[tuple[tuple, dict[str, Any]]] = [
        (tuple(_place(one, content)), dict(one)) for one in error.errors(include_url=False)
    ]
    places = [place for place, _ in found]
    unknown = [place for place, one in found if one["type"] == "extra_forbidden"]
    for place in dict.fromkeys(places):
        # Of a union type, only the members matter whose error is deepest inside the value.
        if any(other != place and other[: len(place)] == place for other in places):
            continue
        first, *others = (one for at, one in found if at == place)
        path = ".".join(map(str, (*outer, *place)))
        texts = [one["msg"].removeprefix("Value error, ") for one in (first, *others)]
        said = "; or ".join(dict.fromkeys(f"{text[0].lower()}{text[1:]}" for text in texts))
        if first["type"] == "extra_forbidden":
            yield (
                place,
                f"unknown key '{path}'; {suggest_name(str(place[-1]), _fields_at(model, place[:-1]))}",
            )
        elif first["type"] == "missing":
            # A misspelt required key is both missing and unknown, and the unknown name says more.
            beside = [str(other[-1]) for other in unknown if other[:-1] == place[:-1]]
            if not difflib.get_close_matches(str(place[-1]), beside, n=1):
                yield place, f"key '{path}' is missing"
        elif first["type"] == "value_error" and isinstance(
            first["input"], dict
        ):  # the error names the dict's keys
            yield place, f"key '{path}': {said}" if path else said
        else:
            what = f"key '{path}'" if path else "it"
            if first["type"] == "list_type" and isinstance(first["input"], str | int | float):
                said += f", as [{first['input']}]"
            given = repr(first["input"])
            yield place, f"{what} is {given if len(given) <= 100 else f'{given[:100]}...'}; {said}"


def _place(error: Any, content: Any) -> list[str | int]:
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
    """Return the field names of the model, or of all members of the union of models, at `location` inside `model`."""
    models = [model]
    for key in location:
        inside = [inner for one in models for inner in _models_in(_fields(one).get(str(key)))]
        models = (
            inside or models
        )  # an item of a list and a value of a dict are of the models that their type names
    return [name for one in models for name in _fields(one)]


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Return the types of a model's fields by their names in files."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type names: itself, or members of a union, a list or a dict."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]
