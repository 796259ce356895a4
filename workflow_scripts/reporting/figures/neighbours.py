"""The words nearest to a word, the paper's next to ours, marked by syntactic class (table 5)."""

import pandas
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.word_lines import LEFT, RIGHT, WordLine, draw_word_lines

MODEL, WORDS = 0.75, 1.6  # inches at which the columns after the words start


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw, for each word, the paper's neighbours and those of each entry of `runs` (its seed of median test accuracy).

    A neighbour of another class (known for words of the training data) is grey and struck through. options:
    published: the cell of the published neighbours, with {word} for the word.
    """
    cell, table = inputs.read_options(published="")["published"], inputs.read_table("neighbours")
    of_class = dict(inputs.read_table("classes")[["word", "class"]].itertuples(index=False))
    rows, lines = [], []
    before, after = (part.split("/") for part in cell.split("{word}"))
    words = [
        key[1]
        for key in inputs.evidence.published
        if key[0] == before[0] and list(key[2:]) == after[1:]
    ]
    for word in words:
        printed = inputs.get_published(cell.format(word=word)).printed.split(", ")
        rows.append({"word": word, "model": "published", "seed": None, "neighbours": printed})
        for entry in inputs.display.runs:
            seed = inputs.find_median_seed(entry)
            found = select_entry(table, entry, seed)
            found = found[found["word"] == word].sort_values("rank")["neighbour"].tolist()
            rows.append({"word": word, "model": entry.panel, "seed": seed, "neighbours": found})
    for row in rows:
        own, others = of_class.get(row["word"]), row["neighbours"]
        known = [other for other in others if other in of_class and own is not None]
        row["same_class"] = sum(of_class[other] == own for other in known)
        row["classified"] = len(known)
        black = [other not in known or of_class[other] == own for other in others]
        none = f"not run at {inputs.scale}" if row["seed"] is None else "not in the training data"
        share = f"{row['same_class']} of {len(known)}" if known else "–"
        lines.append(WordLine(row["word"], row["model"], others, black, none, share))
    headings = {
        "word": (LEFT, "left"),
        "closest words": (WORDS, "left"),
        "own class": (RIGHT, "right"),
    }
    figure = draw_word_lines(lines, headings, MODEL, WORDS, strike=True)
    plotted = pandas.DataFrame(rows)
    return figure, plotted.assign(neighbours=plotted["neighbours"].str.join(", "))
