"""Select the rows of scores.csv for a cell."""

import re
from typing import Any

from workflow_scripts.common.errors import UserError


def select_rows(rows: list[dict], selection: dict[str, Any]) -> list[dict]:
    """Select the scores of a cell.

    Without an intervention these are scores of no intervention. Without a readout these are scores without one, if
    there are such: those of the best checkpoint. A layer such as "25%" is the one nearest to that share of the deepest
    layer; of two equally near, the earlier.
    """
    wanted = {"intervention": None} | selection
    layer = wanted.pop("layer", None)
    rows = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    if "readout" not in wanted:
        rows = [row for row in rows if row["readout"] is None] or rows
    if layer is None or not rows:
        return rows
    if isinstance(layer, str):
        if not re.fullmatch(r"\d+(\.\d+)?%", layer):
            raise UserError(f"displays.yaml: layer '{layer}' is neither a number of a block nor a depth like 25%")
        depth = float(layer.removesuffix("%")) / 100
        layers = [row["layer"] for row in rows]
        layer = min(layers, key=lambda one: (abs(one - depth * max(layers)), one))
    return [row for row in rows if row["layer"] == layer]


def matches_intervention(row: dict, selection: dict[str, Any], analysed: bool = False) -> bool:
    """Whether a score has the intervention (an analysis may have several) and the rate of a cell."""
    intervened = analysed or row["intervention"] == selection.get("intervention")
    return intervened and row["rate"] in (None, selection.get("rate"))


def has_empty_item_set(seen: list[dict], selection: dict[str, Any]) -> bool:
    """Whether the intervention of a cell was measured, but no item was right before, so that there is no share.

    An intervention also has scores on all items; an analysis of such a set has its size.
    """
    of_right = str(selection.get("item_set")).endswith("_correct")
    return of_right and any(row["n"] == 0 or row["item_set"] == "all" for row in seen)
