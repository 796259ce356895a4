"""CARMA's figures, drawn from score files in the real format."""

import io
from pathlib import Path

import pandas
import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.figures.drawn import draw, texts
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.scores import Score, write_scores
from workflow_scripts.provenance.unfinished import Cause, Unfinished
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.figures import cap_by_layer, score_bars
from workflow_scripts.reporting.figures.figure import Inputs, draw_figure
from workflow_scripts.reporting.figures.style import choose_looks

PAPER = load_catalogue(ROOT).papers["carma"]
VARIANTS = {"ft@start": 20.0, "ft": 50.0, "carma": 60.0}
LAYERS = {"gpt2-small": (1, 2, 4), "llama-large": (1, 4, 8)}


def write_run(results: Path, run: Run, base: float) -> None:
    """Scores of a run and of its interventions: the deeper the pooled block, the more is right;
    each seed adds 1.
    """
    names = {"task": run.task, "method": run.method, "variant": run.variant, "seed": run.seed}
    names |= {"split": "test", "subset": "all", "unit": "percent", "n": 100, "protocol": "reduced"}
    base += run.seed
    plain = [names | {"metric": "exact_match", "value": base, "readout": "vocabulary"}]
    plain += [names | {"metric": "constrained", "value": base + 9, "readout": "labels"}] * (
        run.task == "sst"
    )
    pooled = [
        names
        | {
            "metric": "exact_match",
            "intervention": "cap",
            "layer": layer,
            "pooling": pooling,
            "item_set": items,
        }
        | {"value": base + 20 * layer / LAYERS[run.method][-1] + shift - fewer}
        for layer in LAYERS[run.method]
        for pooling, shift in (("mean", 0), ("max", -6), ("sum", 3))
        for items, fewer in (("own_correct", 0), ("all", 2))
    ]
    folder = results / "runs" / str(run)
    for name, rows in (("eval", plain), ("interventions", pooled)):
        (folder / name).mkdir(parents=True)
        write_scores(folder / name / "scores.csv", [Score(**row) for row in rows])


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


def inputs(display: str, runs: list[Run], results: Path) -> Inputs:
    entry = PAPER.displays[display]
    wanted = entry.variants
    mine = [run for run in runs if run.variant_key in wanted]
    folder = ScaleFolder(results)
    paper_results = PaperResults(load_catalogue(ROOT), "carma", "small", folder)
    return Inputs(entry, mine, folder, read_evidence(paper_results, mine, [entry]))


def test_lines_are_means_over_poolings_and_seeds(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = draw(cap_by_layer, inputs("figure2a", runs, tmp_path))
    assert texts(figure).count("not run at small") == 5  # of seven models
    line = next(line for line in figure.axes[0].lines if line.get_label() == "CARMA")
    # blocks 1, 2 and 4 of a model whose last one is 4
    assert list(line.get_xdata()) == [
        25,
        50,
        100,
    ]
    (deeper,) = (axes for axes in figure.axes if axes.get_title(loc="left") == "Llama-3B")
    assert list(deeper.lines[0].get_xdata()) == [12.5, 50, 100]  # blocks 1, 4 and 8 of 8
    # 60, and 2 for the mean seed, 5 a block, and -1 for the mean of the poolings.
    assert list(line.get_ydata()) == [66, 71, 81]
    band = figure.axes[0].collections[
        [entry.get_label() for entry in figure.axes[0].lines].index("CARMA")
    ]
    points = band.get_paths()[0].vertices
    assert (points[:, 1].min(), points[:, 1].max()) == (65, 82)
    mine = plotted[(plotted["panel"] == "GPT2-S") & (plotted["series"] == "CARMA")]
    assert len(mine) == 3 * 3 and set(mine["pooling"]) == {"mean of all"}


def test_panels_whose_interventions_are_not_finished_say_so(
    runs: list[Run], tmp_path: Path
) -> None:
    """Their runs are scored, so nothing else tells."""
    cause = Cause(word="failed", sentence="intervene failed")
    causes = {}
    for run in runs:
        if run.method == "gpt2-small":
            file = ScaleFolder(tmp_path).run(run).interventions.scores
            file.unlink()
            causes[file] = cause
    mine = [run for run in runs if run.variant_key in PAPER.displays["figure2a"].variants]
    lost = [run for run in mine if run.method == "gpt2-small"]
    results = PaperResults(
        load_catalogue(ROOT), "carma", "small", ScaleFolder(tmp_path), Unfinished(causes)
    )
    drawn = draw_figure(results, "figure2a", mine)
    assert texts(drawn.figure).count("not finished") == 6  # of seven models
    assert f"{len(lost)} runs left out: intervene failed" in drawn.footer


def test_each_row_has_the_protocol_of_its_variant(runs: list[Run], tmp_path: Path) -> None:
    for run in runs:
        if run.method == "llama-large":
            for file in ScaleFolder(tmp_path).run(run).list_score_files():
                file.write_text(file.read_text().replace(",reduced", ",stand_in"))
    mine = [run for run in runs if run.variant_key in PAPER.displays["figure2a"].variants]
    results = PaperResults(load_catalogue(ROOT), "carma", "small", ScaleFolder(tmp_path))
    drawn = draw_figure(results, "figure2a", mine)
    table = pandas.read_csv(io.StringIO(drawn.csv))
    found = {tuple(row) for row in table[["method", "protocol"]].to_numpy()}
    assert found == {("gpt2-small", "reduced"), ("llama-large", "stand_in")}
    assert "some data are generated" in drawn.footer  # of the whole figure the worst


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([0.0, 50.0, 100.0], (0, 105)),
        ([0.0, 4.0], (0, 5)),
        ([0.0, 0.0], (0, 105)),
        ([20.0], (0, 105)),
        ([300.0], (0, 315)),
        ([-40.0, 60.0], (-42, 105)),
        ([-40.0, -2.0], (-42, 0)),
    ],
)
def test_the_axis_of_bars_holds_every_value(
    values: list[float], limits: tuple[float, float]
) -> None:
    assert score_bars.find_limits(values) == limits


