"""Validate content with pydantic, and shared types.

Each problem is one line with file, line and key.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    Strict,
    ValidationError,
)

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import find_line

Model = TypeVar("Model", bound=BaseModel)


def require_unique(entries: list) -> list:
    """Return the list. Raises ValueError if an entry is repeated."""
    for number, entry in enumerate(entries):
        if entry in entries[:number]:
            raise ValueError(f"{entry} is listed twice; remove one")
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
WORD = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
Word = Annotated[str, Field(pattern=f"^{WORD}$")]
SplitName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
Pattern = Annotated[str, AfterValidator(require_pattern)]
AtLeastOne = Annotated[int, Field(ge=1, le=1_000_000)]  # a larger size exhausts any memory
FromList = Strict(False)  # marks a tuple: files write it as a list
NonNegative = Annotated[float, Field(ge=0)]
Dropout = Annotated[float, Field(ge=0, le=0.99)]
MAX_LISTED = 40  # names listed in one message


class StrictModel(BaseModel):
    """Base class of settings.

    Unknown keys and values of another type are errors, defaults included, and instances are
    read-only.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, validate_default=True
    )


def suggest_name(key: str, known_keys: Any) -> str:
    """Suggest the known key that was probably meant, or list at most MAX_LISTED known keys."""
    names = sorted(map(str, known_keys))
    if not names:
        return "none are known here"
    close = find_close_name(key, names)
    if close:
        return f"did you mean '{close}'?"
    listed = ", ".join(names[:MAX_LISTED])
    if len(names) > MAX_LISTED:
        return f"known: {listed} and {len(names) - MAX_LISTED} more"
    return f"known: {listed}"


