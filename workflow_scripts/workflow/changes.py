"""Describe how the fingerprint of a result differs from the fingerprint that its job has now."""

from collections.abc import Callable, Collection, Iterator
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
# Sections of the spec of claims that have a part for each paper.
PAPER_SECTIONS = ("claims", "displays", "published", "plans", "titles")
STARTS_FROM_OTHER = "starts from weights that were trained with other settings"
UNSET = object()  # in the place of the value of a key that only the other side has
DEFAULT_OF_THEN = object()  # of a key that was unset, or had a default that is not known any more


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
        sentences = describe_spec_changes(spec, now, old_modules or {}, origin)
        if sentences:
            yield from sentences
        elif digests["code"] == now.code:
            yield "its spec has changed"
    if digests["code"] != now.code:
        if old_modules:
            yield join_first(compare_code(old_modules, modules), "; ")
        else:
            yield "its code has changed"


def describe_spec_changes(
    spec: Any, now: Fingerprint, old_modules: dict[str, str], origin: Callable[[str], str]
) -> list[str]:
    """Return the sentences about keys that differ between `spec`, the earlier one, and `now`.

    `old_modules` are the digests of the earlier code, empty if they are not known.
    """
    sentences, old, new = compare_chosen_papers(spec, now.spec)
    new_keys: dict[str, list[str]] = {}  # the place of mappings -> their keys
    lost_keys: dict[str, list[str]] = {}
    of_start: list[str] = []
    differences = list(find_differences(old, new))
    changed_keys = {difference.key for difference in differences}
    for difference in differences:
        filled = fill_default(difference, spec, now, old_modules)
        key = filled.key
        if filled.old == filled.new:  # its default was another one
            continue
        if key.endswith("init.spec"):  # the digest of another run's spec
            if f"{key.removesuffix('spec')}run" not in changed_keys:
                of_start = [STARTS_FROM_OTHER]
        elif filled.old is UNSET and is_nested(filled.new):
            new_keys.setdefault(origin(key), []).append(key)
        elif filled.new is UNSET and is_nested(filled.old):
            lost_keys.setdefault(origin(key), []).append(key)
        else:
            sentences.append(f"{describe_values(filled)}{origin(key)}")
    for word, keys_by_place in (("new", new_keys), ("gone", lost_keys)):
        for place, keys in keys_by_place.items():
            sentences.append(f"{join_first(keys, ', ')} {_choose_verb(keys)} {word}{place}")
    joined = [join_first(sentences, "; ")] if sentences else []
    return joined + of_start


