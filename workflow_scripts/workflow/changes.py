"""Describe how the fingerprint of a result differs from the fingerprint that its job has now."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.common.files import digest, format_canonical_json, read_json
from workflow_scripts.provenance.code import find_closure
from workflow_scripts.provenance.spec_fingerprints import (
    FINGERPRINT_PATTERN,
    Fingerprint,
    load_modules,
)
from workflow_scripts.workflow.default_values import (
    Default,
    find_default,
    find_settings_section,
    list_declaring_modules,
)

LONGEST_VALUE = 72  # a sha256 is shown whole
MOST_CHANGES = 4  # of one kind in one sentence
UNSET = object()  # in the place of the value of a key that only the other side has


class Difference(NamedTuple):
    """A value that differs. `key` looks like `training.learning_rate` or `rows.3.variant`."""

    key: str
    old: Any
    new: Any


def describe_changes(
    record: str | Path, now: Fingerprint, origin: Callable[[str], str] = lambda key: ""
) -> list[str]:
    """Return one sentence per difference between the fingerprint in a result's record and `now`.

    Raises UserError if the record cannot be read.
    """
    content = read_json(record)
    if not now.modules:  # a download, whose manifest has other keys too
        spec = {}
        for key, value in now.spec.items():
            # A key that is not set now is not compared.
            spec[key] = content.get(key) if value else value
        return list(compare_fingerprints(str(Fingerprint(spec, ())), spec, now, origin))
    has_fingerprint = FINGERPRINT_PATTERN.match(str(content.get("fingerprint")))
    if not has_fingerprint or "spec" not in content:
        return [f"{record} has no fingerprint and spec"]
    return list(compare_fingerprints(content["fingerprint"], content["spec"], now, origin))


def compare_fingerprints(
    before: str, spec: Any, now: Fingerprint, origin: Callable[[str], str] = lambda key: ""
) -> Iterator[str]:
    """Describe keys and code that differ between `before`, a fingerprint's short form, and `now`.

    `spec` is the content of the earlier fingerprint. `origin(key)` is appended to the sentence
    about a key.
    """
    digests = FINGERPRINT_PATTERN.match(before)
    assert digests, before
    modules = find_closure(now.modules)
    old_modules: dict[str, str] | None = modules
    if digests["code"] != now.code:
        old_modules = load_modules(digests["code"])
    if digests["spec"] != digest(now.spec):
        sentences = []
        for difference in find_differences(spec, now.spec):
            key, old, new = fill_default(difference, spec, now, old_modules or {})
            values = f"was {shorten_value(old)} and is {shorten_value(new)}"
            sentences.append(f"{key} {values}{origin(key)}")
        yield join_first(sentences, "; ") or "its spec has changed"
    if digests["code"] != now.code:
        if old_modules:
            yield join_first(compare_code(old_modules, modules), "; ")
        else:
            yield "its code has changed"


def fill_default(
    difference: Difference, spec: Any, now: Fingerprint, old_modules: dict[str, str]
) -> Difference:
    """Return a difference with the default in the place of a value that one side leaves out.

    `spec` is the earlier spec, `old_modules` are the digests of its code, empty if they are not
    known. Where the default may have been another one then, the value stays unset.
    """
    key, old, new = difference
    section = find_settings_section(now.settings, key)
    if UNSET not in (old, new) or section is None:
        return difference
    settings = now.settings[section]
    modules = find_closure(now.modules)
    for module in list_declaring_modules(settings):
        if old_modules.get(module) != modules.get(module):
            return difference
    if _name_class(spec, section) != _name_class(now.spec, section):
        return difference
    default = find_default(settings, key.removeprefix(f"{section}."))
    if default is None or default.value in (old, new):
        return difference
    if old is UNSET:
        return Difference(key, default, new)
    return Difference(key, old, default)


def _name_class(spec: Any, section: str) -> tuple[Any, Any]:
    """Return the names in a spec on which the class of a section depends.

    They are the kind of task, and the name of the model or the objective.
    """
    content = spec
    for key in section.split("."):
        if key and isinstance(content, dict):
            content = content.get(key)
    name = content.get("name") if isinstance(content, dict) else None
    return spec.get("kind"), name


def find_differences(old: Any, new: Any, key: str = "") -> Iterator[Difference]:
    """Yield each value that differs. `key` is that of `old` and `new`."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        old = _name_by_position(old)
        new = _name_by_position(new)
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            key_of_value = f"{key}.{name}".lstrip(".")
            if name in old and name in new:
                yield from find_differences(old[name], new[name], key_of_value)
            else:
                yield Difference(key_of_value, old.get(name, UNSET), new.get(name, UNSET))
    elif old != new:
        yield Difference(key, old, new)


def _name_by_position(values: list[Any]) -> dict[str, Any]:
    """Return the values of a list by their position, as text."""
    return {str(position): value for position, value in enumerate(values)}


def compare_code(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return a sentence for each changed module, such as `workflow_scripts/results.py changed`.

    `old` and `new` are digests by module.
    """
    sentences = []
    for module in sorted(old.keys() | new.keys()):
        file = f"{module.replace('.', '/')}.py"
        if module not in old:
            sentences.append(f"{file} is now imported")
        elif module not in new:
            sentences.append(f"{file} is no longer imported")
        elif old[module] != new[module]:
            sentences.append(f"{file} changed")
    return sentences


def join_first(texts: list[str], separator: str) -> str:
    """Join the first texts and say how many more there are."""
    joined = separator.join(texts[:MOST_CHANGES])
    more = len(texts) - MOST_CHANGES
    if more > 0:
        return f"{joined}{separator}and {more} more"
    return joined


def shorten_value(value: Any) -> str:
    """Format a value as JSON, cut if it is long."""
    if value is UNSET:
        return "unset"
    if isinstance(value, Default):
        return f"{shorten_value(value.value)} (the default)"
    text = format_canonical_json(value)
    if len(text) > LONGEST_VALUE:
        return f"{text[:LONGEST_VALUE]}…"
    return text
