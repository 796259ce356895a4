"""Validation accuracy over training, model against model."""

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow_scripts.common.plug_ins import NoOptions
from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.style import (
    PAGE,
    Look,
    add_legend_below,
    choose_looks,
    make_figure,
    mark_not_run,
)


def draw(inputs: Inputs, options: NoOptions) -> tuple[Figure, pandas.DataFrame]:
    """Draw a panel per `panel` of `runs`, and the lines of each `series`.

    They are thin for each seed, and thick for the mean. The mean is drawn at steps at which all
    seeds were validated.
    """
    entries = inputs.display.runs
    curves = inputs.read_curves("valid_exact_match")
    panels = list(dict.fromkeys(entry.panel for entry in entries))
    series = list(dict.fromkeys(entry.series for entry in entries))
    looks = choose_looks(series)
    figure = make_figure(PAGE, 2.4)
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    lines: dict[str, Line2D] = {}
    plotted = []
    for number, (name, axes) in enumerate(zip(panels, grid, strict=True)):
        axes.set_title(f"({chr(ord('a') + number)}) {name}", loc="left")
        of_panel = [entry for entry in entries if entry.panel == name]
        if not any(inputs.list_seeds(entry) for entry in of_panel):
            mark_not_run(axes, inputs.absence)
            continue
        # Each panel has its own range: values below 10% would be invisible on an axis up to 100%.
        top = 1.0
        for entry in of_panel:
            table = select_entry(curves, entry)
            if table.empty:
                continue
            lines[entry.series] = draw_seeds_and_mean(axes, table, entry.series, looks)
            plotted.append(table.assign(panel=name, series=entry.series))
            top = max(top, np.nanmax(table["value"]))
        axes.set(ylim=(-0.03 * top, 1.03 * top), xlabel="updates")
        axes.margins(x=0.02)
        if number == 0:
            axes.set_ylabel("validation accuracy (%)")
    handles = [lines[name] for name in series if name in lines]
    add_legend_below(figure, handles, len(series))
    if not plotted:
        return figure, curves
    return figure, pandas.concat(plotted, ignore_index=True)


def draw_seeds_and_mean(
    axes: Axes, table: pandas.DataFrame, name: str, looks: dict[str, Look]
) -> Line2D:
    """Draw the curves of one series, and return the line of their mean."""
    look = looks[name]
    for _, of_seed in table.groupby("seed"):
        axes.plot(
            of_seed["step"],
            of_seed["value"],
            color=look.colour,
            label=name,
            linewidth=0.6,
            alpha=0.5,
        )
    by_seed = table.pivot(index="step", columns="seed", values="value")
    mean = by_seed.mean(axis=1, skipna=False).dropna()
    (line,) = axes.plot(
        mean,
        color=look.colour,
        label=name,
        linestyle=look.line,
        marker=look.marker,
        markevery=max(1, len(mean) // 8),
    )
    return line