def test_a_figure_has_no_more_series_than_can_be_told_apart():
    looks = choose_looks(f"series {number % 9}" for number in range(18))
    assert len(looks) == len(set(looks.values())) == 9
    with pytest.raises(UserError, match="a figure has 10 series, and 9 can be told apart"):
        choose_looks(map(str, range(10)))


@pytest.mark.parametrize(
    ("lowest", "bottom"),
    [([0.0, 40.0], 0), ([24.9], 0), ([25.0], 25), ([90.0, 65.0], 50), ([100.0], 75)],
)
def test_the_axis_of_cap_begins_at_the_quarter_below_all_points(
    lowest: list[float], bottom: int
) -> None:
    tables = [pandas.DataFrame({"value": [100.0, value]}) for value in lowest]
    assert cap_by_layer.find_axis_start([*tables, pandas.DataFrame({"value": []})]) == bottom


def test_all_panels_of_cap_have_one_axis_that_holds_every_point(
    runs: list[Run], tmp_path: Path
) -> None:
    figure, plotted = draw(cap_by_layer, inputs("figure6", runs, tmp_path))
    drawn = [axes for axes in figure.axes if axes.lines]
    (limits,) = {axes.get_ylim() for axes in drawn}
    assert (
        len(drawn) == 6
        and limits[0] < plotted["value"].min()
        and plotted["value"].max() < limits[1]
    )
    # GPT2-S and, as the last of the models, Llama-3B are run: below it the axis has its name.
    assert [bool(axes.get_xlabel()) for axes in drawn] == [False] * 3 + [True] * 3


def test_each_pooling_has_its_own_panel(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = draw(cap_by_layer, inputs("figure7", runs, tmp_path))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:3] == ["GPT2-S, mean pooling", "GPT2-S, max pooling", "GPT2-S, sum pooling"]
    highest = [max(max(line.get_ydata()) for line in axes.lines) for axes in figure.axes[:3]]
    assert highest == [82, 76, 85]
    assert set(plotted["pooling"]) == {"mean", "max", "sum"} and set(plotted["task"]) == {"sst"}


def test_accuracy_is_that_without_an_intervention(runs: list[Run], tmp_path: Path) -> None:
    figure, plotted = draw(score_bars, inputs("figure3", runs, tmp_path))
    assert [patch.get_height() for patch in figure.axes[0].patches] == [21, 33, 52, 64, 62, 74]
    assert len(plotted) == 2 * 7
    assert len({text for text in texts(figure) if text.endswith("not run at small")}) == 5


@pytest.mark.parametrize("display", ["figure2a", "figure3", "figure6"])
def test_figures_without_runs_are_drawn_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, display: str
) -> None:
    monkeypatch.chdir(ROOT)
    module = cap_by_layer if display in ("figure2a", "figure6") else score_bars
    figure, _ = draw(module, inputs(display, [], tmp_path))
    figure.canvas.draw()
    assert any("not run at small" in text for text in texts(figure))


def test_scores_of_interventions_that_are_missing_are_named(
    runs: list[Run], tmp_path: Path
) -> None:
    (tmp_path / "runs" / str(runs[1]) / "interventions/scores.csv").unlink()
    with pytest.raises(UserError, match=r"interventions/scores\.csv does not exist"):
        inputs("figure2a", runs, tmp_path)
    assert inputs("figure3", runs, tmp_path)  # which shows none
