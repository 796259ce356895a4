"""Describe how the fingerprint of a result differs from the fingerprint that its job has now."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import digest, format_canonical_json, read_json
from workflow_scripts.provenance.code import find_closure
from workflow_scripts.provenance.spec_fingerprints import (
    FINGERPRINT_PATTERN,
    Fingerprint,
    load_modules,
)

LONGEST_VALUE = 72  # a sha256 is shown whole
MOST_CHANGES = 4  # of one kind in one sentence
UNSET = object()  # in the place of the value of a key that only the other side has


def describe_changes(
    record: str | Path, now: Fingerprint, origin: Callable[[str], str] = lambda key: ""
) -> list[str]:
    """Return one sentence per difference between the fingerprint in a result's record and `now`.

    Raises UserError if the record cannot be read.
    """
    content = read_json(record)
    if not now.modules:  # a download, whose manifest has other keys too
        spec = {key: value and content.get(key) for key, value in now.spec.items()}
        return list(compare_fingerprints(str(Fingerprint(spec, ())), spec, now, origin))
    if not FINGERPRINT_PATTERN.match(str(content.get("fingerprint"))) or "spec" not in content:
        return [f"{record} has no fingerprint and spec"]
    return list(compare_fingerprints(content["fingerprint"], content["spec"], now, origin))


def compare_fingerprints(
    before: str, spec: Any, now: Fingerprint, origin: Callable[[str], str] = lambda key: ""
) -> Iterator[str]:
    """Describe keys and code that differ between the fingerprint `before`, in its short form, and `now`.

    `spec` is the content of the earlier fingerprint. `origin(key)` is appended to the sentence about a key.
    """
    digests = FINGERPRINT_PATTERN.match(before)
    assert digests, before
    if digests["spec"] != digest(now.spec):
        found = find_differences(spec, now.spec)
        values = [(key, shorten_value(old), shorten_value(new)) for key, old, new in found]
        sentences = [f"{key} was {old} and is {new}{origin(key)}" for key, old, new in values]
        yield join_first(sentences, "; ") or "its spec has changed"
    if digests["code"] != now.code:
        old = load_modules(digests["code"])
        yield (
            join_first(compare_code(old, find_closure(now.modules)), "; ")
            if old
            else "its code has changed"
        )


def find_differences(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (key, old, new) of each value that differs. Keys look like `training.learning_rate` or `rows.3.variant`."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        old, new = ({str(i): value for i, value in enumerate(side)} for side in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            inner = f"{key}.{name}".lstrip(".")
            if name in old and name in new:
                yield from find_differences(old[name], new[name], inner)
            else:
                yield inner, old.get(name, UNSET), new.get(name, UNSET)
    elif old != new:
        yield key, old, new


def compare_code(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return a sentence such as `workflow_scripts/training/loop.py changed` for each changed module, by digests."""
    found = []
    for module in sorted(old.keys() | new.keys()):
        file = f"{module.replace('.', '/')}.py"
        if module not in old or module not in new:
            found.append(f"{file} is {'now imported' if module in new else 'no longer imported'}")
        elif old[module] != new[module]:
            found.append(f"{file} changed")
    return found


def join_first(texts: list[str], separator: str) -> str:
    """Join the first texts and say how many more there are."""
    more = len(texts) - MOST_CHANGES
    return separator.join(texts[:MOST_CHANGES]) + (
        f"{separator}and {more} more" if more > 0 else ""
    )


def shorten_value(value: Any) -> str:
    """Format a value as JSON, cut if it is long."""
    if value is UNSET:
        return "unset"
    text = format_canonical_json(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
