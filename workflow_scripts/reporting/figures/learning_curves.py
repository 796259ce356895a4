"""Validation accuracy over training, model against model."""

import pandas
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.style import LOOKS, PAGE, add_legend_below, make_figure, mark_not_run

SHADE = "0.92"


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a panel per `panel` of `runs`, a line per `series`: thin for each seed, thick for their mean.

    options: mean: also draw the mean, at steps at which all seeds were validated; shade_falling_rate: shade the updates
    at the end of a panel in which the learning rate falls after it was constant.
    """
    options = inputs.read_options(mean=True, shade_falling_rate=False)
    entries, curves, shown = inputs.display["runs"], inputs.read_curves("valid_exact_match"), []
    rates = inputs.read_curves("learning_rate") if options["shade_falling_rate"] else None
    panels = list(dict.fromkeys(entry["panel"] for entry in entries))
    series = list(dict.fromkeys(entry["series"] for entry in entries))
    figure = make_figure(PAGE, 2.4)
    lines, shade = {}, []
    for number, (name, axes) in enumerate(zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True)):
        axes.set_title(f"({chr(ord('a') + number)}) {name}", loc="left")
        mine = [entry for entry in entries if entry["panel"] == name]
        if not any(inputs.list_seeds(entry) for entry in mine):
            mark_not_run(axes, inputs.scale)
            continue
        for entry in mine:
            table = select_entry(curves, entry)
            if table.empty:
                continue
            look = LOOKS[series.index(entry["series"])]
            style = {"color": look.colour, "label": entry["series"]}
            thin = {"linewidth": 0.6, "alpha": 0.5} if options["mean"] else {"linewidth": 0.7, "marker": look.marker}
            for _, seed in table.groupby("seed"):
                (line,) = axes.plot(seed["step"], seed["value"], markersize=2, **style, **thin)
            if options["mean"]:
                mean = table.pivot(index="step", columns="seed", values="value").mean(axis=1, skipna=False).dropna()
                thick = {"linestyle": look.line, "marker": look.marker, "markevery": max(1, len(mean) // 8)}
                (line,) = axes.plot(mean, **style, **thick)
            lines[entry["series"]] = line
            shown.append(table.assign(panel=name, series=entry["series"]))
        if rates is not None:
            falls = [span for entry in mine if (span := find_falling_rate(select_entry(rates, entry)))]
            for first, last in dict.fromkeys(falls):
                axes.axvspan(first, last, color=SHADE, linewidth=0, zorder=0)
                shade = [Patch(color=SHADE, label="learning rate falls")]
        # Each panel has its own range: values below 10% would be invisible on an axis up to 100%.
        top = max([1.0, *(table["value"].max() for table in shown if table["panel"].iloc[0] == name)])
        axes.set(ylim=(-0.03 * top, 1.03 * top), xlabel="updates")
        axes.margins(x=0.02)
        if number == 0:
            axes.set_ylabel("validation accuracy (%)")
    handles = [*(lines[name] for name in series if name in lines), *shade]
    add_legend_below(figure, handles, len(series) + len(shade))
    return figure, pandas.concat(shown, ignore_index=True) if shown else curves


def find_falling_rate(rates: pandas.DataFrame) -> tuple[float, float] | None:
    """Find the first and last update of the fall of the learning rate of one run after it was constant, if any."""
    if rates.empty:
        return None
    one = rates[rates["seed"] == rates["seed"].min()].sort_values("step")
    peak = one.loc[one["value"] == one["value"].max(), "step"]
    first, last = peak.max(), one["step"].max()
    return (first, last) if len(peak) > 1 and first < last else None
