"""CARMA's figures, and the audit's, drawn from score files in the real format."""

from dataclasses import replace
from pathlib import Path

import pandas
import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.figures.drawn import texts
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.scores import read_scores, write_scores
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.figures import cap_by_layer, consistency, published_spread, sweeps
from workflow_scripts.reporting.figures.figure import Inputs

PAPER = load_catalogue(ROOT).papers["carma"]
VARIANTS = {"ft@start": 20.0, "ft": 50.0, "carma": 60.0}
LAYERS = {"gpt2-small": (1, 2, 4), "llama-large": (1, 4, 8)}


def write_run(results: Path, run: Run, base: float) -> None:
    """Scores of a run and of its interventions: the deeper the pooled block, the more is right; each seed adds 1."""
    names = {"task": run.task, "method": run.method, "variant": run.variant, "seed": run.seed}
    names |= {"split": "test", "subset": "all", "unit": "percent", "n": 100, "protocol": "reduced"}
    base += run.seed
    plain = [names | {"metric": "exact_match", "value": base, "readout": "vocabulary"}]
    plain += [names | {"metric": "constrained", "value": base + 9, "readout": "labels"}] * (run.task == "sst")
    pooled = [
        names
        | {"metric": "exact_match", "intervention": "cap", "layer": layer, "pooling": pooling, "item_set": items}
        | {"value": base + 20 * layer / LAYERS[run.method][-1] + shift - fewer}
        for layer in LAYERS[run.method]
        for pooling, shift in (("mean", 0), ("max", -6), ("sum", 3))
        for items, fewer in (("own_correct", 0), ("all", 2))
    ]
    synonyms = []
    for rate in (0.25, 0.4):
        of = {"intervention": "synonyms", "rate": rate, "item_set": "own_correct"}
        synonyms.append(names | of | {"metric": "cv", "value": base / 1000, "unit": "ratio"})
        synonyms += [
            names | of | {"metric": "consistency", "intervention_seed": draw, "value": base * (1 - rate) + draw}
            for draw in (1, 2, 3)
        ]
    folder = results / "runs" / str(run)
    for name, rows in (("eval", plain), ("interventions", pooled + synonyms)):
        (folder / name).mkdir(parents=True)
        write_scores(folder / name / "scores.csv", rows)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    monkeypatch.chdir(ROOT)
    found = []
    for task in ("idm", "sst"):
        for method, shift in (("gpt2-small", 0), ("llama-large", 12)):
            for variant, base in VARIANTS.items():
                for seed in (1,) if variant == "ft@start" else (1, 2, 3):
                    found.append(Run(task, method, variant, seed))
                    write_run(tmp_path, found[-1], base + shift)
    return found


def inputs(display: str, runs: list[Run], results: Path, paper: str = "carma") -> Inputs:
    entry = load_catalogue(ROOT).papers[paper].displays[display]
    wanted = {(run["task"], run["method"], run["variant"]) for run in entry.get("runs", ())}
    mine = [run for run in runs if run.unseeded in wanted]
    return Inputs(entry, mine, results, read_evidence(load_catalogue(ROOT), paper, "small", mine, [entry], results))


