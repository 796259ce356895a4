"""Accuracy under constituent-aware pooling by the depth of the pooled block (figures 2, 6 and 7 of CARMA)."""

import math
from collections.abc import Iterable

import pandas
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import RUN_COLUMNS, Inputs, select_entry
from workflow_scripts.reporting.figures.style import (
    LOOKS,
    PAGE,
    add_legend_below,
    make_figure,
    mark_not_run,
)

COLUMNS = 4  # panels next to each other
POINT = [*RUN_COLUMNS, "layer", "depth", "series"]


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a panel per `panel` of `runs`, a line per `series`: its mean over seeds, in a band from lowest to highest.

    `depth` is the block's index in percent of the last block's. options: poolings, each with a column of panels;
    without any, a panel is the mean over all.
    """
    entries, poolings = inputs.display.runs, inputs.read_options(poolings=[])["poolings"]
    table = inputs.select_scores("exact_match", "cap")
    table = table[table["item_set"] == "own_correct"]
    table = table.assign(
        depth=100 * table["layer"] / table.groupby(["task", "method"])["layer"].transform("max")
    )
    looks = dict(zip(dict.fromkeys(entry.series for entry in entries), LOOKS, strict=False))
    names = list(dict.fromkeys(entry.panel for entry in entries))
    panels = [(name, pooling) for name in names for pooling in poolings or [None]]
    columns = len(poolings) or min(COLUMNS, len(names))
    rows = math.ceil(len(panels) / columns)
    figure = make_figure(PAGE, rows * (1.1 if poolings else 1.5) + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    points = {}
    for name, pooling in panels:
        mine = [entry for entry in entries if entry.panel == name]
        if any(inputs.list_seeds(entry) for entry in mine):
            chosen = table if pooling is None else table[table["pooling"] == pooling]
            found = pandas.concat(
                [select_entry(chosen, entry).assign(series=entry.series) for entry in mine]
            )
            # The mean over poolings.
            points[name, pooling] = found.groupby(POINT, as_index=False, sort=False)["value"].mean()
    bottom = find_axis_start(points.values())
    handles, shown = {}, []
    for axes, (name, pooling) in zip(grid, panels, strict=False):
        axes.set_title(f"{name}, {pooling} pooling" if pooling else name, loc="left")
        if (name, pooling) not in points:
            mark_not_run(axes, inputs.scale)
            continue
        handles |= draw_lines(axes, points[name, pooling], looks, bottom)
        shown.append(points[name, pooling].assign(panel=name, pooling=pooling or "mean of all"))
    for unused in grid[len(panels) :]:
        unused.set_axis_off()
    for column in range(columns):
        if drawn := [axes for axes in grid[column::columns] if axes.lines]:
            drawn[-1].set_xlabel("depth of block (%)")
    figure.supylabel("accuracy under CAP (%)", fontsize=8)
    in_order = [handles[name] for name in looks if name in handles]
    if in_order and len(panels) < len(grid):
        grid[-1].legend(handles=in_order, loc="center", labelspacing=0.9)
    else:
        add_legend_below(figure, in_order, len(looks))
    return figure, pandas.concat(shown) if shown else pandas.DataFrame(
        columns=[*POINT, "value", "panel", "pooling"]
    )


def find_axis_start(tables: Iterable[pandas.DataFrame]) -> int:
    """Find the highest of 0, 25, 50 and 75 percent that is not above any point of `tables`."""
    lowest = min((table["value"].min() for table in tables if len(table)), default=0)
    return min(75, 25 * int(lowest // 25))


def draw_lines(axes: Axes, points: pandas.DataFrame, looks: dict, bottom: int) -> dict[str, Artist]:
    """Draw a line with its band for each series, on an axis from `bottom` percent; return handles for a legend."""
    handles = {}
    for name, mine in points.groupby("series"):
        look, by_depth = looks[name], mine.groupby("depth")["value"]
        mean, low, high = by_depth.mean(), by_depth.min(), by_depth.max()
        axes.fill_between(mean.index, low, high, color=look.colour, alpha=0.2, linewidth=0)
        shape = {
            "color": look.colour,
            "linestyle": look.line,
            "marker": look.marker,
            "markersize": 3,
        }
        (handles[name],) = axes.plot(mean, label=name, **shape)
    room = (100 - bottom) / 25
    ticks = (0, 50, 100) if bottom == 0 else range(bottom, 101, 25)
    axes.set(
        xlim=(0, 104), ylim=(bottom - room, 100 + room), xticks=(0, 25, 50, 75, 100), yticks=ticks
    )
    return handles
