"""Expand entries of displays.yaml and claims.yaml over the axes of the file.

An axis has members: label -> values. `each` names axes, with all or some of their members; an entry with `each` is
expanded to one entry per combination, in the order of the axes. Each has the values of its members. In a text, `{axis}`
is the label, in a claim also `{key}` a value of a member.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.display_schema import SIDES, AnalysedRuns, Claim, list_cells, name_variant
from workflow_scripts.config.schema import list_names

Axes = dict[str, dict[str, dict[str, Any]]]
Member = tuple[str, str, dict[str, Any]]  # axis, label, values
Units = dict[str, tuple[str, int]]  # metric -> unit, decimals
FindCell = Callable[[str, str, str], dict[str, Any] | None]
TEXTS = ("row", "column", "panel", "series", "group")  # keys of cells and runs in which labels are filled in


def read_axes(content: dict[str, Any]) -> Axes:
    """Return axis -> label -> values. A file may also give a list of labels, or `{key: [values that are labels]}`."""
    axes: Axes = {}
    for name, members in content.items():
        if isinstance(members, list):
            axes[name] = {label: {} for label in members}
        elif len(members) == 1 and isinstance(values := next(iter(members.values())), list):
            axes[name] = {value: {next(iter(members)): value} for value in values}
        else:
            axes[name] = {label: values or {} for label, values in members.items()}
    return axes


def combine(axes: Axes, each: list, where: str) -> Iterator[tuple[Member, ...]]:
    """Yield one member of each axis, in all combinations.

    An item of `each` is an axis of the file, `{axis: [labels]}` for some of its members, or an axis of its own,
    `{name: members}`.
    """
    chosen = []
    for item in each:
        if not isinstance(item, str) and (not isinstance(item, dict) or len(item) != 1):
            raise UserError(f"{where}: `each` has {item!r}; it needs names of axes, or {{axis: labels}}")
        name, labels = (item, None) if isinstance(item, str) else next(iter(item.items()))
        if labels is not None and name not in axes:
            members = read_axes({name: labels})[name]
        elif name not in axes:
            raise UserError(f"{where}: no axis '{name}'; {suggest_name(name, axes)}")
        else:
            for label in labels or ():
                if label not in axes[name]:
                    raise UserError(f"{where}: no member '{label}' of axis {name}; {suggest_name(label, axes[name])}")
            members = {label: axes[name][label] for label in labels or axes[name]}
        chosen.append([(name, label, values) for label, values in members.items()])
    yield from product(*chosen)


def fill_text(text: str, names: dict[str, Any], where: str) -> str:
    """Fill in each `{name}`. An empty label at an end leaves out the comma before it."""
    try:
        return text.format(**names).strip(" ,")
    except KeyError as error:
        raise UserError(f"{where}: '{text}': {error} is no axis or key; known: {', '.join(map(str, names))}") from None
    except (IndexError, ValueError) as error:
        raise UserError(f"{where}: '{text}' is no valid text ({error}); write {{name}}, with both braces") from None


def merge_extended(entries: dict[str, dict], name: str, where: str) -> dict[str, Any]:
    """Return a display or analysis over the one that it extends; `options` are merged key by key."""
    entry = dict(entries[name])
    if (base := entry.pop("extends", None)) is None:
        return entry
    others = {key: value for key, value in entries.items() if key != name}
    if base not in others:
        raise UserError(f"{where}: extends '{base}'; {suggest_name(base, others)}")
    copied = merge_extended(others, base, where)
    options = {"options": copied.get("options", {}) | entry["options"]} if "options" in entry else {}
    return copied | entry | options


def expand_cells(axes: Axes, entries: dict | list[dict], label: str | None, where: str) -> Iterator[dict[str, Any]]:
    """Yield rows (`label` is "row"), columns or runs (`label` is None) without `each`.

    Where `each` is a mapping, it also names the key that has the label of each member: `{panel: model}`. Of
    a member, runs take what describes runs.
    """
    for entry in [entries] if isinstance(entries, dict) else entries:
        rest = {key: value for key, value in entry.items() if key != "each"}
        if "each" not in entry:
            yield rest if label else name_weights(rest)
            continue
        each = entry["each"]
        keys = list(each) if isinstance(each, dict) else [None] * len(each)
        for members in combine(axes, list(each.values()) if isinstance(each, dict) else each, where):
            labels = {name: one for name, one, _ in members}
            cell = {key: fill_text(text, labels, where) if key in TEXTS else text for key, text in rest.items()}
            if label and label not in cell:
                cell[label] = " ".join(filter(None, labels.values()))
            for key, (_, one, values) in zip(keys, members, strict=True):
                cell |= values | ({key: one} if key else {})
            if not label:
                cell = name_weights({key: value for key, value in cell.items() if key in AnalysedRuns.model_fields})
            yield cell


def name_weights(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of `runs` with its `weights` in the name of its variant."""
    if "weights" not in entry:
        return entry
    return {key: value for key, value in entry.items() if key != "weights"} | {"variant": name_variant(entry)}


def add_unit(cell: dict[str, Any], units: Units | None, where: str) -> dict[str, Any]:
    """Add unit and decimals to a row or column that names a metric; an empty unit if none is known."""
    metric = cell.get("metric")
    if metric is None:
        return cell
    if units is None:
        return {"unit": ""} | cell
    if metric not in units and "unit" not in cell:
        raise UserError(f"{where}: no metric '{metric}' in catalogue/metrics.yaml; {suggest_name(metric, units)}")
    unit, decimals = units.get(metric, (None, 2))
    if "over" in cell and not cell.get("relative") and unit == "percent":
        unit = "points"
    return {"unit": unit, "decimals": decimals} | cell


