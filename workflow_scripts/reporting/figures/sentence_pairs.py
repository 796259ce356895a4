"""Pairs of sentences with one sequence of codes in the paper, and how our models treat them."""

import math
from dataclasses import dataclass

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.evaluation.published_numbers import Key
from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.options.sentence_pairs import Options
from workflow_scripts.reporting.figures.style import GREY
from workflow_scripts.reporting.figures.word_lines import (
    RIGHT,
    get_line_y,
    make_text_page,
    start_word,
    write_text,
)

# Inches: start of the sentences, and distance of the columns on the right.
SENTENCES = 0.35
COLUMN = 1.0
NOTHING = "–"


@dataclass(frozen=True)
class Pair:
    """The sentences of a pair, and in how many seeds our codes are one sequence."""

    number: str
    first: str
    second: str
    same_codes: str


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw two lines for each pair, with the agreement of each entry of `runs` on the right.

    Agreement is the percentage of (layer, head, query) that attend most to the same position in
    both sentences, the mean over seeds. The last column counts the runs in which our codes are
    one sequence, too. In the plotted data, `published` marks rows without a measurement.
    """
    display = options.published
    entries = inputs.display.runs
    table = inputs.read_table("pairs")
    numbers = [key.row for key in inputs.evidence.published if key.display == display]
    pairs = []
    rows = []
    for number in dict.fromkeys(numbers):
        first = inputs.get_published(Key(display, number, "Sentence 1", "sentence")).printed
        second = inputs.get_published(Key(display, number, "Sentence 2", "sentence")).printed
        of_pair = table.loc[table["pair"] == int(number)]
        with_codes = of_pair["same_codes"].dropna()  # of a model without codes there are none
        same_codes = NOTHING
        if len(with_codes):
            same_codes = f"{int(with_codes.sum())} of {len(with_codes)}"
        pairs.append(Pair(number, first, second, same_codes))
        for entry in entries:
            of_entry = select_entry(of_pair, entry)
            row = {"pair": number, "first": first, "second": second, "model": entry.panel}
            row |= {"agreement": of_entry["agreement"].mean(), "seeds": len(of_entry)}
            rows.append(row | {"same_codes": of_entry["same_codes"].sum(min_count=1)})
    plotted = pandas.DataFrame(rows)
    figure, axes = make_text_page(2 * len(pairs))
    requested = [entry.panel for entry in entries if inputs.list_seeds(entry)]
    write_sentence_pairs(axes, pairs, plotted, requested)
    return figure, plotted.assign(published=plotted["agreement"].isna())


def write_sentence_pairs(
    axes: Axes, pairs: list[Pair], plotted: pandas.DataFrame, requested: list[str]
) -> None:
    """Write the headings and the pairs.

    Two sentences of unequal length cannot be compared: they are grey.
    """
    models = list(dict.fromkeys(plotted["model"]))
    places = [RIGHT - COLUMN * (len(models) - number) for number in range(len(models) + 1)]
    write_text(axes, SENTENCES, 0, "sentences of a pair", fontweight="bold")
    for x, heading in zip(places, [*models, "one sequence"], strict=True):
        write_text(axes, x, 0, heading, fontweight="bold", ha="right")
    for place, pair in enumerate(pairs):
        above = get_line_y(2 * place + 1)
        below = get_line_y(2 * place + 2)
        start_word(axes, above, pair.number)
        colour = "black"
        if len(pair.first.split()) != len(pair.second.split()):
            colour = GREY
        write_text(axes, SENTENCES, above, pair.first, color=colour)
        write_text(axes, SENTENCES, below, pair.second, color=colour)
        of_pair = plotted.loc[plotted["pair"] == pair.number]
        shares = dict(zip(of_pair["model"], of_pair["agreement"], strict=True))
        for x, model in zip(places, models, strict=False):
            share = f"{shares[model]:.0f}%"
            if math.isnan(shares[model]):
                share = NOTHING if model in requested else "not run"
            write_text(axes, x, above, share, ha="right")
        write_text(axes, RIGHT, above, pair.same_codes, ha="right")
