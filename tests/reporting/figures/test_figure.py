import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from matplotlib.image import imread

from tests.reporting.figures.drawn import DISPLAYS, FIGURES, Results, texts
from workflow_scripts.provenance.unfinished import Cause, Unfinished

SEEDS = {"scan-jump-x2/sq-transformer/sal": (1, 2)}
ONE_OF_EACH_KIND = list({DISPLAYS[figure].module: figure for figure in FIGURES}.values())


def add_every_second_panel(results: Results, figure: str) -> None:
    """Runs for the first, third, ... panel of a figure; then both kinds of panel can be seen."""
    for entry in DISPLAYS[figure].runs[::2]:
        name = str(entry.variant_key)
        results.add(*(f"{name}/seed-{seed}" for seed in SEEDS.get(name, (1,))))


@pytest.mark.parametrize("figure", ONE_OF_EACH_KIND)
def test_a_figure_is_drawn_alike_twice_and_not_empty(
    results: Results, tmp_path: Path, figure: str
) -> None:
    add_every_second_panel(results, figure)
    results.analyse(figure)
    outs = [tmp_path / "first", tmp_path / "second"]
    for out in outs:
        assert results.command("figure", figure, out) == 0
        made = [f"{figure}.{suffix}" for suffix in ("csv", "json", "png", "svg")]
        assert sorted(path.name for path in out.iterdir()) == made
    for suffix in ("csv", "png", "svg"):
        first, second = (out / f"{figure}.{suffix}" for out in outs)
        assert first.read_bytes() == second.read_bytes()
    assert imread(outs[0] / f"{figure}.png")[..., :3].std() > 0.05
    table = pandas.read_csv(outs[0] / f"{figure}.csv")
    assert len(table) and set(table["protocol"]) <= {"reduced", "stand_in"}


def test_its_record_names_the_histories_that_it_read(results: Results, tmp_path: Path) -> None:
    add_every_second_panel(results, "learning-curves")
    results.analyse("learning-curves")
    assert results.command("figure", "learning-curves", tmp_path) == 0
    read = json.loads((tmp_path / "learning-curves.json").read_text())["data_digest"]
    assert results.runs
    for run in results.runs:
        history = (results.folder / f"runs/{run}/training.csv").read_bytes()
        assert read[f"runs/{run}/training.csv"] == hashlib.sha256(history).hexdigest()


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_without_any_run_is_drawn_too(
    results: Results, tmp_path: Path, figure: str
) -> None:
    results.analyse(figure)
    assert results.command("figure", figure, tmp_path / "out") == 0
    assert np.ptp(imread(tmp_path / "out" / f"{figure}.png")[..., :3]) > 0.3


def test_another_process_draws_the_same_bytes(results: Results, tmp_path: Path) -> None:
    results.add("scan-jump-x2/sq-transformer/sal/seed-1")
    results.analyse("figure3")
    results.command("figure", "figure3", tmp_path / "here")
    where = [
        "--scale",
        "demo",
        "--results",
        results.folder,
        "--out",
        tmp_path / "there",
        "--runs",
        *results.runs,
    ]
    command = [
        sys.executable,
        "-m",
        "workflow_scripts",
        "figure",
        "--paper",
        "sq_transformer",
        "--display",
        "figure3",
    ]
    subprocess.run([*command, *where], check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    for suffix in ("csv", "png", "svg"):
        assert (tmp_path / f"here/figure3.{suffix}").read_bytes() == (
            tmp_path / f"there/figure3.{suffix}"
        ).read_bytes()
    assert b"dc:date" not in (tmp_path / "here/figure3.svg").read_bytes()
    assert b"matplotlib" not in (tmp_path / "here/figure3.png").read_bytes().lower()


def test_a_missing_analysis_is_named(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert results.command("figure", "figure3", tmp_path / "out") == 1
    assert (
        "analyses/sq_transformer/embeddings-addjump/scores.csv does not exist"
        in capsys.readouterr().err
    )


def test_a_figure_of_analyses_that_are_not_finished_says_so(results: Results) -> None:
    """Such as while a call runs, or after all runs of its analysis have failed."""
    results.add("scan-jump-x2/sq-transformer/sal/seed-1")
    cause = Cause(word="failed", sentence="analyse embeddings-addjump failed")
    causes = {results.folder / "analyses/sq_transformer/embeddings-addjump/scores.csv": cause}
    causes |= {file.with_name("analysis.json"): cause for file in causes}
    drawn = results.draw_unfinished("figure3", Unfinished(causes))
    assert "analyse embeddings-addjump failed" in drawn.footer
    assert "not finished" in texts(drawn.figure)
    assert drawn.csv == "task,method,variant,seed,protocol\n"
