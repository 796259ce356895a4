"""Published spreads of two models against each other, and the runs that would show their differences."""

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from workflow_scripts.reporting.figures import style
from workflow_scripts.reporting.figures.figure import Inputs

LINE = 0.155  # inches from line to line
BAND = "0.88"
# Columns with their names; where both coincide, the point is inside the square.
SHAPE = {"color": "black", "linestyle": ""}
NEEDED = {
    ("runs_needed_cv", "runs for CV"): SHAPE | {"marker": "s", "markerfacecolor": "white", "markersize": 5},
    ("runs_needed_score", "runs for ConsistSyn"): SHAPE | {"marker": "o", "markerfacecolor": "black", "markersize": 3},
}


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a line per published cell: the ratio of CVs on the left, the runs that would be needed on the right.

    options: runs of each published number; tasks: title of each task, in the order of the lines.
    """
    options = inputs.read_options(runs=6, tasks={})
    names, cells = options["tasks"], inputs.read_table("cv_ratios")
    cells = pandas.concat([cells[cells["task"] == task] for task in names], ignore_index=True)
    groups = [(task, rate) for task in names for rate in sorted(cells["rate"].unique())]
    # A line is left free between the groups.
    cells["line"] = [at + groups.index((cell.task, cell.rate)) for at, cell in enumerate(cells.itertuples())]
    figure = style.make_figure(style.PAGE, LINE * (cells["line"].max() + 1) + 0.9)
    left, right = figure.subplots(1, 2, sharey=True)
    looks = {group: style.LOOKS[number] for number, group in enumerate(groups)}
    draw_ratios(left, cells, looks)
    draw_needed(right, cells, options["runs"])
    left.set_yticks(cells["line"], cells["model"], fontsize=6.5)
    left.set_ylim(cells["line"].max() + 0.7, -0.7)
    for axes, title in ((left, "(a) spread, CARMA against FT"), (right, "(b) runs a side that would show it")):
        axes.set_title(title, loc="left")
        axes.tick_params(axis="y", length=0)
    needed = [Line2D([], [], label=label, **shape) for (_, label), shape in NEEDED.items()]
    named = {f"{names[task]}, {rate:.0%} of the words": look for (task, rate), look in looks.items()}
    handles = [*style.make_markers(named), Patch(color=BAND, label="equal spread, 95%"), *needed]
    style.add_legend_below(figure, handles, 4)
    return figure, cells.drop(columns="line")


def draw_ratios(axes: Axes, cells: pandas.DataFrame, looks: dict) -> None:
    """Draw points on a logarithmic axis over the range of ratios that equal spreads give."""
    axes.axvspan(cells["low"].iloc[0], cells["high"].iloc[0], color=BAND, linewidth=0, zorder=0)
    axes.axvline(1, color=style.GREY, linewidth=0.6, zorder=1)
    mean = float(np.exp(np.log(cells["ratio"].dropna()).mean()))
    axes.axvline(mean, color="black", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    for group, mine in cells.groupby(["task", "rate"]):
        axes.plot(mine["ratio"], mine["line"], marker=looks[group].marker, color=looks[group].colour, **style.DOTS)
    for line in cells.loc[cells["ratio"].isna(), "line"]:
        axes.text(1.1, line, "misprinted", ha="left", va="center", fontsize=6, color=style.GREY, style="italic")
    axes.set(xscale="log", xlim=(0.18, 4), xlabel=f"CV of CARMA / CV of FT (geometric mean {mean:.2f})")
    axes.set_xticks((0.2, 0.5, 1, 2, 4), ("0.2", "0.5", "1", "2", "4"))
    axes.set_xticks([], minor=True)


def draw_needed(axes: Axes, cells: pandas.DataFrame, runs: int) -> None:
    """Draw two points a line, on a thin rule that leads to the axis."""
    axes.axvline(runs, color="black", linewidth=0.8)
    for (name, _), shape in NEEDED.items():
        shown = cells.dropna(subset=name)
        axes.plot(shown[name], shown["line"], **shape)
    for line in cells["line"]:
        axes.axhline(line, color="0.9", linewidth=0.5, zorder=0)
    for line in cells.loc[cells[[name for name, _ in NEEDED]].isna().all(axis=1) & cells["ratio"].notna(), "line"]:
        axes.text(30, line, "printed alike", ha="left", va="center", fontsize=6, color=style.GREY, style="italic")
    axes.set(xscale="log", xlim=(1.5, None), xlabel="runs (power 80%, two-sided 5%)")
