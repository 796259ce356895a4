"""t-SNE maps of source embeddings by syntactic class (figures 3, 4, 6 and 7)."""

import math

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from workflow_scripts.reporting.figures.inputs import Inputs, of_entry
from workflow_scripts.reporting.figures.labels import place_labels
from workflow_scripts.reporting.figures.style import LOOKS, PAGE, not_run

END = "</s>"


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """One panel per entry of `runs`, showing its lowest seed; returns the figure and the plotted words.

    options:
        label: words to label, the most important first (default: all). A label without a free place is left out.
        columns: panels side by side.
        height: of a panel, in inches.
        codes: join the words of one code by a thin tree (default true).
    """
    panels, options = inputs.display["runs"], inputs.options
    columns = options.get("columns", min(len(panels), 2))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(PAGE, rows * options.get("height", 2.9) + 0.45), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    words, accuracies, shown = inputs.table("words"), inputs.scores("exact_match"), []
    classes = [name for name in dict.fromkeys(words["class"].sort_values()) if name != END]
    looks = {name: LOOKS[index] for index, name in enumerate(classes)}
    for number, (entry, panel) in enumerate(zip(panels, axes, strict=False)):
        title = f"({chr(ord('a') + number)}) {entry['panel']}"
        seeds = inputs.seeds(entry)
        if not seeds:
            panel.set_title(title, loc="left")
            not_run(panel, inputs.scale)
            continue
        accuracy = of_entry(accuracies, entry, seeds[0])["value"].item()
        panel.set_title(f"{title}\naccuracy {accuracy:.1f}%, seed {seeds[0]}", loc="left")
        shown.append(of_entry(words, entry, seeds[0]).assign(panel=entry["panel"], accuracy=accuracy))
        draw_points(panel, shown[-1], looks, options.get("codes", True))
    present = {name for table in shown for name in table["class"]}
    add_legend(figure, {name: look for name, look in looks.items() if name in present}, options.get("codes", True))
    # Labels are placed in pixels: first let the layout come to rest.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for panel, table in zip([a for a in axes if a.collections], shown, strict=True):
        order = {word: rank for rank, word in enumerate(options.get("label", table["word"]))}
        chosen = sorted((order[word], row) for row, word in enumerate(table["word"]) if word in order)
        many = len(table) > 100
        place_labels(
            panel, table[["x", "y"]].to_numpy(), table["word"].tolist(), [row for _, row in chosen], 2.5 if many else 5
        )
    return figure, pandas.concat(shown, ignore_index=True) if shown else words.head(0)


def draw_points(axes: Axes, table: pandas.DataFrame, looks: dict, codes: bool) -> None:
    """The words of one run, by class; `</s>` is a small black dot."""
    size = 9 if len(table) > 100 else 26
    if codes:
        for _, members in table.dropna(subset="code").groupby("code"):
            for ends in tree(members[["x", "y"]].to_numpy()):
                axes.plot(*ends.T, color="0.75", linewidth=0.5 if len(table) > 100 else 0.9, zorder=0)
    for name, members in table.groupby("class"):
        look = looks.get(name)
        colour, marker = (look.colour, look.marker) if look else ("black", ".")
        axes.scatter(members["x"], members["y"], size, colour, marker, edgecolors="black", linewidths=0.3, zorder=2)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.1)


def tree(points: np.ndarray) -> list[np.ndarray]:
    """Edges [2, 2] (from, to) of the shortest tree that joins points [N, 2]."""
    edges = minimum_spanning_tree(squareform(pdist(points))).tocoo()
    return [points[[start, end]] for start, end in zip(edges.row, edges.col, strict=True)]


def add_legend(figure: Figure, looks: dict, codes: bool) -> None:
    """Classes and the sign for codes, below the panels."""
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=look.marker,
            color=look.colour,
            markeredgecolor="black",
            markeredgewidth=0.3,
            label=name,
        )
        for name, look in looks.items()
    ]
    if codes:
        handles.append(Line2D([], [], color="0.75", linewidth=0.9, label="words of one code"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 6), handletextpad=0.3, columnspacing=1.2
    )
