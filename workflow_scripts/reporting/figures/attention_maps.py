"""Maps of the encoder's attention for sentences of one structure (figures 1, 5 and 8)."""

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from workflow_scripts.reporting.figures.inputs import Inputs, of_entry
from workflow_scripts.reporting.figures.style import PAGE, not_run

GAP = 0.6  # between the maps of a panel, in cells
COLOURS = "viridis"  # its lightness rises steadily: it can be read in grey


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """A row per entry of `runs` (its lowest seed), a panel per sentence; returns the figure and the plotted weights.

    options:
        sentences: which of the analysis' sentences to show; the first is the one that the others are compared with.
        highlight: a head is framed where its divergence from the first sentence, averaged over queries, is above this
            (nats). The paper framed maps by eye.
    """
    entries, sentences = inputs.display["runs"], inputs.options["sentences"]
    weights, by_head = inputs.table("attention"), inputs.table("kl_by_head")
    accuracies, divergences = inputs.scores("exact_match"), inputs.scores("attention_kl")
    figure = Figure(figsize=(PAGE, 0.4 + len(entries) * PAGE / len(sentences) * 0.92), layout="constrained")
    axes = figure.subplots(len(entries), len(sentences), squeeze=False)
    shown, image = [], None
    for entry, row in zip(entries, axes, strict=True):
        seeds = inputs.seeds(entry)
        row[0].set_ylabel(entry["panel"], fontweight="bold")
        for sentence, panel in zip(sentences, row, strict=True):
            panel.set_title(f"“{sentence}”")
            if not seeds:
                not_run(panel, inputs.scale)
                continue
            of_run = of_entry(weights, entry, seeds[0])
            table = of_run[of_run["sentence"] == sentence]
            image = draw_panel(panel, table, sentence)
            heads = of_entry(by_head, entry, seeds[0])
            frame_heads(panel, heads[heads["sentence"] == sentence], len(sentence.split()) + 1, inputs.options["highlight"])
            shown.append(table.assign(panel=entry["panel"]))
        if seeds:
            accuracy = of_entry(accuracies, entry, seeds[0])["value"].item()
            divergence = of_entry(divergences, entry, seeds[0])["value"].item()
            numbers = f"test accuracy {accuracy:.1f}%\nKL divergence {divergence:.2g} nats\nseed {seeds[0]}"
            row[0].set_ylabel(f"{entry['panel']}\n{numbers}")
    if image:
        bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.3, aspect=30, pad=0.02)
        bar.set_label("attention weight")
        bar.outline.set_linewidth(0.6)
    return figure, pandas.concat(shown, ignore_index=True) if shown else weights.head(0)


def draw_panel(axes: Axes, table: pandas.DataFrame, sentence: str) -> AxesImage:
    """Maps of all layers (downwards) and heads (across) of one run and sentence; queries downwards, keys across."""
    words = [*sentence.split(), "</s>"]
    layers, heads, size = table["layer"].max(), table["head"].max(), len(words)
    shape = (layers, heads, size, size)
    maps = table.sort_values(["layer", "head", "query", "key"])["weight"].to_numpy().reshape(shape)
    step = size + GAP
    for layer in range(layers):
        for head in range(heads):
            left, top = head * step, layer * step
            image = axes.imshow(
                maps[layer, head],
                COLOURS,
                vmin=0,
                vmax=1,
                extent=(left, left + size, top + size, top),
                interpolation="nearest",
            )
    axes.set(xlim=(-0.1, heads * step - GAP + 0.1), ylim=(layers * step - GAP + 0.1, -0.1), aspect="equal")
    positions = np.arange(size) + 0.5
    axes.set_xticks([head * step + at for head in range(heads) for at in positions], words * heads, rotation=90)
    axes.set_yticks([layer * step + at for layer in range(layers) for at in positions], words * layers)
    axes.tick_params(length=0, labelsize=5, pad=1)
    axes.spines[:].set_visible(False)
    return image


def frame_heads(axes: Axes, heads: pandas.DataFrame, size: int, above: float) -> None:
    """Frame the maps whose divergence is larger than `above`; `size` is the number of a map's rows."""
    for layer, head, divergence in heads[["layer", "head", "attention_kl"]].itertuples(index=False):
        if divergence > above:
            corner = ((head - 1) * (size + GAP), (layer - 1) * (size + GAP))
            axes.add_patch(Rectangle(corner, size, size, fill=False, edgecolor="#D55E00", linewidth=1.6, clip_on=False))
