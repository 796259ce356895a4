"""t-SNE maps of source embeddings by syntactic class (figures 3, 4, 6 and 7)."""

import math

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from workflow_scripts.reporting.figures.figure_inputs import Inputs, select_entry
from workflow_scripts.reporting.figures.labels import place_labels
from workflow_scripts.reporting.figures.style import (
    DOTS,
    LOOKS,
    PAGE,
    Look,
    add_legend_below,
    make_figure,
    make_markers,
    mark_not_run,
)

END = "</s>"


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw one panel per entry of `runs`, its seed of median test accuracy.

    options:
        label: words to label, the most important first (all of them). A label without a free place is left out.
        columns: panels next to each other (2).
        codes: join the words of one code by a thin tree (true).
    """
    entries, options = inputs.display["runs"], inputs.read_options(label=None, columns=2, codes=True)
    columns = options["columns"]
    rows = math.ceil(len(entries) / columns)
    figure = make_figure(PAGE, rows * 2.9 + 0.45)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    words, accuracies = inputs.read_table("words"), inputs.select_accuracies()
    classes = [name for name in sorted(words["class"].unique()) if name != END]
    looks = dict(zip(classes, LOOKS, strict=False))
    shown = []
    for number, (entry, panel) in enumerate(zip(entries, axes, strict=False)):
        title = f"({chr(ord('a') + number)}) {entry['panel']}"
        seed = inputs.find_median_seed(entry)
        if seed is None:
            panel.set_title(title, loc="left")
            mark_not_run(panel, inputs.scale)
            continue
        accuracy = select_entry(accuracies, entry, seed)["value"].item()
        panel.set_title(f"{title}\naccuracy {accuracy:.1f}%, {inputs.describe_seed(entry)}", loc="left")
        table = select_entry(words, entry, seed).assign(panel=entry["panel"], accuracy=accuracy)
        draw_words(panel, table, looks, options["codes"])
        shown.append((panel, table))
    for unused in axes[len(entries) :]:
        unused.set_axis_off()
    if shown:
        present = {name for _, table in shown for name in table["class"]}
        handles = make_markers({name: look for name, look in looks.items() if name in present}, **DOTS)
        if options["codes"]:
            handles.append(Line2D([], [], color="0.75", linewidth=0.9, label="words of one code"))
        if len(axes) > len(entries):
            axes[-1].legend(handles=handles, loc="center", labelspacing=0.9)
        else:
            add_legend_below(figure, handles, 6)
    # Labels are placed in pixels: first let the layout come to rest.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for panel, table in shown:
        names = table["word"].tolist()
        chosen = [names.index(word) for word in options["label"] or names if word in names]
        place_labels(panel, table[["x", "y"]].to_numpy(), names, chosen, math.sqrt(get_marker_area(table)))
    return figure, pandas.concat([table for _, table in shown], ignore_index=True) if shown else words.head(0)


def get_marker_area(table: pandas.DataFrame) -> float:
    """Return square points; the many words of COGS get small markers."""
    return 26 if len(table) < 100 else 9


def draw_words(axes: Axes, table: pandas.DataFrame, looks: dict[str, Look], codes: bool) -> None:
    """Draw the words of one run, by class, `</s>` as a dot; with `codes` the words of a code as a shortest tree."""
    if codes:
        for _, members in table.dropna(subset="code").groupby("code"):
            points = members[["x", "y"]].to_numpy()
            edges = minimum_spanning_tree(squareform(pdist(points))).tocoo()
            for start, end in zip(edges.row, edges.col, strict=True):
                axes.plot(*points[[start, end]].T, color="0.75", linewidth=0.9, zorder=0)
    for name, members in table.groupby("class"):
        look = looks.get(name, Look("black", ".", "", ""))
        style = {"color": look.colour, "marker": look.marker, "edgecolors": "black", "linewidths": 0.3}
        axes.scatter(members["x"], members["y"], get_marker_area(table), **style, zorder=2)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.margins(0.1)
