"""t-SNE maps of source embeddings by syntactic class (figures 3, 4, 6 and 7).

Their labels do not overlap.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from workflow_scripts.reporting.figures import style
from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.options.embedding_maps import Options

END = "</s>"
DIRECTIONS = 16
RINGS = (2, 6, 11, 17, 24, 32, 41)  # gaps between point and label, in points
# keeps a label readable where a line crosses it
HALO = [withStroke(linewidth=1.5, foreground="white")]
DOT = {"markeredgecolor": "black", "markeredgewidth": 0.3, "linestyle": ""}  # in the legend
AIR = 0.6  # around a label, in points
LEADER_FROM = 11  # gaps from which a line joins the label to its point


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw one panel per entry of `runs`, its seed of median test accuracy."""
    entries = inputs.display.runs
    rows = math.ceil(len(entries) / options.columns)
    figure = style.make_figure(style.PAGE, rows * 2.9 + 0.45)
    axes = figure.subplots(rows, options.columns, squeeze=False).ravel()
    words = inputs.read_table("words")
    accuracies = inputs.select_accuracies()
    classes = [name for name in sorted(words["class"].unique()) if name != END]
    looks = style.choose_looks(classes)
    drawn_panels = []
    plotted = words.head(0)
    for number, (entry, panel) in enumerate(zip(entries, axes, strict=False)):
        title = f"({chr(ord('a') + number)}) {entry.panel}"
        seed = inputs.find_median_seed(entry)
        if seed is None:
            panel.set_title(title, loc="left")
            style.mark_not_run(panel, inputs.absence)
            continue
        accuracy = select_entry(accuracies, entry, seed)["value"].item()
        panel.set_title(
            f"{title}\naccuracy {accuracy:.1f}%, {inputs.describe_seed(entry)}", loc="left"
        )
        table = select_entry(words, entry, seed).assign(panel=entry.panel, accuracy=accuracy)
        draw_words(panel, table, looks, options.codes)
        drawn_panels.append((panel, table))
    for unused in axes[len(entries) :]:
        unused.set_axis_off()
    if drawn_panels:
        plotted = pandas.concat([table for _, table in drawn_panels], ignore_index=True)
        handles = make_handles(looks, set(plotted["class"]), options.codes)
        if len(axes) > len(entries):
            axes[-1].legend(handles=handles, loc="center", labelspacing=0.9)
        else:
            style.add_legend_below(figure, handles, 6)
    # Labels are placed in pixels: first let the layout come to rest.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for panel, table in drawn_panels:
        names = table["word"].tolist()
        labelled = [names.index(word) for word in options.label or names if word in names]
        marker = math.sqrt(get_marker_area(table))
        place_labels(panel, table[["x", "y"]].to_numpy(), names, labelled, marker)
    return figure, plotted


def get_marker_area(table: pandas.DataFrame) -> float:
    """Return square points; the many words of COGS get small markers."""
    if len(table) < 100:
        return 26
    return 9


def make_handles(looks: dict[str, style.Look], classes: set[str], codes: bool) -> list[Line2D]:
    """Make the legend of these classes, and with `codes` of their trees."""
    handles = []
    for name, look in looks.items():
        if name in classes:
            dot = Line2D([], [], marker=look.marker, color=look.colour, label=name, **DOT)
            handles.append(dot)
    if codes:
        handles.append(Line2D([], [], color="0.75", linewidth=0.9, label="words of one code"))
    return handles


def draw_words(
    axes: Axes, table: pandas.DataFrame, looks: dict[str, style.Look], codes: bool
) -> None:
    """Draw the words of one run, by class, `</s>` as a dot.

    With `codes`, a shortest tree joins the words of a code.
    """
    if codes:
        for _, members in table.dropna(subset=["code"]).groupby("code"):
            points = members[["x", "y"]].to_numpy()
            edges = minimum_spanning_tree(squareform(pdist(points))).tocoo()
            for start, end in zip(edges.row, edges.col, strict=True):
                axes.plot(*points[[start, end]].T, color="0.75", linewidth=0.9, zorder=0)
    for name, members in table.groupby("class"):
        look = looks.get(str(name), style.Look("black", ".", "", ""))
        shape = {
            "color": look.colour,
            "marker": look.marker,
            "edgecolors": "black",
            "linewidths": 0.3,
        }
        axes.scatter(members["x"], members["y"], get_marker_area(table), **shape, zorder=2)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.margins(0.1)


def list_positions(
    width: float, height: float, gaps: Sequence[float]
) -> Iterator[tuple[float, float, float]]:
    """Yield (x, y, gap), nearest first.

    x, y: the lower left corner, relative to the point, of a box that is `gap` away from it.
    """
    for gap in gaps:
        for step in range(DIRECTIONS):
            angle = 2 * math.pi * step / DIRECTIONS
            x = math.cos(angle)
            y = math.sin(angle)
            # The box touches a ring around the point with the corner or side that faces the point.
            yield (gap * x + (x - 1) / 2 * width, gap * y + (y - 1) / 2 * height, gap)


def _is_inside(inner: Bbox, outer: Bbox) -> bool:
    """Whether no part of a box is outside another one."""
    is_inside_across = outer.x0 <= inner.x0 and inner.x1 <= outer.x1
    is_inside_upwards = outer.y0 <= inner.y0 and inner.y1 <= outer.y1
    return is_inside_across and is_inside_upwards


def place_labels(
    axes: Axes, xy: np.ndarray, texts: Sequence[str], labelled: Sequence[int], marker: float = 4
) -> list[Annotation]:
    """Label the points `labelled` of xy [N, 2], earlier ones first.

    Labels without a free place are left out. Every point is kept free, for a marker of `marker`
    points across. The layout of the figure must be final.
    """
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    dot = axes.figure.dpi / 72
    frame = axes.get_window_extent()
    points = axes.transData.transform(xy)
    taken = [Bbox([point - marker / 2 * dot, point + marker / 2 * dot]) for point in points]
    look = {
        "fontsize": 6,
        "ha": "left",
        "va": "bottom",
        "path_effects": HALO,
        "textcoords": "offset points",
    }
    placed = []
    for index in labelled:
        label = axes.annotate(texts[index], xy[index], (0, 0), **look)
        width, height = np.array(label.get_window_extent().size) / dot
        for x, y, gap in list_positions(width, height, [marker / 2 + ring for ring in RINGS]):
            corner = points[index] + np.array([x, y]) * dot
            opposite = corner + np.array([width + AIR, height + AIR]) * dot
            box = Bbox([corner - AIR * dot, opposite])
            if _is_inside(box, frame) and not box.count_overlaps(taken):
                label.set_position((x, y))
                if gap >= LEADER_FROM:
                    ends = [points[index], np.clip(points[index], box.min, box.max)]
                    xs, ys = axes.transData.inverted().transform(ends).T
                    axes.plot(xs, ys, color="0.6", linewidth=0.4, zorder=1)
                taken.append(box)
                placed.append(label)
                break
        else:
            label.remove()
    return placed
