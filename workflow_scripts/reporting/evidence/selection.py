"""Which rows of scores.csv a cell selects, and what the other rows say about one that selects none."""

from collections.abc import Iterable
from typing import Any

from workflow_scripts.common.errors import UserError


def chosen_rows(rows: list[dict], selection: dict[str, Any]) -> list[dict]:
    """The scores that a cell selects; without an intervention it means the scores that come from none. One that names
    no readout means the scores without one, where there are such: those of a run's own checkpoint.
    """
    wanted = {"intervention": None} | selection
    layer = wanted.pop("layer", None)
    rows = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    if "readout" not in wanted:
        rows = [row for row in rows if row["readout"] is None] or rows
    if layer is None or not rows:
        return rows
    if isinstance(layer, str):
        layer = layer_at(layer, [row["layer"] for row in rows])
    return [row for row in rows if row["layer"] == layer]


def layer_at(depth: str, layers: Iterable[int]) -> int:
    """Of `layers` the one nearest to a depth like "25%" of the deepest of them; the earlier one of two as near.

    Raises UserError for another text.
    """
    try:
        part = float(depth.removesuffix("%")) / 100 if depth.endswith("%") else None
    except ValueError:
        part = None
    if part is None:
        raise UserError(f"displays.yaml: layer '{depth}' is neither a number of a block nor a depth like 25%")
    return min(layers, key=lambda layer: (abs(layer - part * max(layers)), layer))


def same_place(row: dict, selection: dict[str, Any], analysed: bool = False) -> bool:
    """Whether a score was taken under the intervention (an analysis may have looked at several) and rate of a cell."""
    intervened = analysed or row["intervention"] == selection.get("intervention")
    return intervened and row["rate"] in (None, selection.get("rate"))


def undefined_rows(rows: list[dict], selection: dict[str, Any]) -> list[dict]:
    """The scores that a cell selects and that are not defined."""
    wanted = {name: value for name, value in selection.items() if name in ("metric", "split", "subset", "readout")}
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def nothing_right(seen: list[dict], selection: dict[str, Any]) -> bool:
    """Whether the intervention of a cell was measured, but its set of right answers is empty: it has no share then.

    An intervention has scores on all items, too; an analysis of such a set has its size.
    """
    of_right = str(selection.get("item_set")).endswith("_correct")
    return of_right and any(row["n"] == 0 or row["item_set"] == "all" for row in seen)
