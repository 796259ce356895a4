"""Validation accuracy over training, model against model."""

import pandas
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.inputs import Inputs, of_entry
from workflow_scripts.reporting.figures.style import LOOKS, PAGE, legend_below, new_figure, not_run


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """A panel per `panel` of `runs`, a line per `series`: thin for each seed, thick for their mean.

    The axis of a panel ends at its highest value. Returns the figure and the plotted values. A step at which not all
    seeds were validated has no mean.
    """
    entries, curves, shown = inputs.display["runs"], inputs.curves("valid_exact_match"), []
    panels = list(dict.fromkeys(entry["panel"] for entry in entries))
    series = list(dict.fromkeys(entry["series"] for entry in entries))
    figure = new_figure(PAGE, 2.4)
    lines = {}
    for number, (name, axes) in enumerate(zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True)):
        axes.set_title(f"({chr(ord('a') + number)}) {name}", loc="left")
        mine = [entry for entry in entries if entry["panel"] == name]
        if not any(inputs.seeds(entry) for entry in mine):
            not_run(axes, inputs.scale)
            continue
        for entry in mine:
            table = of_entry(curves, entry)
            if table.empty:
                continue
            look = LOOKS[series.index(entry["series"])]
            for _, seed in table.groupby("seed"):
                axes.plot(seed["step"], seed["value"], color=look.colour, linewidth=0.6, alpha=0.5)
            mean = table.pivot(index="step", columns="seed", values="value").mean(axis=1, skipna=False).dropna()
            marks = max(1, len(mean) // 8)
            shape = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "markevery": marks}
            (lines[entry["series"]],) = axes.plot(mean, label=entry["series"], **shape)
            shown.append(table.assign(panel=name, series=entry["series"]))
        # Its own range for each panel: where all is under 10%, an axis up to 100% shows nothing.
        top = max([1.0, *(table["value"].max() for table in shown if table["panel"].iloc[0] == name)])
        axes.set(ylim=(-0.03 * top, 1.03 * top), xlabel="updates")
        axes.margins(x=0.02)
        axes.spines[["top", "right"]].set_visible(False)
        if number == 0:
            axes.set_ylabel("validation accuracy (%)")
    legend_below(figure, [lines[name] for name in series if name in lines], len(series))
    return figure, pandas.concat(shown, ignore_index=True) if shown else curves
