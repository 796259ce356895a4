"""What differs between the facts that a result was made from and those of now, in words."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.common.hashing import canonical_json, digest
from workflow_scripts.provenance.code import definitions
from workflow_scripts.provenance.fingerprints import SHORT, Facts, load_definitions

LONGEST_VALUE = 72  # a sha256 is shown whole
MOST_CHANGES = 4  # of one kind in one sentence


def result_changes(record: str | Path, now: Facts, origin: Callable[[str], str] = lambda key: "") -> list[str]:
    """What differs between the facts in the record of a result and those of now; empty if nothing does.

    Raises UserError if the record cannot be read.
    """
    content = read_json(record)
    if not now.modules:  # a download: its manifest is not changed by what does not change the file
        given = {key: value and content.get(key) for key, value in now.given.items()}
        return list(fact_changes(str(Facts(given, ())), given, now, origin))
    if not SHORT.match(str(content.get("facts"))) or "spec" not in content:
        return [f"{record} does not say what it was made from"]
    return list(fact_changes(content["facts"], content["spec"], now, origin))


def fact_changes(before: str, given: Any, now: Facts, origin: Callable[[str], str] = lambda key: "") -> Iterator[str]:
    """Keys and code that differ between the facts `before`, in their short form, and those of now.

    `given` is what the job was given before; `origin(key)` is put behind a key's values.
    """
    digests = SHORT.match(before)
    if digests["given"] != digest(now.given):
        found = differences(given, now.given)
        sentences = [f"{key} was {short(old)} and is {short(new)}{origin(key)}" for key, old, new in found]
        yield few(sentences, "; ") or "what it is given has changed"
    if digests["code"] != now.code:
        old = load_definitions(digests["code"])
        yield few(code_changes(old, definitions(now.modules)), "; ") if old else "its code has changed"


def differences(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(key, old, new) of each value that differs; keys as `training.learning_rate` or `rows.3.variant`."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        old, new = ({str(i): value for i, value in enumerate(side)} for side in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            inner = f"{key}.{name}".lstrip(".")
            if name in old and name in new:
                yield from differences(old[name], new[name], inner)
            else:
                yield inner, old.get(name), new.get(name)
    elif old != new:
        yield key, old, new


def code_changes(old: dict[str, dict[str, str]], new: dict[str, dict[str, str]]) -> list[str]:
    """`workflow_scripts/training/loop.py changed: train, update` for each module whose definitions differ."""
    found = []
    for module in sorted(old.keys() | new.keys()):
        before, after = old.get(module), new.get(module)
        file = f"{module.replace('.', '/')}.py"
        if before is None or after is None:
            found.append(f"{file} is {'reached too' if before is None else 'reached no more'}")
        elif before != after:
            names = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
            found.append(f"{file} changed: {few([name or 'module level' for name in names], ', ')}")
    return found


def few(texts: list[str], separator: str) -> str:
    """The first texts, and how many more there are."""
    more = len(texts) - MOST_CHANGES
    return separator.join(texts[:MOST_CHANGES]) + (f"{separator}and {more} more" if more > 0 else "")


def short(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = canonical_json(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
