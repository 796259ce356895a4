"""The words nearest to a word, the paper's next to ours, marked by syntactic class (table 5)."""

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure_inputs import Inputs, select_entry
from workflow_scripts.reporting.figures.style import GREY
from workflow_scripts.reporting.figures.word_lines import (
    LEFT,
    RIGHT,
    get_line_y,
    make_text_page,
    start_word,
    write_text,
)

MODEL, WORDS = 0.75, 1.6  # inches at which the columns after the words start


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw, for each word, the paper's neighbours and those of each entry of `runs` (its seed of median test accuracy).

    options:
        space: tsne or embedding.
        published: the cell of the published neighbours, with {word} for the word.
    """
    options, table = inputs.read_options(space="tsne", published=""), inputs.read_table("neighbours")
    table = table[table["space"] == options["space"]]
    classes = inputs.read_table("classes")
    of_class = dict(zip(classes["word"], classes["class"], strict=True))
    lines = []
    for word in list_published_words(inputs, options["published"]):
        printed = inputs.get_published(options["published"].format(word=word)).printed.split(", ")
        lines.append({"word": word, "model": "published", "seed": None, "neighbours": printed})
        for entry in inputs.display["runs"]:
            seed = inputs.find_median_seed(entry)
            found = select_entry(table, entry, seed)
            found = found[found["word"] == word].sort_values("rank")["neighbour"].tolist()
            lines.append({"word": word, "model": entry["panel"], "seed": seed, "neighbours": found})
    for line in lines:
        known = [other for other in line["neighbours"] if other in of_class and line["word"] in of_class]
        line["same_class"] = sum(of_class[other] == of_class[line["word"]] for other in known)
        line["classified"] = len(known)
    figure, axes = make_text_page(len(lines))
    write_neighbours(axes, lines, of_class, inputs.scale)
    plotted = pandas.DataFrame(lines)
    return figure, plotted.assign(neighbours=plotted["neighbours"].str.join(", "))


def list_published_words(inputs: Inputs, cell: str) -> list[str]:
    """List the words whose neighbours the paper prints, in its order."""
    before, after = (part.split("/") for part in cell.split("{word}"))
    keys = [key for key in inputs.evidence.published if key[0] == before[0] and list(key[2:]) == after[1:]]
    return [key[1] for key in keys]


def write_neighbours(axes: Axes, lines: list[dict], of_class: dict[str, str], scale: str) -> None:
    """Write a heading and the lines; a neighbour of another class is grey and struck through.

    Classes are known for words of the training data only, of which generated data have few.
    """
    for x, heading, align in ((LEFT, "word", "left"), (WORDS, "closest words", "left"), (RIGHT, "own class", "right")):
        write_text(axes, x, 0, heading, fontweight="bold", ha=align)
    for number, line in enumerate(lines, start=1):
        y = get_line_y(number)
        if line["model"] == "published":
            start_word(axes, y, line["word"])
        write_text(axes, MODEL, y, line["model"], color=GREY)
        x = WORDS
        if not line["neighbours"]:
            reason = f"not run at {scale}" if line["seed"] is None else "not in the training data"
            write_text(axes, x, y, reason, color=GREY, style="italic")
        for word in line["neighbours"]:
            differs = {word, line["word"]} <= of_class.keys() and of_class[word] != of_class[line["word"]]
            end = write_text(axes, x, y, word, color="0.5" if differs else "black")
            if differs:
                axes.plot([x, end], [y + 0.03] * 2, color="0.5", linewidth=0.5)
            x = end + 0.07
        share = f"{line['same_class']} of {line['classified']}" if line["classified"] else "–"
        write_text(axes, RIGHT, y, share, ha="right")
