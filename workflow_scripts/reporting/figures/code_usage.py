"""How much the codes of each layer of CAT are used: a heat map, the most used codes first."""

import pandas
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.style import PAGE, make_figure, mark_not_run

COLOURS = "viridis"  # its lightness rises steadily: it can be read in grey
LEAST = 0.01  # percent


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a map for each entry of `runs`: layers downwards, the codes of a layer across, in parts of equal size.

    A cell is the percentage of tokens that use a code, the mean over the codes of its part and over seeds.
    """
    inputs.read_options()
    entries, table = inputs.display["runs"], inputs.read_table("usage")
    shown = [select_entry(table, entry).assign(panel=entry["panel"]) for entry in entries]
    figure = make_figure(PAGE, 1.1 * len(entries) + 0.5)
    grid = figure.subplots(len(entries), 1, squeeze=False)[:, 0]
    drawn, lowest = None, grid[-1]
    for axes, entry, mine in zip(grid, entries, shown, strict=True):
        axes.set_title(entry["panel"], loc="left")
        if mine.empty:
            mark_not_run(axes, inputs.scale)
            continue
        cells = mine.groupby(["layer", "part"])["share"].mean().unstack()
        norm, sides = LogNorm(LEAST, 100), (0, 100, len(cells) + 0.5, 0.5)
        drawn = axes.imshow(cells.clip(lower=LEAST), COLOURS, norm=norm, aspect="auto", extent=sides)
        axes.set_yticks(cells.index, [f"layer {layer}" for layer in cells.index])
        axes.set_xticks([])
        lowest = axes
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    lowest.set_xlabel("codes of the layer (%), the most used first")
    if drawn is not None:
        lowest.set_xticks(range(0, 101, 20))
        figure.colorbar(drawn, ax=list(grid), label="tokens that use a code (%)")
    return figure, pandas.concat(shown, ignore_index=True)
