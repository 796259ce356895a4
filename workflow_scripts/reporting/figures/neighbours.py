"""The words nearest to a word, the paper's next to ours, marked by syntactic class (table 5)."""

import pandas
from matplotlib.figure import Figure

from workflow_scripts.evaluation.published_numbers import Key
from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.options.neighbours import Options
from workflow_scripts.reporting.figures.word_lines import LEFT, RIGHT, WordLine, draw_word_lines

# Inches at which the columns after the words start.
MODEL = 0.75
WORDS = 1.6


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw, for each word, the paper's neighbours and those of each entry of `runs`.

    An entry shows its seed of median test accuracy. A neighbour of another class (known for words
    of the training data) is grey and struck through.
    """
    table = inputs.read_table("neighbours")
    class_of = dict(inputs.read_table("classes")[["word", "class"]].itertuples(index=False))
    rows = []
    for key in list_published_cells(inputs, options.published):
        word = key.row
        printed = inputs.get_published(key).printed.split(", ")
        rows.append({"word": word, "model": "published", "seed": None, "neighbours": printed})
        for entry in inputs.display.runs:
            seed = inputs.find_median_seed(entry)
            of_seed = select_entry(table, entry, seed)
            of_word = of_seed.loc[of_seed["word"] == word].sort_values(by="rank")
            nearest = of_word["neighbour"].tolist()
            rows.append({"word": word, "model": entry.panel, "seed": seed, "neighbours": nearest})
    lines = []
    for row in rows:
        own = class_of.get(row["word"])
        nearest = row["neighbours"]
        classified = []
        if own is not None:
            classified = [other for other in nearest if other in class_of]
        row["same_class"] = sum(class_of[other] == own for other in classified)
        row["classified"] = len(classified)
        black = [other not in classified or class_of[other] == own for other in nearest]
        none = "not in the training data"
        if row["seed"] is None:
            none = inputs.absence
        share = "–"
        if classified:
            share = f"{row['same_class']} of {len(classified)}"
        lines.append(WordLine(row["word"], row["model"], nearest, black, none, share))
    headings = {
        "word": (LEFT, "left"),
        "closest words": (WORDS, "left"),
        "own class": (RIGHT, "right"),
    }
    figure = draw_word_lines(lines, headings, MODEL, WORDS, strike=True)
    plotted = pandas.DataFrame(rows)
    return figure, plotted.assign(neighbours=plotted["neighbours"].str.join(", "))


def list_published_cells(inputs: Inputs, cell: str) -> list[Key]:
    """List the published cells `<display>/{word}/<column>/<metric>`, one for each word."""
    display, _, column, metric = cell.split("/")
    return [
        key for key in inputs.evidence.published if key == Key(display, key.row, column, metric)
    ]