def add_test_set(entries: list[dict], others: list[dict], wins: bool = True) -> list[dict]:
    """Add the whole test set to the rows or columns that name a task, unless the other side names an analysis.

    What the other side names is left alone if `entries` win over it.
    """
    if any("analysis" in other for other in others):
        return entries
    given = {key for other in others for key in other} if wins else set()
    whole = {key: value for key, value in (("split", "test"), ("subset", "all")) if key not in given}
    return [whole | one if "task" in one and "analysis" not in one else one for one in entries]


def expand_display(axes: Axes, units: Units | None, display: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a table or figure with its rows, columns and runs written out.

    `cells` is what all cells of a table share. A run's score without split and subset is that of the whole test set.
    """
    display = dict(display)
    if "module" in display:
        return {"kind": "figure"} | expand_runs(axes, display, where)
    cells = display.pop("cells", {})
    rows, columns = (list(expand_cells(axes, display.get(key, []), key[:-1], where)) for key in ("rows", "columns"))
    if any("metric" in row for row in rows):
        rows = [cells | row for row in rows]
    else:
        columns = [cells | column for column in columns]
    rows, columns = add_test_set(rows, columns), add_test_set(columns, rows, wins=False)
    sides = {"rows": rows, "columns": columns}
    return (
        {"kind": "table"}
        | display
        | {key: [add_unit(one, units, where) for one in side] for key, side in sides.items()}
    )


def expand_runs(axes: Axes, entry: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a figure or an analysis with its runs written out."""
    return entry | ({"runs": list(expand_cells(axes, entry["runs"], None, where))} if "runs" in entry else {})


def expand_claims(
    axes: Axes, quotes: dict[str, str], entry: dict, find_cell: FindCell, where: str
) -> list[dict[str, Any]]:
    """Return the claims of an entry; `{name}` in a text may also be one of `quotes`.

    Cells named without their metric get it, and a claim has the unit of its cells.
    """

    def complete(side: Any) -> Any:
        if isinstance(side, list):
            return [complete(one) for one in side]
        if not isinstance(side, str) or len(parts := side.split("/")) != 3:
            return side
        found = find_cell(*parts)
        return f"{side}/{found['metric']}" if found and "metric" in found else side

    claims = []
    rest = {key: value for key, value in entry.items() if key not in ("each", "when")}
    for members in combine(axes, entry.get("each", []), where):
        given = rest | apply_rules(entry.get("when", []), members, where)
        given |= {side: spread(axes, given[side], where) for side in SIDES if isinstance(given.get(side), dict)}
        claim = fill_texts(given, members, quotes, where)
        claim |= {side: complete(claim[side]) for side in SIDES if side in claim}
        first = next(iter(list_cells(claim.get("left"))), "")
        cell = find_cell(*first.split("/")[:3]) if first.count("/") == 3 else None
        unit = cell.get("unit", "") if cell else ""  # a missing cell is reported with all others, later
        claim.setdefault("unit", "points" if unit in ("percent", "BLEU") else unit)
        claims.append(claim)
    return claims


def make_cell_index(displays: dict[str, dict]) -> FindCell:
    """Return a function that finds the first cell (column | row) of a display, row and column, of which `*` is any."""
    cells = {
        (name, row["row"], column["column"]): column | row
        for name, display in displays.items()
        for row in display.get("rows", ())
        for column in display.get("columns", ())
        if "row" in row and "column" in column
    }

    @cache
    def find_cell(display: str, row: str, column: str) -> dict[str, Any] | None:
        if "*" not in (row, column):
            return cells.get((display, row, column))
        keys = (key for key in cells if key[0] == display and row in ("*", key[1]) and column in ("*", key[2]))
        return next((cells[key] for key in keys), None)

    return find_cell


def spread(axes: Axes, side: dict[str, Any], where: str) -> list[str]:
    """Return the cells of a side `{each: axes, cell: text}`. Other names in the text stay."""
    found = []
    for members in combine(axes, side["each"], where):
        cell = side["cell"]
        for axis, label, _ in members:
            cell = cell.replace(f"{{{axis}}}", label)
        found.append(cell)
    return found


def apply_rules(rules: list[dict[str, Any]], members: tuple[Member, ...], where: str) -> dict[str, Any]:
    """Return what the rules of a claim set for these members: `{axis: labels, field: value}`. The lower rule wins."""
    found: dict[str, Any] = {}
    labels = {axis: label for axis, label, _ in members}
    for rule in rules:
        for axis in labels.keys() & rule.keys():
            if not isinstance(rule[axis], str | list):
                raise UserError(
                    f"{where}: a rule of `when` has {axis} {rule[axis]!r}; give one of its labels, or a list"
                )
        if all(label in list_names(rule[axis]) for axis, label in labels.items() if axis in rule):
            found |= {key: value for key, value in rule.items() if key not in labels}
    return found


def fill_texts(
    entry: dict[str, Any], members: tuple[Member, ...], quotes: dict[str, str], where: str
) -> dict[str, Any]:
    """Fill in the labels and values of members in every text of a claim; its name is in lower case.

    A value of a member whose key is a field of claims is that field, unless the entry has it.
    """
    names: dict[str, Any] = dict(quotes)
    for axis, label, values in members:
        names |= {axis: label} | values

    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return [fill(one) for one in value]
        return fill_text(value, names, where) if isinstance(value, str) else value

    fields = {key: value for key, value in names.items() if key in Claim.model_fields}
    claim = {key: fill(value) for key, value in (fields | entry).items()}
    return claim | {"claim": str(claim.get("claim")).lower().replace("_", "-")}
