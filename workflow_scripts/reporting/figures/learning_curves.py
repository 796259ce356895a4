"""Validation accuracy over training, model against model."""

import pandas
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.style import (
    LOOKS,
    PAGE,
    add_legend_below,
    make_figure,
    mark_not_run,
)


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a panel per `panel` of `runs`, a line per `series`: thin for each seed, thick for their mean.

    The mean is drawn at steps at which all seeds were validated.
    """
    inputs.read_options()
    entries, curves, shown = inputs.display.runs, inputs.read_curves("valid_exact_match"), []
    panels = list(dict.fromkeys(entry.panel for entry in entries))
    series = list(dict.fromkeys(entry.series for entry in entries))
    figure, lines = make_figure(PAGE, 2.4), {}
    for number, (name, axes) in enumerate(
        zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True)
    ):
        axes.set_title(f"({chr(ord('a') + number)}) {name}", loc="left")
        mine = [entry for entry in entries if entry.panel == name]
        if not any(inputs.list_seeds(entry) for entry in mine):
            mark_not_run(axes, inputs.scale)
            continue
        for entry in mine:
            table = select_entry(curves, entry)
            if table.empty:
                continue
            look = LOOKS[series.index(entry.series)]
            style = {"color": look.colour, "label": entry.series}
            for _, seed in table.groupby("seed"):
                axes.plot(seed["step"], seed["value"], linewidth=0.6, alpha=0.5, **style)
            mean = (
                table.pivot(index="step", columns="seed", values="value")
                .mean(axis=1, skipna=False)
                .dropna()
            )
            thick = {
                "linestyle": look.line,
                "marker": look.marker,
                "markevery": max(1, len(mean) // 8),
            }
            (lines[entry.series],) = axes.plot(mean, **style, **thick)
            shown.append(table.assign(panel=name, series=entry.series))
        # Each panel has its own range: values below 10% would be invisible on an axis up to 100%.
        top = max(
            [1.0, *(table["value"].max() for table in shown if table["panel"].iloc[0] == name)]
        )
        axes.set(ylim=(-0.03 * top, 1.03 * top), xlabel="updates")
        axes.margins(x=0.02)
        if number == 0:
            axes.set_ylabel("validation accuracy (%)")
    add_legend_below(figure, [lines[name] for name in series if name in lines], len(series))
    return figure, pandas.concat(shown, ignore_index=True) if shown else curves
