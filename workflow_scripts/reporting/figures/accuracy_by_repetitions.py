"""Accuracy by the number of copies of each lone primitive in the training set (figure 4 in numbers)."""

import re

import numpy as np
import pandas
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWNBASE

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.style import COLUMN, GREY, LOOKS, add_legend_below, make_figure

SEEDS, PUBLISHED, BOUND = "seeds and mean", "published", "published upper bound"


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a bar (mean) and a dot per seed for each entry of `runs`, and the published number that it names."""
    entries, accuracy, rows = inputs.display["runs"], inputs.select_accuracies(), []
    figure = make_figure(COLUMN, 2.5)
    axes = figure.subplots()
    for number, entry in enumerate(entries):
        values = select_entry(accuracy, entry)
        rows.append(values.assign(panel=entry["panel"], published=False))
        if values.empty:
            axes.text(number, 50, f"not run at {inputs.scale}", ha="center", va="center", color=GREY, rotation=90)
        else:
            axes.bar(number, values["value"].mean(), 0.6, **LOOKS[0].fill)
            spread = number + 0.1 * (np.arange(len(values)) - (len(values) - 1) / 2)
            axes.plot(spread, values["value"], "o", color=LOOKS[0].colour, markersize=3.5, clip_on=False, label=SEEDS)
        if "published" in entry:
            printed = inputs.get_published(entry["published"])
            rows.append(pandas.DataFrame([{"panel": entry["panel"], "value": printed.value, "published": True}]))
            bound = re.search(r"< ([\d.]+)%", printed.printed)
            if printed.value is not None:
                axes.plot(number, printed.value, "D", color="black", markerfacecolor="white", label=PUBLISHED)
            elif bound:
                look = {"linestyle": "", "marker": CARETDOWNBASE, "markersize": 6, "color": "black"}
                axes.plot(number, float(bound[1]), **look, label=BOUND)
    axes.set_xticks(range(len(entries)), [entry["panel"] for entry in entries])
    axes.set(xlim=(-0.5, len(entries) - 0.5), ylim=(0, 105), ylabel="test accuracy (%)")
    axes.set_xlabel("copies of each lone primitive, $n_a$")
    found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    add_legend_below(figure, [found[name] for name in (SEEDS, PUBLISHED, BOUND) if name in found], 3)
    return figure, pandas.concat(rows, ignore_index=True)