def find_close_name(key: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant; None if none is like the key."""
    close = difflib.get_close_matches(key, list(names), n=1)
    return close[0] if close else None


def parse_as(
    model: type[Model],
    content: Any,
    file: str | Path,
    keys: str | tuple = (),
    at: tuple | None = None,
) -> Model:
    """Validate `content`, which a file has under `keys`, as `model`.

    Raises UserError with one line per problem: file, key, what is wrong and what is allowed; of a
    YAML file also the line: that of the key, or of the entry `at` if `content` is not what the file
    has there.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        outer = tuple(keys)
        if isinstance(keys, str) and keys:
            outer = (keys,)
        lines = []
        for inner, message in _list_problems(model, error, content, outer):
            place = (*outer, *inner) if at is None else at
            problem = f"{locate(file, place)}: {message}"
            lines.append(problem.replace("\n", "\\n"))
        raise UserError("\n".join(lines)) from error


def parse_right_parts(model: type[Model], content: Any) -> Model | None:
    """Validate what is right of `content`; None if too little of it is.

    Keys that are unknown or have a wrong value are left out, and missing ones are an empty text.
    """
    content = deepcopy(content)
    for _ in range(3):  # a key that is left out may be a required one
        try:
            return model.model_validate(content)
        except ValidationError as error:
            _drop_wrong_parts(error, content)
    return None


def _drop_wrong_parts(error: ValidationError, content: Any) -> None:
    """Remove the keys inside `content` that are wrong, and fill in those that are missing."""
    is_missing: dict[tuple[str | int, ...], bool] = {}  # by place
    for reported in error.errors(include_url=False):
        place = tuple(_find_place(reported, content))
        # A list goes as a whole: without an entry the later ones would have another number.
        if place and isinstance(place[-1], int):
            place = place[:-1]
        is_missing[place] = reported["type"] == "missing"
    for place in is_missing:
        # Of a place and one inside it, the one inside is wrong.
        if not place or any(_is_inside(inner, place) for inner in is_missing):
            continue
        *outer_keys, last_key = place
        part = content
        for key in outer_keys:
            part = part[key]
        if is_missing[place]:
            part[last_key] = ""
        else:
            del part[last_key]


def list_wrong_values(model: type[BaseModel], key: str, value: Any, outer: str) -> list[str]:
    """Say what is wrong with the value of a key, whatever the other keys of `model` are.

    outer: the key that has the content of `model`.
    """
    content = {key: value}
    try:
        model.model_validate(content)
    except ValidationError as error:
        reported = error.errors(include_url=False, include_context=False, include_input=False)
        # Most often only the other keys are reported, as missing: describing these takes long.
        if not any(single["loc"][:1] == (key,) for single in reported):
            return []
        problems = _list_problems(model, error, content, (outer,))
        return [message.replace("\n", "\\n") for place, message in problems if key in place[:1]]
    return []


def locate(file: str | Path, keys: tuple) -> str:
    """Return the file; of a YAML file `file:line` of a key.

    If the file lacks the key, the line is that of the nearest outer key that it has.
    """
    if isinstance(file, Path) and file.suffix == ".yaml":
        return f"{file}:{find_line(file, keys)}"
    return str(file)


def describe_unknown(file: str | Path, keys: tuple, name: str, known_names: Any) -> str:
    """Say that the value of a key is none of the known names, and which one was probably meant."""
    key = ".".join(map(str, keys))
    return f"{locate(file, keys)}: key '{key}' names '{name}'; {suggest_name(name, known_names)}"


class _Problem(NamedTuple):
    """A problem that pydantic reports, and the keys that lead to it."""

    place: tuple[str | int, ...]
    kind: str  # pydantic's type of the error
    message: str
    value: Any


def _list_problems(
    model: type[BaseModel], error: ValidationError, content: Any, outer: tuple
) -> Iterator[tuple[tuple, str]]:
    """Yield the keys inside `content` and the message of each problem."""
    problems = []
    for reported in error.errors(include_url=False):
        place = tuple(_find_place(reported, content))
        problems.append(_Problem(place, reported["type"], reported["msg"], reported["input"]))
    places = list(dict.fromkeys(problem.place for problem in problems))
    unknown = [problem.place for problem in problems if problem.kind == "extra_forbidden"]
    for place in places:
        # Of a union type, only the members matter whose error is deepest inside the value.
        if any(_is_inside(other, place) for other in places):
            continue
        at_place = [problem for problem in problems if problem.place == place]
        first = at_place[0]
        path = ".".join(map(str, (*outer, *place)))
        if first.kind == "extra_forbidden":
            fields = _list_fields_at(model, place[:-1])
            yield place, f"unknown key '{path}'; {suggest_name(str(place[-1]), fields)}"
        elif first.kind == "missing":
            # A misspelt required key is both missing and unknown, and the unknown name says more.
            siblings = [str(other[-1]) for other in unknown if other[:-1] == place[:-1]]
            if not difflib.get_close_matches(str(place[-1]), siblings, n=1):
                yield place, f"key '{path}' is missing"
        elif first.kind == "value_error" and isinstance(first.value, dict):
            # The error names the dict's keys.
            reasons = _join_messages(at_place)
            yield place, f"key '{path}': {reasons}" if path else reasons
        else:
            yield place, _describe_value(first.value, path, _join_messages(at_place), first.kind)


def _is_inside(place: tuple, outer: tuple) -> bool:
    """Return whether a place is inside of another one."""
    return place != outer and place[: len(outer)] == outer


def _join_messages(problems: Sequence[_Problem]) -> str:
    """Join the distinct messages of problems by `; or `, each with a small first letter."""
    messages = []
    for problem in problems:
        text = problem.message.removeprefix("Value error, ")
        messages.append(f"{text[0].lower()}{text[1:]}")
    return "; or ".join(dict.fromkeys(messages))


def _describe_value(value: Any, path: str, reasons: str, kind: str) -> str:
    """Say what the value of a key is, and why that is wrong."""
    subject = f"key '{path}'" if path else "it"
    if kind == "list_type" and isinstance(value, str | int | float):
        reasons += f", as [{value}]"
    text = repr(value)
    if len(text) > 100:
        text = f"{text[:100]}..."
    return f"{subject} is {text}; {reasons}"


def _find_place(error: Any, content: Any) -> list[str | int]:
    """Return the keys that lead to the error.

    They lack the names of union members, which pydantic adds to its path. A key whose default is
    wrong is among them, although `content` lacks it.
    """
    place = []
    value = content  # at the place so far
    for key in error["loc"]:
        values_by_key: dict[Any, Any] = {}
        if isinstance(value, list):
            values_by_key = dict(enumerate(value))
        elif isinstance(value, dict):
            values_by_key = value
        is_last = key == error["loc"][-1]
        is_missing = is_last and error["type"] == "missing"
        is_field = isinstance(value, dict) and str(key).isidentifier()
        is_default = is_last and is_field and error["input"] != value
        if key in values_by_key or is_missing or is_default:
            place.append(key)
        value = values_by_key.get(key, value)
    return place


def _list_fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the field names of the model at `location`, keys and list positions inside `model`.

    Of a union of models they are those of all members.
    """
    models = list_models_in(model)
    for key in location:
        models_at_key: list[type[BaseModel]] = []
        for outer_model in models:
            field_type = _map_field_types(outer_model).get(str(key))
            models_at_key += list_models_in(field_type)
        # A key that is no field is a position in a list or a key of a dict: the type of that list
        # or dict has named its models already.
        if models_at_key:
            models = models_at_key
    names: list[str] = []
    for model_at_location in models:
        names += _map_field_types(model_at_location)
    return names


def _map_field_types(model: type[BaseModel]) -> dict[str, Any]:
    """Return the types of a model's fields by their names in files."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def list_models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type names: itself, or members of a union, a list or a dict."""
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        return list_models_in(annotation.model_fields["root"].annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    models = []
    for part in get_args(annotation):
        models += list_models_in(part)
    return models
