"""Maps of the encoder's attention for sentences of one structure (figures 1, 5 and 8)."""

from dataclasses import dataclass

import numpy as np
import pandas
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from workflow_scripts.config.display_schema import Runs
from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.options.attention_maps import Options
from workflow_scripts.reporting.figures.style import PAGE, make_figure, mark_not_run

GAP = 0.6  # between the maps of a panel, in cells
FRAME = {"fill": False, "edgecolor": "#D55E00", "linewidth": 1.4, "clip_on": False}
COLOURS = colormaps["viridis"]  # its lightness rises steadily: it can be read in grey
# Inches: above a panel for its titles, left of it and below it for words, the colour bar below all,
# an empty panel.
TITLES = 0.42
LEFT = 0.42
BELOW = 0.42
BAR = 0.5
EMPTY = 0.4


@dataclass(frozen=True)
class RowOfMaps:
    """A row of maps: the attention weights of one seed of an entry, without one nothing.

    height: of its panels, and gap: below them, in inches.
    """

    entry: Runs
    seed: int | None = None
    weights: pandas.DataFrame | None = None
    height: float = EMPTY
    gap: float = 0.15


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw a row per entry of `runs` (its seed of median test accuracy), a panel per sentence."""
    sentences = options.sentences
    weights = inputs.read_table("attention")
    by_head = inputs.read_table("kl_by_head")
    width = PAGE / len(sentences) - LEFT - 0.05
    rows = [
        make_maps_of_run(inputs, entry, weights, sentences[0], width)
        for entry in inputs.display.runs
    ]
    total = sum(TITLES + row.height + row.gap for row in rows) + BAR
    figure = make_figure(PAGE, total, layout=None)
    plotted = []
    top = total
    for row in rows:
        title = describe_row(inputs, row)
        figure.text(LEFT / PAGE, (top - 0.14) / total, title, fontweight="bold")
        top -= TITLES + row.height
        for number, sentence in enumerate(sentences):
            left = number * PAGE / len(sentences) + LEFT
            place = (left / PAGE, top / total, width / PAGE, row.height / total)
            panel = figure.add_axes(place)
            panel.set_title(f"“{sentence}”", pad=3)
            if row.weights is None:
                mark_not_run(panel, inputs.absence)
                continue
            of_sentence = row.weights.loc[row.weights["sentence"] == sentence]
            draw_head_maps(panel, of_sentence, sentence)
            heads = select_entry(by_head, row.entry, row.seed)
            heads = heads.loc[heads["sentence"] == sentence]
            mark_heads(panel, heads.loc[heads["attention_kl"] > options.highlight], sentence)
            plotted.append(of_sentence.assign(panel=row.entry.panel))
        top -= row.gap
    bar = figure.add_axes((0.35, 0.34 / total, 0.3, 0.08 / total))
    figure.colorbar(
        ScalarMappable(cmap=COLOURS), cax=bar, orientation="horizontal", label="attention weight"
    )
    bar.tick_params(labelsize=6, pad=1)
    if not plotted:
        return figure, weights.head(0)
    return figure, pandas.concat(plotted, ignore_index=True)


def make_maps_of_run(
    inputs: Inputs, entry: Runs, weights: pandas.DataFrame, sentence: str, width: float
) -> RowOfMaps:
    """Make the row of an entry, with panels of `width` inches: its seed of median test accuracy."""
    seed = inputs.find_median_seed(entry)
    if seed is None:
        return RowOfMaps(entry)
    of_seed = select_entry(weights, entry, seed)
    step = len(_split_tokens(sentence)) + GAP
    cells_down = int(np.max(of_seed["layer"])) * step - GAP
    cells_across = int(np.max(of_seed["head"])) * step - GAP
    height = width * cells_down / cells_across
    return RowOfMaps(entry, seed, of_seed, height, gap=BELOW)


def describe_row(inputs: Inputs, row: RowOfMaps) -> str:
    """Return the title of a row: its entry, and what was measured of its seed."""
    if row.seed is None:
        return row.entry.panel
    accuracies = select_entry(inputs.select_accuracies(), row.entry, row.seed)
    divergences = inputs.select_analysis_scores("attention_kl")
    divergences = select_entry(divergences, row.entry, row.seed)
    accuracy = f"test accuracy {accuracies['value'].item():.1f}%"
    divergence = f"KL divergence {divergences['value'].item():.2g} nats"
    return f"{row.entry.panel}: {accuracy}, {divergence} ({inputs.describe_seed(row.entry)})"


def mark_heads(panel: Axes, heads: pandas.DataFrame, sentence: str) -> None:
    """Draw a frame around the maps of these heads."""
    size = len(_split_tokens(sentence))
    for place in heads[["head", "layer"]].to_numpy():
        corner = (place - 1) * (size + GAP)
        panel.add_patch(Rectangle(corner, size, size, **FRAME))


def _split_tokens(sentence: str) -> list[str]:
    return [*sentence.split(), "</s>"]


def draw_head_maps(axes: Axes, table: pandas.DataFrame, sentence: str) -> None:
    """Draw all layers (downwards) and heads (across) of one run and sentence.

    In a map, queries are downwards and keys across.
    """
    words = _split_tokens(sentence)
    size = len(words)
    layers = int(np.max(table["layer"]))
    heads = int(np.max(table["head"]))
    maps = table.sort_values(["layer", "head", "query", "key"])["weight"].to_numpy()
    maps = maps.reshape(layers, heads, size, size)
    step = size + GAP
    for layer, head in np.ndindex(layers, heads):
        left = head * step
        top = layer * step
        extent = (left, left + size, top + size, top)
        weights = maps[layer, head]
        axes.imshow(weights, COLOURS, vmin=0, vmax=1, extent=extent, interpolation="nearest")
    axes.set(xlim=(0, heads * step - GAP), ylim=(layers * step - GAP, 0), aspect="auto")
    middles = np.arange(size) + 0.5
    across = np.concatenate([head * step + middles for head in range(heads)])
    downwards = np.concatenate([layer * step + middles for layer in range(layers)])
    axes.set_xticks(across, words * heads, rotation=90)
    axes.set_yticks(downwards, words * layers)
    axes.tick_params(length=0, labelsize=5, pad=2)
    axes.spines[:].set_visible(False)
