"""Labels of points in a scatter plot that overlap neither each other nor a point."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation

DIRECTIONS = 16
RINGS = (2, 6, 11, 17, 24, 32, 41)  # gaps between point and label, in points
HALO = [withStroke(linewidth=1.5, foreground="white")]  # keeps a label readable where a line crosses it
AIR = 0.6  # around a label, in points
LEADER_FROM = 11  # gaps from which a line joins the label to its point


def list_positions(width: float, height: float, gaps: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    """Yield (x, y, gap): lower left corners, relative to the point, of boxes `gap` away from it, nearest first."""
    for gap in gaps:
        for step in range(DIRECTIONS):
            angle = 2 * math.pi * step / DIRECTIONS
            x, y = math.cos(angle), math.sin(angle)
            # The box touches a ring around the point with the corner or side that faces the point.
            yield (gap * x + (x - 1) / 2 * width, gap * y + (y - 1) / 2 * height, gap)


def is_free(box: np.ndarray, boxes: np.ndarray) -> bool:
    """Whether `box` [4] (left, bottom, right, top) meets none of `boxes` [N, 4]."""
    left, bottom, right, top = box
    return not ((boxes[:, 0] < right) & (boxes[:, 2] > left) & (boxes[:, 1] < top) & (boxes[:, 3] > bottom)).any()


def place_labels(
    axes: Axes, xy: np.ndarray, texts: Sequence[str], labelled: Sequence[int], marker: float = 4, size: float = 6
) -> list[Annotation]:
    """Label the points `labelled` of xy [N, 2], in that order: earlier ones get the better places.

    A label that finds no free place within the rings is left out. Every point is kept free, for a marker of `marker`
    points across. The layout of the figure must be final; the limits of the axes stay as they are.
    """
    figure = axes.figure
    renderer = figure.canvas.get_renderer()
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    dot = figure.dpi / 72
    points = axes.transData.transform(xy)
    taken = np.concatenate([points - marker / 2 * dot, points + marker / 2 * dot], axis=1)
    frame = axes.get_window_extent(renderer)
    placed = []
    for index in labelled:
        look = {"fontsize": size, "ha": "left", "va": "bottom", "path_effects": HALO}
        label = axes.annotate(texts[index], xy[index], (0, 0), textcoords="offset points", **look)
        extent = label.get_window_extent(renderer)
        width, height = extent.width / dot, extent.height / dot
        for x, y, gap in list_positions(width, height, [marker / 2 + ring for ring in RINGS]):
            corner = points[index] + np.array([x, y]) * dot
            box = np.concatenate([corner - AIR * dot, corner + (np.array([width, height]) + AIR) * dot])
            if (box[:2] >= frame.min).all() and (box[2:] <= frame.max).all() and is_free(box, taken):
                label.set_position((x, y))
                far = gap >= LEADER_FROM
                break
        else:
            label.remove()
            continue
        if far:
            nearest = np.clip(points[index], box[:2], box[2:])
            ends = axes.transData.inverted().transform([points[index], nearest])
            axes.plot(*ends.T, color="0.6", linewidth=0.4, zorder=1)
        taken = np.vstack([taken, box])
        placed.append(label)
    return placed