def _choose_verb(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def compare_chosen_papers(old: Any, new: Any) -> tuple[list[str], Any, Any]:
    """Return sentences about papers that only one spec of claims has, and the specs without them.

    Other specs stay as they are. Which runs count follows from the papers.
    """
    specs = (old, new)
    if not all(isinstance(spec, dict) and isinstance(spec.get("claims"), dict) for spec in specs):
        return [], old, new
    gone = [paper for paper in old["claims"] if paper not in new["claims"]]
    added = [paper for paper in new["claims"] if paper not in old["claims"]]
    sentences = []
    if gone:
        sentences.append(f"{_name_papers(gone)} {_choose_verb(gone)} no longer chosen")
    if added:
        sentences.append(f"{_name_papers(added)} {_choose_verb(added)} chosen now")
    if not sentences:
        return [], old, new
    shared = old["claims"].keys() & new["claims"].keys()
    return sentences, _keep_papers(old, shared), _keep_papers(new, shared)


def _name_papers(papers: list[str]) -> str:
    noun = "paper" if len(papers) == 1 else "papers"
    return f"{noun} {join_first(papers, ', ')}"


def _keep_papers(spec: dict[str, Any], papers: Collection[str]) -> dict[str, Any]:
    """Return a spec of claims with these papers alone, and without the runs."""
    kept: dict[str, Any] = {}
    for section, content in spec.items():
        if section in PAPER_SECTIONS:
            kept[section] = {paper: part for paper, part in content.items() if paper in papers}
        elif section != "runs":
            kept[section] = content
    return kept


def fill_default(
    difference: Difference, spec: Any, now: Fingerprint, old_modules: dict[str, str]
) -> Difference:
    """Return a difference with the default in the place of a value that one side leaves out.

    `spec` is the earlier spec, `old_modules` are the digests of its code, empty if they are not
    known. A value that was left out earlier, where the default may have been another one, becomes
    DEFAULT_OF_THEN.
    """
    key, old, new = difference
    section = find_settings_section(now.settings, key)
    if UNSET not in (old, new) or section is None:
        return difference
    settings = now.settings[section]
    default = find_default(settings, key.removeprefix(f"{section}."))
    if default is None:
        return difference
    if default.value is None and (is_nested(old) or is_nested(new)):
        return difference
    if new is UNSET:
        # The settings of now, so the default is that of now.
        return Difference(key, old, old if old == default.value else default)
    if _name_class(spec, section) != _name_class(now.spec, section):
        return difference
    modules = find_closure(now.modules)
    for module in list_declaring_modules(settings):
        if old_modules.get(module) != modules.get(module):
            return Difference(key, DEFAULT_OF_THEN, new)
    if default.value == new:
        return difference
    return Difference(key, default, new)


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
    """Yield each value that differs. `key` is that of `old` and `new`.

    The keys of a mapping in the place of null are named one by one.
    """
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        if any(map(is_nested, [*old, *new])):
            old = _name_by_position(old)
            new = _name_by_position(new)
    elif key and old is None and isinstance(new, dict) and new:
        old = {}
    elif key and new is None and isinstance(old, dict) and old:
        new = {}
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            key_of_value = f"{key}.{name}".lstrip(".")
            if name in old and name in new:
                yield from find_differences(old[name], new[name], key_of_value)
            else:
                yield Difference(key_of_value, old.get(name, UNSET), new.get(name, UNSET))
    elif old != new:
        yield Difference(key, old, new)


def is_nested(value: Any) -> bool:
    """Whether a value is a mapping, or a list with some."""
    if isinstance(value, Default):
        return is_nested(value.value)
    return isinstance(value, dict) or (isinstance(value, list) and any(map(is_nested, value)))


def _name_by_position(values: list[Any]) -> dict[str, Any]:
    """Return the values of a list by their position, as text."""
    return {str(position): value for position, value in enumerate(values)}


def describe_values(difference: Difference) -> str:
    """Say what a value was and is; of mappings and long lists, how they differ."""
    key, old, new = difference
    are_lists = isinstance(old, list) and isinstance(new, list)
    if is_nested(old) or is_nested(new):
        if are_lists:
            return f"{key} had {len(old)} entries and has {len(new)}"
        if old is DEFAULT_OF_THEN:
            return f"{key} was {shorten_value(old)}"
        return f"{key} has changed"
    if are_lists and any(len(format_canonical_json(value)) > LONGEST_VALUE for value in (old, new)):
        return _describe_lists(key, old, new)
    return f"{key} was {shorten_value(old)} and is {shorten_value(new)}"


def _describe_lists(key: str, old: list[Any], new: list[Any]) -> str:
    """Say what two lists of single values do not share."""
    added = [str(value) for value in new if value not in old]
    removed = [str(value) for value in old if value not in new]
    parts = []
    if added:
        parts.append(f"has also {join_first(added, ', ')}")
    if removed:
        parts.append(f"is without {join_first(removed, ', ')}")
    return f"{key} {' and '.join(parts) or 'has changed'}"


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


def compare_shown_runs(before: Collection[str], now: Collection[str]) -> list[str]:
    """Return a sentence about the runs that are shown too, and one about those that are no more."""
    sentences = []
    added = [run for run in now if run not in before]
    if added:
        sentences.append(f"shows {join_first(added, ', ')} too")
    removed = [run for run in before if run not in now]
    if removed:
        sentences.append(f"shows {join_first(removed, ', ')} no more")
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
    if value is DEFAULT_OF_THEN:
        return "unset or the default of that time"
    if isinstance(value, Default):
        return f"{shorten_value(value.value)} (the default)"
    text = format_canonical_json(value)
    if len(text) > LONGEST_VALUE:
        return f"{text[:LONGEST_VALUE]}…"
    return text
