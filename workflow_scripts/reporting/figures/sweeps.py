"""Heat maps of sweeps: how much each setting gains over a baseline."""

from typing import Any

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from workflow_scripts.reporting.evidence.pairing import compute_gains, require_same_weights
from workflow_scripts.reporting.figures.figure import RUN_COLUMNS, Inputs, select_entry
from workflow_scripts.reporting.figures.style import PAGE, make_figure, mark_not_run

# Diverging, its two ends told apart by the colour-blind; the numbers in the cells tell them apart in grey.
COLOURS = "PuOr_r"


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a heat map per entry of `maps`, next to each other; a cell is the mean gain over the baseline by seed.

    options: baseline: the `series` of `runs` that is subtracted; maps: each a title, labels x and y of its axes, labels
    of its `columns`, and `rows`: each a label, the series of its `cells`, one a column, the metric, and other selectors
    of the score: rate, item_set, layer. Scores of one seed are averaged over repetitions of an intervention.
    """
    options = inputs.read_options(baseline="", maps=[])
    entries = {entry["series"]: entry for entry in inputs.display["runs"]}
    found = [_gains(inputs, panel, entries, options["baseline"]) for panel in options["maps"]]
    widths = [len(panel["columns"]) + 1 for panel in options["maps"]]
    height = 0.42 * max(len(panel["rows"]) for panel in options["maps"]) + 0.75
    figure = make_figure(PAGE, height)
    grid = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    largest = max((table["gain"].abs().max() for table in found if len(table)), default=1.0) or 1.0
    for number, (axes, panel, table) in enumerate(zip(grid, options["maps"], found, strict=True)):
        axes.set_title(f"({chr(ord('a') + number)}) {panel['title']}", loc="left")
        if table.empty:
            mark_not_run(axes, inputs.scale)
        else:
            _draw_map(axes, panel, table, largest)
    return figure, pandas.concat(found, ignore_index=True)


def _gains(inputs: Inputs, panel: dict[str, Any], entries: dict[str, dict], baseline: str) -> pandas.DataFrame:
    """Return map, row, column (labels), seed, value and gain, for seeds that a cell shares with the baseline."""
    found = []
    for row in panel["rows"]:
        scores = {name: _by_seed(inputs, row, entries[name]) for name in {baseline, *row["cells"]}}
        for column, name in zip(panel["columns"], row["cells"], strict=True):
            sides = (entries[name], entries[baseline])
            variants = [(entry["task"], entry["method"], entry["variant"]) for entry in sides]
            require_same_weights(inputs.evidence.weights, *variants, f"displays.yaml: {panel['title']}")
            by_seed = scores[name].to_dict(), scores[baseline].to_dict()
            again = len(inputs.list_seeds(entries[baseline])) > 1
            gain = pandas.Series(compute_gains(*by_seed, relative=False, trained_again=again), dtype=float)
            table = pandas.DataFrame({"value": scores[name].loc[gain.index], "gain": gain}).rename_axis("seed")
            found.append(table.reset_index().assign(map=panel["title"], row=row["label"], column=str(column)))
    return pandas.concat(found, ignore_index=True)


def _by_seed(inputs: Inputs, row: dict[str, Any], entry: dict[str, Any]) -> pandas.Series:
    """Return the score of an entry of `runs` by seed."""
    table = select_entry(inputs.select_scores(row["metric"], row.get("intervention")), entry)
    for name in {"rate", "layer", "item_set"} & row.keys():
        table = table[table[name] == row[name]]
    return table.groupby(RUN_COLUMNS)["value"].mean().groupby("seed").mean().astype(float)


def _draw_map(axes: Axes, panel: dict[str, Any], table: pandas.DataFrame, largest: float) -> None:
    rows, columns = [row["label"] for row in panel["rows"]], [str(column) for column in panel["columns"]]
    by_cell = table.groupby(["row", "column"])["gain"]
    places = {name: by_cell.agg(name).unstack().reindex(index=rows, columns=columns) for name in ("mean", "std")}
    means = places["mean"].to_numpy(float)
    axes.imshow(means, cmap=COLOURS, norm=TwoSlopeNorm(0, -largest, largest), aspect="auto")
    for (y, x), mean in np.ndenumerate(means):
        deviation = places["std"].iat[y, x]
        text = f"{mean:+.1f}" + (f"\n±{deviation:.1f}" if deviation == deviation else "")
        dark = abs(mean) > 0.6 * largest
        axes.text(x, y, "–" if mean != mean else text, ha="center", va="center", fontsize=6, color="w" if dark else "k")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(xlabel=panel.get("x", ""), ylabel=panel.get("y", ""))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
