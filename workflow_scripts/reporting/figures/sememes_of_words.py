"""The sememes of a word, next to those that its code attends to."""

import pandas
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.word_lines import LEFT, WordLine, draw_word_lines

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
        lines.append(
            {
                "word": word,
                "model": "HowNet",
                "seed": None,
                "sememes": own,
                "own": [True] * len(own),
            }
        )
        for entry in inputs.display.runs:
            seed = min(inputs.list_seeds(entry), default=None)
            found = select_entry(table, entry, seed)
            found = found[found["word"] == word].sort_values("rank")
            shares = zip(found["sememe"], found["share"], strict=True)
            texts = [
                f"{name} {share:.0f}" if share > 0.5 else f"{name} <1" for name, share in shares
            ]
            line = {"word": word, "model": entry.panel, "seed": seed, "sememes": texts}
            lines.append(line | {"own": found["gold"].astype(bool).tolist()})
    plotted = pandas.DataFrame(lines, columns=["word", "model", "seed", "sememes", "own"])
    shown = []
    for word, model, seed, sememes, own in plotted.itertuples(index=False):
        none = f"not run at {inputs.scale}" if pandas.isna(seed) and model != "HowNet" else "none"
        shown.append(WordLine(word, model, sememes, own, none))
    headings = {"word": (LEFT, "left"), "sememes (% of the weights)": (SEMEMES, "left")}
    figure = draw_word_lines(shown, headings, MODEL, SEMEMES)
    return figure, plotted.assign(
        sememes=plotted["sememes"].str.join(", "), own=plotted["own"].map(sum)
    )
