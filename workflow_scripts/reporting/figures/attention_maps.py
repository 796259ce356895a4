"""Maps of the encoder's attention for sentences of one structure (figures 1, 5 and 8)."""

import numpy as np
import pandas
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.style import PAGE, make_figure, mark_not_run

GAP = 0.6  # between the maps of a panel, in cells
FRAME = {"fill": False, "edgecolor": "#D55E00", "linewidth": 1.4, "clip_on": False}
COLOURS = colormaps["viridis"]  # its lightness rises steadily: it can be read in grey
# Inches: above a panel for its titles, left of it and below it for words, the colour bar below all, an empty panel.
TITLES, LEFT, BELOW, BAR, EMPTY = 0.42, 0.42, 0.42, 0.5, 0.4


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a row per entry of `runs` (its seed of median test accuracy), a panel per sentence.

    options: sentences: those to show; highlight: frame a head if its divergence from the first sentence,
    averaged over queries, is larger (nats).
    """
    entries, options = inputs.display.runs, inputs.read_options(sentences=[], highlight=0.1)
    sentences = options["sentences"]
    weights, by_head = inputs.read_table("attention"), inputs.read_table("kl_by_head")
    accuracies, divergences = (
        inputs.select_accuracies(),
        inputs.select_analysis_scores("attention_kl"),
    )
    width = PAGE / len(sentences) - LEFT - 0.05
    step = len(_split_tokens(sentences[0])) + GAP
    rows = []
    for entry in entries:
        table, height, gap = None, EMPTY, 0.15
        if (seed := inputs.find_median_seed(entry)) is not None:
            table, gap = select_entry(weights, entry, seed), BELOW
            height = (
                width * (table["layer"].max() * step - GAP) / (table["head"].max() * step - GAP)
            )
        rows.append((entry, seed, table, height, gap))
    total = sum(TITLES + height + gap for _, _, _, height, gap in rows) + BAR
    figure = make_figure(PAGE, total, layout=None)
    shown, top = [], total
    for entry, seed, table, height, gap in rows:
        title = entry.panel
        if seed is not None:
            accuracy = select_entry(accuracies, entry, seed)["value"].item()
            divergence = select_entry(divergences, entry, seed)["value"].item()
            title += f": test accuracy {accuracy:.1f}%, KL divergence {divergence:.2g} nats"
            title += f" ({inputs.describe_seed(entry)})"
        figure.text(LEFT / PAGE, (top - 0.14) / total, title, fontweight="bold")
        top -= TITLES + height
        for number, sentence in enumerate(sentences):
            left = number * PAGE / len(sentences) + LEFT
            panel = figure.add_axes((left / PAGE, top / total, width / PAGE, height / total))
            panel.set_title(f"“{sentence}”", pad=3)
            if seed is None:
                mark_not_run(panel, inputs.scale)
                continue
            draw_head_maps(panel, table[table["sentence"] == sentence], sentence)
            heads = select_entry(by_head, entry, seed)
            heads = heads[
                (heads["sentence"] == sentence) & (heads["attention_kl"] > options["highlight"])
            ]
            size = len(_split_tokens(sentence))
            for place in heads[["head", "layer"]].to_numpy():
                panel.add_patch(Rectangle((place - 1) * (size + GAP), size, size, **FRAME))
            shown.append(table[table["sentence"] == sentence].assign(panel=entry.panel))
        top -= gap
    bar = figure.add_axes((0.35, 0.34 / total, 0.3, 0.08 / total))
    figure.colorbar(
        ScalarMappable(cmap=COLOURS), cax=bar, orientation="horizontal", label="attention weight"
    )
    bar.tick_params(labelsize=6, pad=1)
    return figure, pandas.concat(shown, ignore_index=True) if shown else weights.head(0)


def _split_tokens(sentence: str) -> list[str]:
    return [*sentence.split(), "</s>"]


def draw_head_maps(axes: Axes, table: pandas.DataFrame, sentence: str) -> None:
    """Draw all layers (downwards) and heads (across) of one run and sentence; queries downwards, keys across."""
    words = _split_tokens(sentence)
    layers, heads, size = table["layer"].max(), table["head"].max(), len(words)
    maps = table.sort_values(["layer", "head", "query", "key"])["weight"].to_numpy()
    maps = maps.reshape(layers, heads, size, size)
    step = size + GAP
    for layer, head in np.ndindex(layers, heads):
        left, top = head * step, layer * step
        extent = (left, left + size, top + size, top)
        axes.imshow(
            maps[layer, head], COLOURS, vmin=0, vmax=1, extent=extent, interpolation="nearest"
        )
    axes.set(xlim=(0, heads * step - GAP), ylim=(layers * step - GAP, 0), aspect="auto")
    positions = np.arange(size) + 0.5
    axes.set_xticks(
        [head * step + at for head in range(heads) for at in positions], words * heads, rotation=90
    )
    axes.set_yticks(
        [layer * step + at for layer in range(layers) for at in positions], words * layers
    )
    axes.tick_params(length=0, labelsize=5, pad=2)
    axes.spines[:].set_visible(False)
