"""The sememes of a word, next to those that its code attends to."""

import pandas
from matplotlib.figure import Figure

from workflow_scripts.reporting.figures.figure import Inputs, select_entry
from workflow_scripts.reporting.figures.options.sememes_of_words import Options
from workflow_scripts.reporting.figures.word_lines import LEFT, WordLine, draw_word_lines

# Inches at which the columns after the words start.
MODEL = 0.8
SEMEMES = 2.0
GOLD = "HowNet"


def draw(inputs: Inputs, options: Options) -> tuple[Figure, pandas.DataFrame]:
    """Draw, for each word, its sememes in HowNet, and those with the largest weights of models.

    Each entry of `runs` shows its lowest seed, with shares in percent; the word's own sememes are
    black.
    """
    table = inputs.read_table("words")
    gold = inputs.read_table("gold")
    lines = []
    for word in options.words:
        own = list(dict.fromkeys(gold.loc[gold["word"] == word, "sememe"]))
        own_line = {"word": word, "model": GOLD, "seed": None, "sememes": own}
        lines.append(own_line | {"own": [True] * len(own)})
        for entry in inputs.display.runs:
            seed = min(inputs.list_seeds(entry), default=None)
            of_seed = select_entry(table, entry, seed)
            of_word = of_seed.loc[of_seed["word"] == word].sort_values(by="rank")
            shares = zip(of_word["sememe"], of_word["share"], strict=True)
            texts = [f"{name} {format_share(share)}" for name, share in shares]
            line = {"word": word, "model": entry.panel, "seed": seed, "sememes": texts}
            lines.append(line | {"own": of_word["gold"].astype(bool).tolist()})
    plotted = pandas.DataFrame(lines, columns=["word", "model", "seed", "sememes", "own"])
    word_lines = []
    for word, model, seed, sememes, own in plotted.itertuples(index=False):
        none = "none"
        if pandas.isna(seed) and model != GOLD:
            none = inputs.absence
        word_lines.append(WordLine(word, model, sememes, own, none))
    headings = {"word": (LEFT, "left"), "sememes (% of the weights)": (SEMEMES, "left")}
    figure = draw_word_lines(word_lines, headings, MODEL, SEMEMES)
    texts = plotted["sememes"].str.join(", ")
    return figure, plotted.assign(sememes=texts, own=plotted["own"].map(sum))


def format_share(share: float) -> str:
    """Format a share in percent without decimals."""
    if share > 0.5:
        return f"{share:.0f}"
    return "<1"
