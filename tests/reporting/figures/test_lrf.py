import copy
from pathlib import Path

import pandas
import pytest

from tests.analyses.small_runs import ROOT, add_run
from workflow_scripts.analyses import attention_over_layers as analysis
from workflow_scripts.config.catalogue import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.figures import attention_over_layers
from workflow_scripts.reporting.figures.figure import Inputs


def inputs_for(folder: Path, names: list[str]) -> Inputs:
    """The figure's inputs from runs of the demo with random weights, and their analysis."""
    runs = [add_run(folder, name) for name in names]
    where = folder / "analyses/lrf/attention-over-layers"
    where.mkdir(parents=True)
    found = analysis.analyse(runs, {"sentences": 5})
    for name, table in found.files.items():
        table.to_csv(where / f"{name}.csv", index=False)
    display = copy.deepcopy(load_catalogue(ROOT).papers["lrf"].displays["figure-layers"])
    evidence = Evidence("lrf", "demo", {}, {}, {"attention-over-layers": found.scores})
    requested = [Run(run.task, run.method, run.variant, run.seed) for run in runs]
    return Inputs(display, requested, folder, evidence)


def test_maps_show_the_mean_weights_of_all_seeds(tmp_path: Path) -> None:
    inputs = inputs_for(tmp_path, [f"scan-jump-x2/lrf/default/seed-{seed}" for seed in (1, 2)])
    figure, plotted = attention_over_layers.draw(inputs)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert [panels[f"COGS, {side}"].texts[0].get_text() for side in ("encoder", "decoder")] == ["not run at demo"] * 2
    weights = inputs.read_table("mean_weights")
    expected = weights[(weights["side"] == "decoder") & (weights["layer"] == 2)].groupby("fused_layer")["weight"].mean()
    image = panels["ADDJUMP 2x, decoder"].images[0].get_array()
    assert image[1].tolist() == pytest.approx((100 * expected).tolist())
    assert image.mask[0].tolist() == [False, True] and image[0, 0] == 100
    sums = plotted.groupby(["seed", "side", "layer"])["weight"].sum()
    assert sums.tolist() == pytest.approx([1] * 8)


def test_a_side_without_fuse_attention_says_so(tmp_path: Path) -> None:
    inputs = inputs_for(tmp_path, ["scan-jump-x2/lrf/encoder/seed-1"])
    for entry in inputs.display["runs"]:
        entry["variant"] = "encoder"
    figure, plotted = attention_over_layers.draw(inputs)
    (panel,) = [axes for axes in figure.axes if axes.get_title(loc="left") == "ADDJUMP 2x, decoder"]
    assert panel.texts[0].get_text() == "no fuse-attention"
    assert set(plotted["side"]) == {"encoder"}


def test_without_runs_the_table_has_its_columns(tmp_path: Path) -> None:
    _, plotted = attention_over_layers.draw(inputs_for(tmp_path, []))
    assert isinstance(plotted, pandas.DataFrame) and len(plotted) == 0 and "weight" in plotted


def test_an_analysis_without_runs_beside_another_leaves_numbers_numbers(tmp_path: Path) -> None:
    inputs = inputs_for(tmp_path, ["scan-jump-x2/lrf/default/seed-1"])
    first, second = (tmp_path / "analyses/lrf" / name for name in ("attention-over-layers", "empty"))
    second.mkdir()
    table = (first / "mean_weights.csv").read_text()
    (second / "mean_weights.csv").write_text(table.splitlines(keepends=True)[0])
    inputs.evidence.analyses["empty"] = []
    assert inputs.read_table("mean_weights").equals(pandas.read_csv(first / "mean_weights.csv"))
    attention_over_layers.draw(inputs)
