"""Accuracy under constituent-aware pooling by the depth of the block (figures 2, 6, 7 of CARMA)."""

import math
from collections.abc import Iterable
from itertools import product

import numpy as np
import pandas
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.config.display_schema import Runs
from workflow_scripts.reporting.figures.figure import RUN_COLUMNS, Inputs, select_entry
from workflow_scripts.reporting.figures.options.cap_by_layer import Options
from workflow_scripts.reporting.figures.style import (
    PAGE,
    Look,
    add_legend_below,
    choose_looks,
    make_figure,
    mark_not_run,
)

COLUMNS = 4  # panels next to each other
POINT = [*RUN_COLUMNS, "layer", "depth", "series"]


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw a panel per `panel` of `runs`, and a line per `series`.

    A line is the mean over seeds, in a band from the lowest to the highest. `depth` is the block's
    index in percent of the last block's.
    """
    entries = inputs.display.runs
    poolings = options.poolings
    table = inputs.select_scores("exact_match", "cap")
    table = table.loc[table["item_set"] == "own_correct"]
    last_block = table.groupby(["task", "method"])["layer"].transform("max")
    table = table.assign(depth=100 * table["layer"] / last_block)
    looks = choose_looks(entry.series for entry in entries)
    names = list(dict.fromkeys(entry.panel for entry in entries))
    panels = list(product(names, poolings or [None]))
    columns = len(poolings) or min(COLUMNS, len(names))
    rows = math.ceil(len(panels) / columns)
    height = 1.1 if poolings else 1.5
    figure = make_figure(PAGE, rows * height + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    points = {}
    for name, pooling in panels:
        of_panel = [entry for entry in entries if entry.panel == name]
        of_pooling = select_points(table, of_panel, pooling)
        if len(of_pooling):
            points[name, pooling] = of_pooling
    bottom = find_axis_start(points.values())
    handles = {}
    plotted = []
    for axes, (name, pooling) in zip(grid, panels, strict=False):
        title = f"{name}, {pooling} pooling" if pooling else name
        axes.set_title(title, loc="left")
        if (name, pooling) not in points:
            mark_not_run(axes, inputs.absence)
            continue
        of_panel = points[name, pooling]
        handles |= draw_lines(axes, of_panel, looks, bottom)
        plotted.append(of_panel.assign(panel=name, pooling=pooling or "mean of all"))
    for unused in grid[len(panels) :]:
        unused.set_axis_off()
    for column in range(columns):
        drawn = [axes for axes in grid[column::columns] if axes.lines]
        if drawn:
            drawn[-1].set_xlabel("depth of block (%)")
    figure.supylabel("accuracy under CAP (%)", fontsize=8)
    in_order = [handles[name] for name in looks if name in handles]
    if in_order and len(panels) < len(grid):
        grid[-1].legend(handles=in_order, loc="center", labelspacing=0.9)
    else:
        add_legend_below(figure, in_order, len(looks))
    if not plotted:
        return figure, pandas.DataFrame(columns=[*POINT, "value", "panel", "pooling"])
    return figure, pandas.concat(plotted)


def select_points(
    table: pandas.DataFrame, entries: list[Runs], pooling: str | None
) -> pandas.DataFrame:
    """Return the points of a panel, each the mean of its scores: under one pooling, or over all."""
    if pooling is not None:
        table = table.loc[table["pooling"] == pooling]
    scores = pandas.concat(
        [select_entry(table, entry).assign(series=entry.series) for entry in entries]
    )
    return scores.groupby(POINT, as_index=False, sort=False).agg(value=("value", "mean"))


def find_axis_start(tables: Iterable[pandas.DataFrame]) -> int:
    """Find the highest of 0, 25, 50 and 75 percent that is not above any point of `tables`."""
    lowest = min((np.nanmin(table["value"]) for table in tables if len(table)), default=0)
    return min(75, 25 * int(lowest // 25))


def draw_lines(
    axes: Axes, points: pandas.DataFrame, looks: dict[str, Look], bottom: int
) -> dict[str, Artist]:
    """Draw a line with its band for each series, on an axis from `bottom` percent.

    Return handles for a legend.
    """
    handles = {}
    for name, of_series in points.groupby("series"):
        look = looks[str(name)]
        by_depth = of_series.groupby("depth").agg(
            mean=("value", "mean"), lowest=("value", "min"), highest=("value", "max")
        )
        axes.fill_between(
            by_depth.index,
            by_depth["lowest"],
            by_depth["highest"],
            color=look.colour,
            alpha=0.2,
            linewidth=0,
        )
        (handles[str(name)],) = axes.plot(
            by_depth["mean"],
            label=str(name),
            markersize=3,
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
        )
    room = (100 - bottom) / 25
    ticks = range(bottom, 101, 25)
    if bottom == 0:
        ticks = range(0, 101, 50)
    limits = (bottom - room, 100 + room)
    axes.set(xlim=(0, 104), ylim=limits, xticks=(0, 25, 50, 75, 100), yticks=ticks)
    return handles
