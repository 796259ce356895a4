"""Write out entries of displays.yaml and claims.yaml over the axes of the file.

An axis has members: label -> values. `each` of an entry lists axes; the entry becomes one entry for
each combination of their members, in the order of the axes, with the values of these members. In
its texts `{axis}` is the label, in a claim also `{key}` a value of a member.

`place` is file, line and key of an entry, for messages.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from string import Formatter
from typing import Any, NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import name_weights
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.display_schema import (
    SIDES,
    AnalysedRuns,
    Claim,
    Display,
    TableCell,
    TableDisplay,
    list_cells,
)
from workflow_scripts.config.schema import list_names

Entry = dict[str, Any]  # of a file
Axes = dict[str, dict[str, Entry]]  # axis -> label -> values
Units = dict[str, tuple[str, int]]  # metric -> unit, decimals
FindCell = Callable[[str, str, str], TableCell | None]  # of display, row and column

# Keys of cells and runs in which labels are filled in.
TEXTS = ("row", "column", "panel", "series", "group")
TEST_SET = {"split": "test", "subset": "all"}
POINTS = ("percent", "BLEU")  # units in which a difference is in points
UNIT_OF_TRENDS = "tau"  # Kendall's, of relation falls_with
UNITS_OF_MEASURES = {
    "log_ratio": "log ratio",
    "log_odds": "log odds",
    "superiority": "chance",
    "success_rate": "share of seeds",
}


class Member(NamedTuple):
    """A member of an axis. `values` are keys of the entries that name it."""

    axis: str
    label: str
    values: Entry


# Axes


def read_axes(content: dict[str, Any]) -> Axes:
    """Return axis -> label -> values of the axes of a file."""
    return {name: read_axis(members) for name, members in content.items()}


def read_axis(members: list[str] | dict[str, Entry]) -> dict[str, Entry]:
    """Return label -> values. A list has labels alone."""
    if isinstance(members, list):
        return {label: {} for label in members}
    return members


def combine(axes: Axes, each: list, place: str) -> Iterator[tuple[Member, ...]]:
    """Yield one member of each axis that `each` lists, in all combinations."""
    members_of_axes = [list_members(axes, item, place) for item in each]
    yield from product(*members_of_axes)


def list_members(axes: Axes, item: Any, place: str) -> list[Member]:
    """Return the members that an item of `each` names.

    It is an axis of the file, `{axis: labels}` for some of its members, or `{name: members}` for an
    axis of its own.
    """
    if isinstance(item, str):
        if item not in axes:
            raise UserError(f"{place}: no axis '{item}'; {suggest_name(item, axes)}")
        return [Member(item, label, values) for label, values in axes[item].items()]
    if not isinstance(item, dict) or len(item) != 1:
        forms = "names of axes, or {axis: labels}"
        raise UserError(f"{place}: `each` has {item!r}; it needs {forms}")
    name, members = next(iter(item.items()))
    if name not in axes or isinstance(members, dict):
        return [Member(name, label, values) for label, values in read_axis(members).items()]
    for label in members:
        if label not in axes[name]:
            suggestion = suggest_name(label, axes[name])
            raise UserError(f"{place}: no member '{label}' of axis {name}; {suggestion}")
    return [Member(name, label, axes[name][label]) for label in members]


def fill_text(text: str, names: dict[str, Any], place: str) -> str:
    """Fill in each `{name}`. An empty label at an end leaves out the comma before it."""
    try:
        for _, name, form, conversion in Formatter().parse(text):
            # Python reads more in braces, such as {by[0]}, {by.count} and {by!r}.
            if name and (form or conversion or set(".[") & set(name)):
                raise ValueError(f"{{{name}}} has more than a name")
        return text.format(**names).strip(" ,")
    except KeyError as error:
        names_in_words = ", ".join(map(str, names))
        problem = f"{error} is no axis or key; known: {names_in_words}"
        raise UserError(f"{place}: '{text}': {problem}") from None
    except (IndexError, ValueError) as error:
        problem = f"is no valid text ({error}); write {{name}}, with both braces"
        raise UserError(f"{place}: '{text}' {problem}") from None


# Displays and analyses


def merge_extended(entries: dict[str, Entry], name: str, place: str) -> Entry:
    """Return a display or analysis over the one that it extends.

    `options` are merged key by key.
    """
    entry = dict(entries[name])
    base = entry.pop("extends", None)
    if base is None:
        return entry
    others = {key: value for key, value in entries.items() if key != name}
    if not isinstance(base, str) or base not in others:
        raise UserError(f"{place}: extends '{base}'; {suggest_name(str(base), others)}")
    copied = merge_extended(others, base, place)
    if isinstance(entry.get("options"), dict) and isinstance(copied.get("options"), dict):
        entry["options"] = copied["options"] | entry["options"]
    return copied | entry


def write_out(
    axes: Axes,
    entries: Entry | list[Entry],
    place: str,
) -> Iterator[tuple[Entry, tuple[Member, ...]]]:
    """Yield each row, column or entry of `runs` without `each`, and the members it was made of."""
    if isinstance(entries, dict):
        entries = [entries]
    for entry in entries:
        if "each" not in entry:
            yield entry, ()
            continue
        for members in combine(axes, entry["each"], place):
            labels = {member.axis: member.label for member in members}
            written = {}
            for key, value in entry.items():
                if key == "each":
                    continue
                written[key] = value
                if key in TEXTS and value is not None:
                    written[key] = fill_text(value, labels, place)
            for member in members:
                written |= member.values
            yield written, members


def expand_cells(
    axes: Axes,
    entries: Entry | list[Entry],
    key: str,
    place: str,
) -> list[Entry]:
    """Return rows or columns without `each`. `key` is "row" or "column".

    One without a name has that of its labels.
    """
    cells = []
    for cell, members in write_out(axes, entries, place):
        if members and key not in cell:
            cell[key] = " ".join(member.label for member in members if member.label)
        cells.append(cell)
    return cells


def expand_runs(axes: Axes, entry: Entry, place: str) -> Entry:
    """Return a figure or an analysis with its runs written out.

    Of a member, runs take what describes runs.
    """
    if "runs" not in entry:
        return entry
    all_runs = []
    for written, members in write_out(axes, entry["runs"], place):
        runs = dict(written)
        if members:
            runs = {key: value for key, value in runs.items() if key in AnalysedRuns.model_fields}
        if "weights" in runs and "variant" in runs:
            runs["variant"] = name_weights(runs["variant"], runs.pop("weights"))
        all_runs.append(runs)
    return entry | {"runs": all_runs}


def expand_display(axes: Axes, units: Units | None, display: Entry, place: str) -> Entry:
    """Return a table or figure with its rows, columns and runs written out.

    `cells` is what all cells of a table share. A run's score without split and subset is that of
    the whole test set.
    """
    if "module" in display:
        return {"kind": "figure"} | expand_runs(axes, display, place)
    rows = expand_cells(axes, display.get("rows", []), "row", place)
    columns = expand_cells(axes, display.get("columns", []), "column", place)
    shared = display.get("cells", {})
    if any("metric" in row for row in rows):
        rows = [shared | row for row in rows]
    else:
        columns = [shared | column for column in columns]
    fixed_by_columns: set[str] = set()
    for column in columns:
        fixed_by_columns |= column.keys()
    rows_with_test_set = add_test_set(rows, columns, fixed_by_columns)
    columns = add_test_set(columns, rows, set())
    table = {key: value for key, value in display.items() if key != "cells"}
    table["rows"] = [add_unit(row, units, place) for row in rows_with_test_set]
    table["columns"] = [add_unit(column, units, place) for column in columns]
    return {"kind": "table"} | table


def add_test_set(entries: list[Entry], others: list[Entry], fixed: set[str]) -> list[Entry]:
    """Add the whole test set to the rows or columns that name a task.

    If the other side names an analysis, nothing is added. fixed: keys (split, subset) that the
    other side sets itself; adding them here would override it.
    """
    if any("analysis" in other for other in others):
        return entries
    test_set = {key: value for key, value in TEST_SET.items() if key not in fixed}
    completed = []
    for entry in entries:
        if "task" in entry and "analysis" not in entry:
            completed.append(test_set | entry)
        else:
            completed.append(entry)
    return completed


def add_unit(cell: Entry, units: Units | None, place: str) -> Entry:
    """Add unit and decimals to a row or column that names a metric.

    The unit is empty if none is known.
    """
    metric = cell.get("metric")
    if metric is None:
        return cell
    if units is None:
        return {"unit": ""} | cell
    if metric not in units and "unit" not in cell:
        missing = f"no metric '{metric}' in catalogue/metrics.yaml"
        raise UserError(f"{place}: {missing}; {suggest_name(metric, units)}")
    unit, decimals = units.get(metric, (None, 2))
    if "over" in cell and not cell.get("relative") and unit == "percent":
        unit = "points"
    return {"unit": unit, "decimals": decimals} | cell


# Claims


def make_cell_index(displays: dict[str, Display]) -> FindCell:
    """Return a function that finds the first cell of a display, row and column.

    `*` is any row or column.
    """
    cells: dict[tuple[str, str, str], TableCell] = {}
    for name, display in displays.items():
        if isinstance(display, TableDisplay):
            cells |= {(name, cell.row, cell.column): cell for cell in display.cells}

    @cache
    def find_cell(display: str, row: str, column: str) -> TableCell | None:
        if "*" not in (row, column):
            return cells.get((display, row, column))
        for key, cell in cells.items():
            if key[0] == display and row in ("*", cell.row) and column in ("*", cell.column):
                return cell
        return None

    return find_cell


def expand_claims(
    axes: Axes,
    quotes: dict[str, str],
    entry: Entry,
    find_cell: FindCell,
    place: str,
) -> list[Entry]:
    """Return the claims of an entry; `{name}` in a text may also be one of `quotes`.

    Cells named without their metric get it.
    """
    common = {key: value for key, value in entry.items() if key not in ("each", "when")}
    rules = entry.get("when", [])
    _check_rules(axes, rules, entry.get("each", []), place)
    claims = []
    for members in combine(axes, entry.get("each", []), place):
        claim = common | apply_rules(rules, members)
        for side in SIDES:
            if isinstance(claim.get(side), dict):
                claim[side] = spread_cells(axes, claim[side], place)
        claim = fill_texts(claim, members, quotes, place)
        for side in SIDES:
            if side in claim:
                claim[side] = complete_cells(claim[side], find_cell)
        claims.append(claim)
    return claims


def _check_rules(axes: Axes, rules: list[Entry], each: list, place: str) -> None:
    """Raise UserError for a rule of a claim with a label that none of its members has."""
    for item in each:
        members = list_members(axes, item, place)
        labels = [member.label for member in members]
        for axis in dict.fromkeys(member.axis for member in members):
            for rule in rules:
                if axis not in rule:
                    continue
                if not isinstance(rule[axis], str | list):
                    problem = f"a rule of `when` has {axis} {rule[axis]!r}"
                    raise UserError(f"{place}: {problem}; give one of its labels, or a list")
                for label in list_names(rule[axis]):
                    if label not in labels:
                        problem = f"a rule of `when` has {axis} '{label}'"
                        suggestion = suggest_name(label, labels)
                        raise UserError(f"{place}: {problem}, which `each` has not; {suggestion}")


def apply_rules(rules: list[Entry], members: tuple[Member, ...]) -> Entry:
    """Return what the rules of a claim set for these members. The lower rule wins.

    A rule is `{axis: labels, field: value}`.
    """
    labels = {member.axis: member.label for member in members}
    fields: Entry = {}
    for rule in rules:
        if _applies_to(rule, labels):
            fields |= {key: value for key, value in rule.items() if key not in labels}
    return fields


def _applies_to(rule: Entry, labels: dict[str, str]) -> bool:
    """Whether a rule of a claim is for the members with these labels (axis -> label)."""
    applies = True
    for axis, label in labels.items():
        if axis in rule:
            applies = applies and label in list_names(rule[axis])
    return applies


def spread_cells(axes: Axes, side: Entry, place: str) -> list[str]:
    """Return the cells of a side `{each: axes, cell: text}`. Other names in the text stay."""
    cells = []
    for members in combine(axes, side["each"], place):
        cell = side["cell"]
        for member in members:
            cell = cell.replace(f"{{{member.axis}}}", member.label)
        cells.append(cell)
    return cells


def fill_texts(
    entry: Entry,
    members: tuple[Member, ...],
    quotes: dict[str, str],
    place: str,
) -> Entry:
    """Fill in the labels and values of members in every text of a claim.

    Its name is in lower case. A value of a member whose key is a field of claims is that field,
    unless the entry has it.
    """
    names: dict[str, Any] = dict(quotes)
    for member in members:
        names[member.axis] = member.label
        names |= member.values

    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return [fill(text) for text in value]
        if isinstance(value, str):
            return fill_text(value, names, place)
        return value

    fields = {key: value for key, value in names.items() if key in Claim.model_fields}
    claim = {key: fill(value) for key, value in (fields | entry).items()}
    claim["claim"] = str(claim.get("claim")).lower().replace("_", "-")
    return claim


def complete_cells(side: Any, find_cell: FindCell) -> Any:
    """Add the metric to each cell of a side that is named as `<display>/<row>/<column>`.

    The rest stays as it is.
    """
    if isinstance(side, list):
        return [complete_cells(cell, find_cell) for cell in side]
    if not isinstance(side, str) or side.count("/") != 2:
        return side
    cell = find_cell(*side.split("/"))
    # A missing cell is reported with all others, later.
    if cell is None or cell.metric is None:
        return side
    return f"{side}/{cell.metric}"


def find_unit(claim: Entry, find_cell: FindCell) -> str:
    """Return the unit of a claim's effect by its measure, or by the first cell of the left side.

    It is empty if there is no such cell.
    """
    if claim.get("relation") == "falls_with":
        return UNIT_OF_TRENDS
    measure, left = claim.get("measure"), claim.get("left")
    if isinstance(measure, str) and measure in UNITS_OF_MEASURES:
        return UNITS_OF_MEASURES[measure]
    cells = list_cells(left)
    if not cells or cells[0].count("/") != 3:
        return ""
    cell = find_cell(*cells[0].split("/")[:3])
    if cell is None or cell.unit is None:
        return ""
    return "points" if cell.unit in POINTS else cell.unit
