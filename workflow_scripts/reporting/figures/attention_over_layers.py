"""Mean weights of fuse-attention: how much each layer reads of each earlier one (LRF)."""

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import RUN_COLUMNS, Inputs, select_entry
from workflow_scripts.reporting.figures.style import PAGE, make_figure, mark_not_run

SIDES = ("encoder", "decoder")
COLOURS = "viridis"  # its lightness rises steadily: it can be read in grey


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a map of the encoder and one of the decoder for each entry of `runs`: layers upwards, fused layers across.

    A cell is the weight in percent, the mean over positions, heads and seeds.
    """
    inputs.read_options()
    entries, table = inputs.display["runs"], inputs.read_table("mean_weights")
    means = table.groupby([*RUN_COLUMNS, "side", "layer", "fused_layer"], as_index=False)["weight"].mean()
    shown = []
    figure = make_figure(PAGE, 1.3 * len(entries) + 0.2)
    grid = figure.subplots(len(entries), len(SIDES), squeeze=False)
    for row, entry in zip(grid, entries, strict=True):
        mine = select_entry(means, entry)
        for axes, side in zip(row, SIDES, strict=True):
            axes.set_title(f"{entry['panel']}, {side}", loc="left")
            weights = mine[mine["side"] == side]
            if not inputs.list_seeds(entry):
                mark_not_run(axes, inputs.scale)
            elif weights.empty:
                axes.set_axis_off()
                axes.text(0.5, 0.5, "no fuse-attention", transform=axes.transAxes, ha="center", va="center")
            else:
                draw_layer_map(axes, weights)
                shown.append(weights.assign(panel=entry["panel"]))
    return figure, pandas.concat(shown, ignore_index=True) if shown else means.assign(panel="").head(0)


def draw_layer_map(axes: Axes, weights: pandas.DataFrame) -> None:
    """Draw one side of one variant; `weights` has a row per seed, layer and fused layer."""
    cells = weights.groupby(["layer", "fused_layer"])["weight"].mean().unstack()
    values = 100 * cells.to_numpy()
    axes.imshow(values, COLOURS, vmin=0, vmax=100, aspect="auto", origin="lower")
    for (y, x), value in np.ndenumerate(values):
        if value == value:
            axes.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=6, color="k" if value > 60 else "w")
    names = ["embedding" if name == 0 else f"layer {name}" for name in cells.columns]
    axes.set_xticks(range(len(names)), names, rotation=30 if len(names) > 4 else 0)
    axes.set_yticks(range(len(cells)), [f"layer {name}" for name in cells.index])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