def test_lines_are_means_over_poolings_and_seeds(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = cap_by_layer.draw(inputs("figure2a", runs, tmp_path))
    assert texts(figure).count("not run at small") == 5  # of seven models
    line = next(line for line in figure.axes[0].lines if line.get_label() == "CARMA")
    assert list(line.get_xdata()) == [25, 50, 100]  # blocks 1, 2 and 4 of a model whose last one is 4
    (deeper,) = (axes for axes in figure.axes if axes.get_title(loc="left") == "Llama-3B")
    assert list(deeper.lines[0].get_xdata()) == [12.5, 50, 100]  # blocks 1, 4 and 8 of 8
    # 60, and 2 for the mean seed, 5 a block, and -1 for the mean of the poolings.
    assert list(line.get_ydata()) == [66, 71, 81]
    band = figure.axes[0].collections[[entry.get_label() for entry in figure.axes[0].lines].index("CARMA")]
    points = band.get_paths()[0].vertices
    assert (points[:, 1].min(), points[:, 1].max()) == (65, 82)
    mine = plotted[(plotted["panel"] == "GPT2-S") & (plotted["series"] == "CARMA")]
    assert len(mine) == 3 * 3 and set(mine["pooling"]) == {"mean of all"}


@pytest.mark.parametrize(
    ("lowest", "bottom"), [([0.0, 40.0], 0), ([24.9], 0), ([25.0], 25), ([90.0, 65.0], 50), ([100.0], 75)]
)
def test_the_axis_of_cap_begins_at_the_quarter_below_all_points(lowest: list[float], bottom: int) -> None:
    tables = [pandas.DataFrame({"value": [100.0, value]}) for value in lowest]
    assert cap_by_layer.find_axis_start([*tables, pandas.DataFrame({"value": []})]) == bottom


def test_all_panels_of_cap_have_one_axis_that_holds_every_point(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = cap_by_layer.draw(inputs("figure6", runs, tmp_path))
    drawn = [axes for axes in figure.axes if axes.lines]
    (limits,) = {axes.get_ylim() for axes in drawn}
    assert len(drawn) == 6 and limits[0] < plotted["value"].min() and plotted["value"].max() < limits[1]
    # GPT2-S and, as the last of the models, Llama-3B are run: below it the axis has its name.
    assert [bool(axes.get_xlabel()) for axes in drawn] == [False] * 3 + [True] * 3


def test_each_pooling_has_its_own_panel(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = cap_by_layer.draw(inputs("figure7", runs, tmp_path))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:3] == ["GPT2-S, mean pooling", "GPT2-S, max pooling", "GPT2-S, sum pooling"]
    highest = [max(max(line.get_ydata()) for line in axes.lines) for axes in figure.axes[:3]]
    assert highest == [82, 76, 85]
    assert set(plotted["pooling"]) == {"mean", "max", "sum"} and set(plotted["task"]) == {"sst"}


def test_bars_are_means_and_diamonds_are_published(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = consistency.draw(inputs("figure-synonyms-idm", runs, tmp_path))
    first = figure.axes[0]
    # ConsistSyn of GPT2-S: 62 (mean seed) * 0.75, and 2 for the mean draw.
    heights = [patch.get_height() for patch in first.patches]
    assert heights == pytest.approx(
        [21 * 0.75 + 2, 33 * 0.75 + 2, 52 * 0.75 + 2, 64 * 0.75 + 2, 62 * 0.75 + 2, 74 * 0.75 + 2]
    )
    published = plotted[plotted["published"].astype(bool)]
    printed = published[(published["panel"] == "GPT2-S") & (published["metric"] == "consistency")]
    assert printed["value"].tolist() == [52.46, 50.89, 49.17, 37.2, 37.16, 35.9]
    drawn = [line.get_marker() for axes in figure.axes for line in axes.lines]
    # Two CVs of models without fine-tuning are beyond the axis.
    assert (drawn.count("D"), drawn.count(consistency.CARETUP), len(published)) == (82, 2, 84)


def test_a_misprint_is_an_arrow_at_the_end_of_its_axis(runs: list[Run], tmp_path: Path) -> None:
    figure, _ = consistency.draw(inputs("figure-synonyms-sst", runs, tmp_path))
    axes = figure.axes[2]
    beyond = [line for line in axes.lines if line.get_marker() == consistency.CARETUP]
    assert len(beyond) >= 2 and all(line.get_ydata()[0] == axes.get_ylim()[1] < 0.5 for line in beyond)


def test_a_seed_beyond_all_others_is_not_cut_off(runs: list[Run], tmp_path: Path) -> None:
    scores = tmp_path / "runs/sst/gpt2-small/carma/seed-1/interventions/scores.csv"
    write_scores(scores, [row | {"value": 0.9} if row["metric"] == "cv" else row for row in read_scores(scores)])
    figure, plotted = consistency.draw(inputs("figure-synonyms-sst", runs, tmp_path))
    shown = plotted[(plotted["metric"] == "cv") & ~plotted["published"].astype(bool)]
    assert shown["value"].max() == 0.9 < figure.axes[2].get_ylim()[1]


def test_accuracy_is_that_without_an_intervention(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = consistency.draw(inputs("figure3", runs, tmp_path))
    assert [patch.get_height() for patch in figure.axes[0].patches] == [21, 33, 52, 64, 62, 74]
    assert len(plotted) == 2 * 7
    assert len({text for text in texts(figure) if text.endswith("not run at small")}) == 5


@pytest.mark.parametrize(
    ("metric", "highest", "end"), [("exact_match", 5.6, 7), ("exact_match", 20, 105), ("cv", 5, 8)]
)
def test_bars_of_a_few_percent_fill_their_axis(metric: str, highest: float, end: float) -> None:
    values = pandas.DataFrame({"value": [0.0, *[highest] * 20]})
    assert consistency.find_axis_end({"metric": metric}, values, values[:0]) == pytest.approx(end)


@pytest.mark.parametrize("display", ["figure2a", "figure3", "figure-synonyms-idm", "figure6"])
def test_figures_without_runs_are_drawn_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, display: str) -> None:
    monkeypatch.chdir(ROOT)
    module = cap_by_layer if display in ("figure2a", "figure6") else consistency
    figure, _ = module.draw(inputs(display, [], tmp_path))
    figure.canvas.draw()
    assert any("not run at small" in text for text in texts(figure))


def test_scores_of_interventions_that_are_missing_are_named(runs: list[Run], tmp_path: Path) -> None:
    (tmp_path / "runs" / str(runs[1]) / "interventions/scores.csv").unlink()
    with pytest.raises(UserError, match=r"interventions/scores\.csv does not exist"):
        inputs("figure2a", runs, tmp_path)
    assert inputs("figure3", runs, tmp_path)  # which shows none


def test_every_ratio_of_the_audit_is_a_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    out = tmp_path / "analyses/recompose/audit-carma"
    where = ["--scale", "demo", "--results", str(tmp_path), "--out", str(out), "--runs"]
    assert main(["analyse", "--paper", "recompose", "--analysis", "audit-carma", *where]) == 0
    figure, plotted = published_spread.draw(inputs("figure-audit", [], tmp_path, "recompose"))
    left = figure.axes[0]
    drawn = [x for line in left.lines for x in line.get_xdata() if line.get_linestyle() == "None"]
    ratios = pandas.read_csv(out / "cv_ratios.csv")["ratio"].dropna()
    assert sorted(x for x in drawn if x == x) == pytest.approx(sorted(ratios)) and len(ratios) == 27
    assert len(plotted) == 28 and texts(figure).count("misprinted") == texts(figure).count("printed alike") == 1


def test_the_cells_of_a_sweep_are_gains_over_the_same_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    runs = [Run("idm", "gpt2-small", variant, seed) for variant in ("ft", "mi-only", "layers-last") for seed in (1, 2)]
    runs.append(Run("idm", "gpt2-small", "mi-only", 3))  # no such seed of the baseline
    for run in runs:
        gain = {"ft": 0, "mi-only": 10 * run.seed, "layers-last": -4}[run.variant]
        write_run(tmp_path, run, 40.0 + gain)
    figure, plotted = sweeps.draw(inputs("figure-parts", runs, tmp_path))
    gains = plotted.set_index(["map", "row", "column", "seed"])["gain"].sort_index()
    assert gains["accuracy", "0", "1"].to_dict() == {1: 10, 2: 20}
    assert gains["ConsistSyn", "0", "1"].to_dict() == pytest.approx({1: 7.5, 2: 15})  # of 25% replaced three quarters
    assert gains["blocks", "CAP", "last"].to_dict() == {1: -4, 2: -4}
    assert set(plotted["column"][plotted["map"] == "blocks"]) == {"last"}
    shown = texts(figure)
    assert "+15.0\n±7.1" in shown and "-4.0\n±0.0" in shown
    assert "–" in shown and "not run at small" not in shown


def test_a_sweep_without_runs_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    figure, plotted = sweeps.draw(inputs("figure-parts", [], tmp_path))
    assert plotted.empty
    assert texts(figure).count("not run at small") == 4


def test_gains_over_runs_that_start_from_other_weights_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    runs = [Run("idm", "gpt2-small", variant, 1) for variant in ("ft", "mi-only")]
    for run in runs:
        write_run(tmp_path, run, 40.0)
    made = inputs("figure-parts", runs, tmp_path)
    weights = {("idm", "gpt2-small", "ft"): "one", ("idm", "gpt2-small", "mi-only"): "another"}
    with pytest.raises(UserError, match="idm/gpt2-small/mi-only and idm/gpt2-small/ft start from different weights"):
        sweeps.draw(replace(made, evidence=replace(made.evidence, weights=weights)))
