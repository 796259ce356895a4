"""Pairs of sentences with one sequence of codes in the paper, and how our models treat each pair (table 6)."""

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.style import GREY
from workflow_scripts.reporting.figures.word_lines import (
    RIGHT,
    get_line_y,
    make_text_page,
    start_word,
    write_text,
)

SENTENCES, COLUMN = (
    0.35,
    1.0,
)  # inches: start of the sentences, and distance of the columns on the right


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw two lines for each pair, with the agreement of each entry of `runs` on the right.

    Agreement is the share of heads that attend most to the same token in both sentences, the mean over seeds. The last
    column counts the seeds in which our codes are one sequence, too. options: published: the display whose rows 1, 2,
    ... have the two sentences of a pair. In the plotted data, `published` marks rows without a measurement.
    """
    display, entries = inputs.read_options(published="")["published"], inputs.display.runs
    table = inputs.read_table("pairs")
    pairs, plotted = {}, []
    for number in dict.fromkeys(key[1] for key in inputs.evidence.published if key[0] == display):
        sides = [
            inputs.get_published(f"{display}/{number}/Sentence {side}/sentence").printed
            for side in (1, 2)
        ]
        mine = table[table["pair"] == int(number)]
        by_seed = mine.dropna(subset="same_codes").groupby("seed")["same_codes"].first()
        pairs[number] = sides, f"{by_seed.sum()} of {len(by_seed)}" if len(by_seed) else "–"
        for entry in entries:
            share = select_entry(mine, entry)["agreement"].mean()
            line = {
                "pair": number,
                "first": sides[0],
                "second": sides[1],
                "model": entry.panel,
                "agreement": share,
            }
            plotted.append(
                line | {"seeds": len(select_entry(mine, entry)), "same_codes": by_seed.sum()}
            )
    shown = pandas.DataFrame(plotted)
    figure, axes = make_text_page(2 * len(pairs))
    write_sentence_pairs(
        axes, pairs, shown, [entry.panel for entry in entries if inputs.list_seeds(entry)]
    )
    return figure, shown.assign(published=shown["agreement"].isna())


def write_sentence_pairs(
    axes: Axes, pairs: dict[str, tuple], shown: pandas.DataFrame, run: list[str]
) -> None:
    """Write the headings and the pairs; two sentences of unequal length, which cannot be compared, are grey."""
    models = list(dict.fromkeys(shown["model"]))
    places = [RIGHT - COLUMN * (len(models) - number) for number in range(len(models) + 1)]
    write_text(axes, SENTENCES, 0, "sentences of a pair", fontweight="bold")
    for x, heading in zip(places, [*models, "one sequence"], strict=True):
        write_text(axes, x, 0, heading, fontweight="bold", ha="right")
    for place, (number, (sides, same)) in enumerate(pairs.items()):
        above = get_line_y(2 * place + 1)
        start_word(axes, above, number)
        unequal = len(sides[0].split()) != len(sides[1].split())
        for y, text in zip((above, get_line_y(2 * place + 2)), sides, strict=True):
            write_text(axes, SENTENCES, y, text, color=GREY if unequal else "black")
        shares = shown[shown["pair"] == number].set_index("model")["agreement"]
        for x, model in zip(places, models, strict=False):
            absent = "–" if model in run else "not run"
            write_text(
                axes,
                x,
                above,
                absent if shares.isna()[model] else f"{shares[model]:.0f}%",
                ha="right",
            )
        write_text(axes, RIGHT, above, same, ha="right")
