"""A figure that is a page of text: lines on words, several for each word."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.style import GREY, PAGE, make_figure

LINE = 0.135  # inches from line to line
LEFT = 0.05  # where the first column starts
RIGHT = PAGE - 0.1  # where the last one ends


@dataclass(frozen=True)
class WordLine:
    """A model's texts for a word, each black or grey.

    none: says why there are none. right: the text at the end of the line.
    """

    word: str
    model: str
    texts: list[str]
    black: list[bool]
    none: str
    right: str = ""


def make_text_page(lines: int) -> tuple[Figure, Axes]:
    """Make a figure for a heading and `lines` lines between two rules.

    Its axes are in inches, with the heading at 0.
    """
    figure = make_figure(PAGE, LINE * (lines + 3), layout=None)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, PAGE), ylim=(-LINE * (lines + 2), LINE))
    axes.set_axis_off()
    for y in (-0.05, -LINE * (lines + 0.9)):
        axes.plot([LEFT, RIGHT], [y, y], color="black", linewidth=0.8)
    return figure, axes


def get_line_y(number: int) -> float:
    """Return the position of line `number`, counted from 1."""
    return -LINE * (number + 0.3)


def write_text(axes: Axes, x: float, y: float, text: str, **look: Any) -> float:
    """Write text from x on; return its right end."""
    drawn = axes.text(x, y, text, va="baseline", fontsize=6.5, **look)
    return drawn.get_window_extent().x1 / axes.figure.dpi


def start_word(axes: Axes, y: float, word: str) -> None:
    """Write the word of this line and those below, with a thin rule above it."""
    axes.plot([LEFT, RIGHT], [y + 0.1] * 2, color="0.85", linewidth=0.5)
    write_text(axes, LEFT, y, word, fontweight="bold")


def draw_word_lines(
    lines: list[WordLine],
    headings: dict[str, tuple[float, str]],
    model_x: float,
    texts_x: float,
    strike: bool = False,
) -> Figure:
    """Draw the lines of each word below it.

    headings: their place and alignment. strike: strike grey texts out.
    """
    figure, axes = make_text_page(len(lines))
    for heading, (x, align) in headings.items():
        write_text(axes, x, 0, heading, fontweight="bold", ha=align)
    last_word = None
    for number, line in enumerate(lines, start=1):
        y = get_line_y(number)
        if line.word != last_word:
            start_word(axes, y, line.word)
        last_word = line.word
        write_text(axes, model_x, y, line.model, color=GREY)
        if not line.texts:
            write_text(axes, texts_x, y, line.none, color=GREY, style="italic")
        x = texts_x
        for text, black in zip(line.texts, line.black, strict=True):
            end = write_text(axes, x, y, text, color="black" if black else "0.5")
            if strike and not black:
                axes.plot([x, end], [y + 0.03] * 2, color="0.5", linewidth=0.5)
            x = end + 0.07
        write_text(axes, RIGHT, y, line.right, ha="right")
    return figure
