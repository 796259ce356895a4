"""CAT's figures: from scores with readouts, and from the tables of codes."""

import copy
from pathlib import Path

import pandas
import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.figures.drawn import draw, texts
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.figures import score_bars, score_by_share, sememes_of_words
from workflow_scripts.reporting.figures.figure import Inputs

DISPLAYS = load_catalogue(ROOT).papers["cat"].displays


def scored(
    run: Run, readout: str, value: float, split: str = "test", metric: str = "accuracy"
) -> Score:
    names = {"task": run.task, "method": run.method, "variant": run.variant, "seed": run.seed}
    empty = dict.fromkeys(
        ("intervention", "layer", "pooling", "rate", "intervention_seed", "item_set")
    )
    measured = {"value": value, "unit": "percent", "n": 100, "protocol": "reduced"}
    return Score(
        **names, **empty, **measured, split=split, subset="all", metric=metric, readout=readout
    )


@pytest.mark.parametrize(
    ("value", "end"), [(71.0, 105), (4.0, 5)]
)  # bars of a few percent fill their axis
def test_bars_have_the_readout_of_their_series(value: float, end: float) -> None:
    run = Run("squad", "cat", "comp", 21)
    rows = [
        scored(run, readout, score, metric=metric)
        for metric in ("exact_match", "adversarial_exact_match")
        for readout, score in (("comp", value), ("constant", 50.0))
    ]
    evidence = Evidence("cat", "small", {}, {("squad", "cat", "comp"): rows}, {})
    figure, plotted = draw(
        score_bars, Inputs(DISPLAYS["figure2"], [run], ScaleFolder(Path("unused")), evidence)
    )
    assert plotted[["series", "metric", "value"]].to_numpy().tolist() == [
        ["CAT_comp", "exact_match", value]
    ]
    assert figure.axes[1].get_ylim()[1] == end


def by_share(*runs: Run) -> Inputs:
    """Accuracy: the share of the training data, plus the seed; 10 of another split and 50 of a
    constant next to it.
    """
    scores = {}
    for run in runs:
        value = float(run.task.split("-")[-1].removesuffix("pc")) + run.seed
        readout = {"bert": "last", "cat": run.variant}[run.method]
        rows = [scored(run, readout, value), scored(run, "constant", 50.0)]
        rows.append(scored(run, readout, 10.0, "in_distribution"))
        scores.setdefault(run.variant_key, []).extend(rows)
    display = "figure3-imdb" if runs and runs[0].task.startswith("imdb") else "figure3"
    return Inputs(
        DISPLAYS[display],
        list(runs),
        ScaleFolder(Path("unused")),
        Evidence("cat", "small", {}, scores, {}),
    )


def test_a_line_goes_through_the_means_of_complete_shares() -> None:
    runs = [
        Run(f"sst2-{share}pc", "cat", "comp", seed) for share in (10, 30, 50) for seed in (1, 2)
    ]
    runs += [Run("sst2-70pc", "cat", "comp", 1), Run("sst2-90pc", "bert", "ft", 1)]
    figure, plotted = draw(score_by_share, by_share(*runs))
    lines = {line.get_label(): line.get_ydata().tolist() for line in figure.axes[0].lines}
    assert lines["CAT_comp"] == pytest.approx(
        [11.5, 31.5, 51.5, float("nan"), float("nan")], nan_ok=True
    )
    assert lines["BERT"][4] == 91
    assert plotted["value"].tolist() == [11, 12, 31, 32, 51, 52, 71, 91]
    seeds = [
        y
        for line in figure.axes[0].lines
        if line.get_linestyle() == "None"
        for y in line.get_ydata()
        if y == y
    ]
    assert sorted(seeds) == plotted["value"].tolist()
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [
        "10%",
        "30%",
        "50%",
        "70%",
        "90%",
    ]
    assert "CAT_mix: not run at small" in texts(figure) and "BERT: not run at small" not in texts(
        figure
    )


def test_lines_of_another_split() -> None:
    _, plotted = draw(score_by_share, by_share(Run("imdb-sst2-90pc", "bert", "ft", 1)))
    assert plotted["value"].tolist() == [10.0]


def test_no_share_without_runs() -> None:
    figure, plotted = draw(score_by_share, by_share())
    assert texts(figure) == ["not run at small"] and plotted.empty


RUN = {"task": "pairs-wordpiece", "method": "cat", "variant": "pretrain"}


@pytest.fixture
def inputs(tmp_path):
    def made(display: str, **tables: list[dict]) -> Inputs:
        folder = tmp_path / "analyses/cat/code-weights"
        folder.mkdir(parents=True)
        for name, rows in tables.items():
            pandas.DataFrame([RUN | row for row in rows]).to_csv(
                folder / f"{name}.csv", index=False
            )
        runs = [Run(*RUN.values(), seed) for seed in (21, 22)]
        evidence = Evidence("cat", "small", {}, {}, {"code-weights": []})
        return Inputs(copy.deepcopy(DISPLAYS[display]), runs, ScaleFolder(tmp_path), evidence)

    return made


def test_own_sememes_are_black(inputs) -> None:
    words = [
        {
            "seed": seed,
            "word": "wife",
            "rank": rank,
            "sememe": name,
            "share": 0.3 * rank,
            "gold": name == "spouse",
        }
        for seed in (21, 22)
        for rank, name in ((2, "spouse"), (1, "part"))
    ]
    gold = [
        {"seed": seed, "word": "wife", "sememe": name}
        for seed in (21, 22)
        for name in ("spouse", "human")
    ]
    made = inputs("figure-sememes", words=words, gold=gold)
    figure, plotted = draw(sememes_of_words, made)
    line = plotted[(plotted["word"] == "wife") & (plotted["model"] == "CAT")].iloc[0]
    assert (line["sememes"], line["own"], line["seed"]) == ("part <1, spouse 1", 1, 21)
    colours = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert (colours["spouse 1"], colours["part <1"]) == ("black", "0.5")
    assert (
        plotted.loc[(plotted["word"] == "wife") & (plotted["model"] == "HowNet"), "sememes"].item()
        == "spouse, human"
    )
    assert len(plotted) == 4 * len(made.display.options["words"]) and "not run at small" in texts(
        figure
    )
