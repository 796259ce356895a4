"""The sememes of a word, next to those that its code attends to."""

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure_inputs import Inputs, select_entry
from workflow_scripts.reporting.figures.style import GREY
from workflow_scripts.reporting.figures.word_lines import LEFT, get_line_y, make_text_page, start_word, write_text

MODEL, SEMEMES = 0.8, 2.0  # inches at which the columns after the words start


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw, for each word, its sememes in HowNet, and those with the largest weights for each entry of `runs`.

    An entry shows its lowest seed, with shares in percent; the word's own sememes are black. options: words.
    """
    words = inputs.read_options(words=[])["words"]
    table, gold = inputs.read_table("words"), inputs.read_table("gold")
    lines = []
    for word in words:
        own = list(dict.fromkeys(gold.loc[gold["word"] == word, "sememe"]))
        lines.append({"word": word, "model": "HowNet", "seed": None, "sememes": own, "own": [True] * len(own)})
        for entry in inputs.display["runs"]:
            seed = min(inputs.list_seeds(entry), default=None)
            found = select_entry(table, entry, seed)
            found = found[found["word"] == word].sort_values("rank")
            shares = zip(found["sememe"], found["share"], strict=True)
            shown = [f"{name} {share:.0f}" if share > 0.5 else f"{name} <1" for name, share in shares]
            line = {"word": word, "model": entry["panel"], "seed": seed, "sememes": shown}
            lines.append(line | {"own": found["gold"].astype(bool).tolist()})
    figure, axes = make_text_page(len(lines))
    write_sememe_lines(axes, lines, inputs.scale)
    plotted = pandas.DataFrame(lines, columns=["word", "model", "seed", "sememes", "own"])
    return figure, plotted.assign(sememes=plotted["sememes"].str.join(", "), own=plotted["own"].map(sum))


def write_sememe_lines(axes: Axes, lines: list[dict], scale: str) -> None:
    """Write a heading and the lines; a sememe that is not the word's own is grey."""
    for x, heading in ((LEFT, "word"), (SEMEMES, "sememes (% of the weights)")):
        write_text(axes, x, 0, heading, fontweight="bold")
    for number, line in enumerate(lines, start=1):
        y = get_line_y(number)
        if line["model"] == "HowNet":
            start_word(axes, y, line["word"])
        write_text(axes, MODEL, y, line["model"], color=GREY)
        x = SEMEMES
        if not line["sememes"]:
            absent = "none" if line["seed"] is not None or line["model"] == "HowNet" else f"not run at {scale}"
            write_text(axes, x, y, absent, color=GREY, style="italic")
        for name, own in zip(line["sememes"], line["own"], strict=True):
            x = write_text(axes, x, y, name, color="black" if own else "0.5") + 0.07
