"""CAT's figures: from scores with readouts, and from the tables of codes."""

import copy
from pathlib import Path

import pandas
import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.figures.drawn import texts
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.reporting.evidence import Evidence
from workflow_scripts.reporting.figures import code_usage, consistency, sememes_of_words
from workflow_scripts.reporting.figures.inputs import Inputs

DISPLAYS = load_catalogue(ROOT).papers["cat"].displays


def scored(run: Run, readout: str, value: float, split: str = "test") -> dict:
    names = {"task": run.task, "method": run.method, "variant": run.variant, "seed": run.seed}
    empty = dict.fromkeys(("intervention", "layer", "pooling", "rate", "intervention_seed", "item_set"))
    return names | empty | {"split": split, "subset": "all", "metric": "accuracy", "readout": readout, "value": value}


def test_bars_have_the_readout_of_their_series() -> None:
    run = Run("sst2-10pc", "cat", "comp", 21)
    rows = [scored(run, "comp", 71.0), scored(run, "constant", 50.0), scored(run, "comp", 12.0, "in_distribution")]
    evidence = Evidence("cat", "small", {}, {("sst2-10pc", "cat", "comp"): rows}, {})
    _, plotted = consistency.draw(Inputs(DISPLAYS["figure3"], [run], Path("unused"), evidence))
    assert plotted[["panel", "series", "value"]].to_numpy().tolist() == [["10%", "CAT_comp", 71.0]]


def test_bars_of_another_split() -> None:
    run = Run("imdb-sst2-90pc", "bert", "ft", 1)
    rows = [scored(run, "last", 71.0), scored(run, "last", 82.0, "in_distribution")]
    evidence = Evidence("cat", "paper", {}, {("imdb-sst2-90pc", "bert", "ft"): rows}, {})
    _, plotted = consistency.draw(Inputs(DISPLAYS["figure3-imdb"], [run], Path("unused"), evidence))
    assert plotted["value"].tolist() == [82.0]


RUN = {"task": "pairs-wordpiece", "method": "cat", "variant": "pretrain"}


@pytest.fixture
def inputs(tmp_path):
    def made(display: str, **tables: list[dict]) -> Inputs:
        folder = tmp_path / "analyses/cat/code-weights"
        folder.mkdir(parents=True)
        for name, rows in tables.items():
            pandas.DataFrame([RUN | row for row in rows]).to_csv(folder / f"{name}.csv", index=False)
        runs = [Run(*RUN.values(), seed) for seed in (21, 22)]
        evidence = Evidence("cat", "small", {}, {}, {"code-weights": []})
        return Inputs(copy.deepcopy(DISPLAYS[display]), runs, tmp_path, evidence)

    return made


def test_usage_is_the_mean_over_seeds(inputs) -> None:
    rows = [
        {"seed": seed, "layer": layer, "part": part, "share": share * (seed - 20)}
        for seed in (21, 22)
        for layer in (1, 2)
        for part, share in ((1, 20.0), (2, 0.0))
    ]
    figure, plotted = code_usage.draw(inputs("figure-codes", usage=rows))
    first = next(axes for axes in figure.axes if axes.get_title(loc="left") == "CAT")
    assert first.images[0].get_array().tolist() == [[30.0, 0.01], [30.0, 0.01]]
    assert [label.get_text() for label in first.get_yticklabels()] == ["layer 1", "layer 2"]
    assert "not run at small" in texts(figure) and len(plotted) == 8
    # Panels without runs below it leave it its scale.
    assert [label.get_text() for label in first.get_xticklabels()] == ["0", "20", "40", "60", "80", "100"]
    assert first.get_xlabel().startswith("codes of the layer (%)")


def test_own_sememes_are_black(inputs) -> None:
    words = [
        {"seed": seed, "word": "wife", "rank": rank, "sememe": name, "share": 0.3 * rank, "gold": name == "spouse"}
        for seed in (21, 22)
        for rank, name in ((2, "spouse"), (1, "part"))
    ]
    gold = [{"seed": seed, "word": "wife", "sememe": name} for seed in (21, 22) for name in ("spouse", "human")]
    made = inputs("figure-sememes", words=words, gold=gold)
    figure, plotted = sememes_of_words.draw(made)
    line = plotted[(plotted["word"] == "wife") & (plotted["model"] == "CAT")].iloc[0]
    assert (line["sememes"], line["own"], line["seed"]) == ("part <1, spouse 1", 1, 21)
    colours = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert (colours["spouse 1"], colours["part <1"]) == ("black", "0.5")
    assert (
        plotted.loc[(plotted["word"] == "wife") & (plotted["model"] == "HowNet"), "sememes"].item() == "spouse, human"
    )
    assert len(plotted) == 4 * len(made.display["options"]["words"]) and "not run at small" in texts(figure)
