"""Bars of a score for each model and variant."""

import numpy as np
import pandas
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from workflow_scripts.config.display_schema import Runs
from workflow_scripts.reporting.figures import style
from workflow_scripts.reporting.figures.figure import RUN_COLUMNS, Inputs, select_entry
from workflow_scripts.reporting.figures.options.score_bars import Options

WIDTH = 0.8  # of the bars of a model, side by side


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw a row of axes per panel.

    It has a group of bars per `panel` of `runs` (a model), and a bar per `series` (a variant). A
    bar is the mean over seeds, a dot a seed.
    """
    panels = options.panels
    entries = inputs.display.runs
    models = list(dict.fromkeys(entry.panel for entry in entries))
    looks = style.choose_looks(entry.series for entry in entries)
    figure = style.make_figure(style.PAGE, 1.55 * len(panels) + 0.5)
    grid = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    rows = []
    for number, (panel, axes) in enumerate(zip(panels, grid, strict=True)):
        title = panel.title
        if len(grid) > 1:
            title = f"({chr(ord('a') + number)}) {title}"
        axes.set_title(title, loc="left")
        values = select_panel_scores(inputs, panel.metric, panel.split, entries)
        rows.append(values.assign(title=panel.title))
        if values.empty:
            style.mark_not_run(axes, inputs.absence)
            continue
        draw_bars(axes, values, models, looks)
        limits = find_limits(values["value"].tolist())
        axes.set(ylabel=panel.label, xlim=(-0.5, len(models) - 0.5), ylim=limits)
        axes.set_xticks(range(len(models)), name_models(inputs, models))
    handles: list[Artist] = [Patch(**look.fill, label=name) for name, look in looks.items()]
    handles.append(
        Line2D([], [], marker="o", color=style.GREY, linestyle="", markersize=2.5, label="seeds")
    )
    style.add_legend_below(figure, handles, len(looks) + 2)
    return figure, pandas.concat(rows, ignore_index=True)


def find_limits(values: list[float]) -> tuple[float, float]:
    """Find the ends of the axis: 0 and 105 for percent, as far as needed for other values."""
    lowest = np.nanmin(values)
    highest = np.nanmax(values)
    start = min(0.0, 1.05 * lowest)
    if highest <= 0 and start < 0:
        return start, 0.0
    if highest <= 0 or 20 <= highest <= 100:
        return start, 105.0
    return start, (1.25 if highest < 20 else 1.05) * highest


def name_models(inputs: Inputs, models: list[str]) -> list[str]:
    """Return the names of the models, with a note where the scale runs none."""
    requested = {entry.panel for entry in inputs.display.runs if inputs.list_seeds(entry)}
    labels = []
    for model in models:
        label = model
        if model not in requested:
            label += f"\n{inputs.absence}"
        labels.append(label)
    return labels


def select_panel_scores(
    inputs: Inputs, metric: str, split: str, entries: list[Runs]
) -> pandas.DataFrame:
    """Select one score per entry and seed: model, series, seed, value."""
    selected = []
    for entry in entries:
        table = select_entry(
            inputs.select_scores(metric, split=split, readout=entry.readout), entry
        )
        means = table.groupby(RUN_COLUMNS, as_index=False).agg(value=("value", "mean"))
        names = {"panel": entry.panel, "series": entry.series, "metric": metric}
        selected.append(means.assign(**names))
    return pandas.concat(selected, ignore_index=True)


def draw_bars(
    axes: Axes, values: pandas.DataFrame, models: list[str], looks: dict[str, style.Look]
) -> None:
    """Draw the bars and dots of one panel."""
    step = WIDTH / len(looks)
    for place, (name, look) in enumerate(looks.items()):
        for group, model in enumerate(models):
            x = group + (place - (len(looks) - 1) / 2) * step
            seeds = values.loc[(values["series"] == name) & (values["panel"] == model), "value"]
            if len(seeds):
                axes.bar(x, seeds.mean(), step * 0.9, linewidth=0.8, **look.fill)
                spread = x + step * 0.5 * np.linspace(-0.5, 0.5, len(seeds) + 2)[1:-1]
                axes.plot(spread, seeds, "o", color=look.colour, markersize=2.5)
