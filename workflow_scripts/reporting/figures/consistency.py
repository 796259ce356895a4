"""Bars of a score for each model and variant: accuracy, or consistency under synonyms and its variation."""

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETUP
from matplotlib.patches import Patch

from workflow_scripts.reporting.figures import style
from workflow_scripts.reporting.figures.figure import RUN_COLUMNS, Inputs, select_entry

WIDTH = 0.8  # of the bars of a model, side by side


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a row of axes per panel, a group of bars per `panel` of `runs` (a model), a bar per `series` (a variant).

    A bar is the mean over seeds, a dot a seed, a diamond the published number. options:
        panels: each a title, a metric, a label for its axis, and other selectors of the score: rate, item_set, split.
            Scores under an intervention are averaged over its repetitions.
        published: the cell of the published number, with {panel}, {series} and the entries of the panel; none if empty.
        series_names: the names of the series in `published`, if they differ.
    """
    options = inputs.read_options(panels=[], published="", series_names={})
    entries = inputs.display["runs"]
    models = list(dict.fromkeys(entry["panel"] for entry in entries))
    looks = dict(zip(dict.fromkeys(entry["series"] for entry in entries), style.LOOKS, strict=False))
    figure = style.make_figure(style.PAGE, 1.55 * len(options["panels"]) + 0.5)
    grid = figure.subplots(len(options["panels"]), 1, squeeze=False)[:, 0]
    rows, any_published = [], False
    for number, (panel, axes) in enumerate(zip(options["panels"], grid, strict=True)):
        letter = f"({chr(ord('a') + number)}) " if len(grid) > 1 else ""
        axes.set_title(letter + panel["title"], loc="left")
        values = select_panel_scores(inputs, panel, entries)
        printed = select_panel_published(inputs, panel, entries, options)
        rows += [values.assign(published=False, title=panel["title"]), printed.assign(title=panel["title"])]
        if values.empty and printed.empty:
            style.mark_not_run(axes, inputs.scale)
            continue
        any_published |= not printed.empty
        end = find_axis_end(panel, values, printed)
        draw_bars(axes, values, printed, models, looks, end)
        run = {entry["panel"] for entry in entries if inputs.list_seeds(entry)}
        axes.set(ylabel=panel["label"], xlim=(-0.5, len(models) - 0.5), ylim=(0, end))
        labels = [model if model in run else f"{model}\nnot run at {inputs.scale}" for model in models]
        axes.set_xticks(range(len(models)), labels)
    handles = [Patch(**look.fill, label=name) for name, look in looks.items()]
    handles.append(Line2D([], [], marker="o", color=style.GREY, linestyle="", markersize=2.5, label="seeds"))
    if any_published:
        hollow = {"color": "black", "markerfacecolor": "white", "linestyle": "", "markersize": 3.5}
        handles.append(Line2D([], [], marker="D", label="published", **hollow))
    style.add_legend_below(figure, handles, len(looks) + 2)
    return figure, pandas.concat(rows, ignore_index=True)


def select_panel_scores(inputs: Inputs, panel: dict, entries: list[dict]) -> pandas.DataFrame:
    """Select one score per entry and seed: model, series, seed, value."""
    shown = []
    for entry in entries:
        scores = inputs.select_scores(panel["metric"], entry.get("intervention"), panel.get("split", "test"))
        table = select_entry(scores, entry)
        if "readout" in entry:
            table = table[table["readout"] == entry["readout"]]
        if "intervention" in entry:
            item_set = panel.get("item_set", "own_correct")
            table = table[(table["rate"] == panel["rate"]) & (table["item_set"] == item_set)]
        means = table.groupby(RUN_COLUMNS, as_index=False)["value"].mean()
        shown.append(means.assign(panel=entry["panel"], series=entry["series"], metric=panel["metric"]))
    return pandas.concat(shown, ignore_index=True)


def select_panel_published(inputs: Inputs, panel: dict, entries: list[dict], options: dict) -> pandas.DataFrame:
    """Select the published number of each entry, if the paper prints one."""
    rows = []
    for entry in entries if options["published"] else ():
        series = options["series_names"].get(entry["series"], entry["series"])
        cell = options["published"].format(**panel | {"panel": entry["panel"], "series": series})
        number = inputs.evidence.published.get(tuple(cell.split("/")))
        if number is not None and number.value is not None:
            of = {"panel": entry["panel"], "series": entry["series"], "metric": panel["metric"]}
            rows.append(of | {"value": number.value, "published": True})
    return pandas.DataFrame(rows, columns=["panel", "series", "metric", "value", "published"])


def draw_bars(
    axes: Axes, values: pandas.DataFrame, printed: pandas.DataFrame, models: list[str], looks: dict, end: float
) -> None:
    """Draw the bars, dots and diamonds of one panel, whose axis ends at `end`."""
    step = WIDTH / len(looks)
    for place, (name, look) in enumerate(looks.items()):
        for at, model in enumerate(models):
            x = at + (place - (len(looks) - 1) / 2) * step
            seeds = values.loc[(values["series"] == name) & (values["panel"] == model), "value"]
            if len(seeds):
                axes.bar(x, seeds.mean(), step * 0.9, linewidth=0.8, **look.fill)
                spread = x + step * 0.5 * np.linspace(-0.5, 0.5, len(seeds) + 2)[1:-1]
                axes.plot(spread, seeds, "o", color=look.colour, markersize=2.5)
            for value in printed.loc[(printed["series"] == name) & (printed["panel"] == model), "value"]:
                # A number beyond the axis is an arrow at its end.
                marker, y = ("D", value) if value <= end else (CARETUP, end)
                axes.plot(x, y, marker=marker, color="black", markerfacecolor="white", markersize=3, clip_on=False)


def find_axis_end(panel: dict, values: pandas.DataFrame, printed: pandas.DataFrame) -> float:
    """Return the end of the axis: 105 for percentages, or 1.25 times the highest if all are below 20.

    CVs end above 90% of the values and above every seed: the paper has CVs, two of them misprints, far above the rest.
    """
    everything = pandas.concat([values["value"], printed["value"]]).astype(float)
    if panel["metric"] != "cv":
        highest = float(everything.max())
        return 1.25 * highest if 0 < highest < 20 else 105
    return max(1.6 * float(everything.quantile(0.9)), 1.05 * float(values["value"].max()))
