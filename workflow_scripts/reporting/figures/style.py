"""One look for all figures; colour-blind readers and grey prints tell its series apart."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import seaborn
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_atomically
from workflow_scripts.common.result_folders import FigureFiles

PAGE = 6.9  # width in inches
GREY = "0.45"
DOTS_PER_INCH = 200


@dataclass(frozen=True)
class Look:
    """How one series looks; each of the four tells it apart alone."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[int, ...]]  # matplotlib's name, or (offset, lengths of dashes)
    hatch: str

    @property
    def fill(self) -> dict[str, Any]:
        """Return the arguments that draw a bar."""
        return {
            "facecolor": to_rgba(self.colour, 0.3),
            "edgecolor": self.colour,
            "hatch": self.hatch,
        }


# The colours of Okabe and Ito (2008), ordered so that neighbours differ in lightness too.
LOOKS = (
    Look("#0072B2", "o", "-", ""),
    Look("#E69F00", "s", "--", "///"),
    Look("#009E73", "^", ":", "..."),
    Look("#CC79A7", "D", "-.", "xxx"),
    Look("#D55E00", "v", (0, (5, 1)), "\\\\\\"),
    Look("#56B4E9", "P", (0, (1, 1)), "+++"),
    Look("#000000", "X", (0, (3, 1, 1, 1)), "ooo"),
    Look("#F0E442", "*", (0, (8, 2)), "---"),
    Look("#999999", "h", (0, (2, 2)), "***"),
)


def choose_looks(names: Iterable[str]) -> dict[str, Look]:
    """Return a look for each name, in their order. Raises UserError for more names than looks."""
    distinct = list(dict.fromkeys(names))
    if len(distinct) > len(LOOKS):
        raise UserError(
            f"displays.yaml: a figure has {len(distinct)} series, and {len(LOOKS)} can be told "
            "apart; draw two figures"
        )
    return dict(zip(distinct, LOOKS, strict=False))


RC: dict[RcKeyType, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.dpi": DOTS_PER_INCH,
    "savefig.dpi": DOTS_PER_INCH,
    "svg.hashsalt": "recompose",  # else the ids in an SVG are drawn at random
    "svg.fonttype": "path",
}


@contextmanager
def use_style() -> Iterator[None]:
    """Draw in the style of the project inside this context."""
    with matplotlib.rc_context(), seaborn.axes_style("ticks"):
        matplotlib.rcParams.update(RC)
        yield


def make_figure(
    width: float, height: float, layout: Literal["constrained"] | None = "constrained"
) -> Figure:
    """Make an empty figure, in inches, whose texts can be measured before it is saved."""
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def add_legend_below(figure: Figure, handles: Sequence[Artist], columns: int) -> None:
    """Add a legend below all panels, in rows of `columns`; nothing without handles."""
    if handles:
        spacing = {"handletextpad": 0.4, "columnspacing": 1.2}
        figure.legend(handles=handles, loc="outside lower center", ncols=columns, **spacing)


def mark_not_run(axes: Axes, absence: str) -> None:
    """Mark a panel as empty, and say why."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, linestyle=(0, (4, 3)), color="0.7")
    axes.text(0.5, 0.5, absence, transform=axes.transAxes, ha="center", va="center", color=GREY)


def make_empty_figure(absence: str) -> Figure:
    """Make a figure of one empty panel that says why it is empty."""
    figure = make_figure(PAGE, 1.2)
    mark_not_run(figure.subplots(), absence)
    return figure


def save_figure(figure: Figure, files: FigureFiles, footer: str = "") -> None:
    """Write the figure as SVG and PNG, with a line of small print below it.

    The same figure gives the same bytes.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for legend in figure.legends:
        # A legend follows the lower edge, which the footer moves, so its position is fixed first.
        box = legend.get_window_extent().transformed(figure.transFigure.inverted())
        legend.set_loc("center")
        legend.set_bbox_to_anchor(box, figure.transFigure)
    figure.text(1, 0, footer, fontsize=6, color=GREY, ha="right", va="top")
    for file, metadata in (
        (files.svg, {"Date": None, "Creator": None}),
        (files.png, {"Software": None}),
    ):
        with write_atomically(file) as temporary:
            # Without a ground, a page can show an SVG in dark mode.
            transparent = file == files.svg
            figure.savefig(
                temporary,
                metadata=metadata,
                bbox_inches="tight",
                pad_inches=0.03,
                transparent=transparent,
            )
