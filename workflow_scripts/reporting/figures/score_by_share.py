"""A score over the share of the training data, model against model."""

import pandas
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow_scripts.reporting.figures.figure import Inputs
from workflow_scripts.reporting.figures.options.score_by_share import Options
from workflow_scripts.reporting.figures.score_bars import select_panel_scores
from workflow_scripts.reporting.figures.style import (
    GREY,
    PAGE,
    add_legend_below,
    choose_looks,
    make_figure,
    mark_not_run,
)

STEP = 0.07  # between the models, side by side at one share


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw a line per `series` of `runs` through the means over seeds, and a dot per seed.

    `panel` of `runs` is the share. The axis has the range of the values, since models differ by
    little. A share that some seeds of a model lack has no mean.
    """
    entries = inputs.display.runs
    values = select_panel_scores(inputs, options.metric, options.split, entries)
    shares = list(dict.fromkeys(entry.panel for entry in entries))
    series = list(dict.fromkeys(entry.series for entry in entries))
    figure = make_figure(PAGE, 2.4)
    axes = figure.subplots()
    if values.empty:
        mark_not_run(axes, inputs.absence)
        return figure, values
    looks = choose_looks(series)
    ran = [name for name in series if name in set(values["series"])]
    handles = []
    for place, name in enumerate(ran):
        look = looks[name]
        of_series = values.loc[values["series"] == name]
        table = of_series.pivot(index="panel", columns="seed", values="value").reindex(shares)
        offset = STEP * (place - (len(ran) - 1) / 2)
        x = [number + offset for number in range(len(shares))]
        axes.plot(x, table, "o", color=look.colour, markersize=2, alpha=0.6)
        handles += axes.plot(
            x,
            table.mean(axis=1, skipna=False),
            label=name,
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
        )
    axes.set_xticks(range(len(shares)), shares)
    axes.set(xlabel="share of the training data", ylabel=options.label)
    handles.append(
        Line2D([], [], marker="o", color=GREY, linestyle="", markersize=2, label="seeds")
    )
    absent = [name for name in series if name not in ran]
    handles += [Line2D([], [], color="none", label=f"{name}: {inputs.absence}") for name in absent]
    add_legend_below(figure, handles, len(ran) + 1)
    return figure, values
