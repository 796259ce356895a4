"""The folder that `new-paper` writes."""

import shutil
from pathlib import Path

import pytest

from tests.reporting.made_up import write_run
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import read_csv
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.evaluation.scores import write_scores

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(copy_here: Path) -> Path:
    """The working directory: a copy of the project without papers."""
    shutil.rmtree(copy_here / "papers")
    return copy_here


def test_it_passes_the_checks_and_has_runs_at_every_scale(
    here: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["new-paper", "mine"]) == 0
    files = {"experiments.yaml", "displays.yaml", "claims.yaml", "published.csv", "NOTES.md"}
    assert {file.name for file in (here / "papers/mine").iterdir()} == files
    assert capsys.readouterr().out.splitlines()[1].startswith("./reproduce --papers mine ")
    shutil.copytree(ROOT / "papers", here / "papers", dirs_exist_ok=True)
    assert main(["lint"]) == 0
    catalogue = load_catalogue(here)
    for scale, seeds in (("demo", 1), ("small", 3), ("full", 5)):
        assert (
            len(list_requested_runs(catalogue, load_config({"scale": scale, "papers": ["mine"]})))
            == seeds
        )
    (claim,) = catalogue.papers["mine"].claims
    assert claim.left == "table1/Transformer/ADDJUMP 2x/exact_match"


def test_a_claim_that_no_experiment_measures_is_a_mistake(
    here: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["new-paper", "mine"]) == 0
    file = here / "papers/mine/experiments.yaml"
    file.write_text(file.read_text().replace("{transformer: [default]}", "{lrf: [default]}"))
    assert main(["lint"]) == 1
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "mine/claims" in line]
    assert said == (
        "error: papers/mine/claims.yaml:5: claim 'transformer-above-half': no experiment of "
        "experiments.yaml measures table1/Transformer/ADDJUMP 2x/exact_match; add its method, or "
        "remove the claim"
    )


def test_each_paper_is_judged_on_its_own_seeds(here: Path):
    """Not on those that another paper of the same call asks for."""
    for key, seeds in (("mine", "[1, 2, 3]"), ("other", "[3, 4, 5]")):
        assert main(["new-paper", key]) == 0
        file = here / f"papers/{key}/experiments.yaml"
        file.write_text(file.read_text().replace("small: [1, 2, 3]", f"small: {seeds}"))
        analysis = here / f"results/small/analyses/{key}/constant-answers"
        analysis.mkdir(parents=True)
        write_scores(analysis / "scores.csv", [])
    for seed in range(1, 6):
        write_run(
            here / "results/small", Run("scan-jump-x2", "transformer", "default", seed), 10 * seed
        )
    where = ["--results", "results/small", "--out", "results/small/claims.csv"]
    assert main(["claims", "--papers", "mine", "other", "--scale", "small", *where]) == 0
    sides = read_csv(here / "results/small/claim_sides.csv")
    found = {
        key: sorted({row["seed"] for row in sides if row["paper"] == key} - {""})
        for key in ("mine", "other")
    }
    assert found == {"mine": ["1", "2", "3"], "other": ["3", "4", "5"]}


@pytest.mark.parametrize("key", ["", "2021", "My paper", "../x", ".x", "a" * 51, "-n"])
def test_a_bad_key_is_refused_in_one_line(key, here, capsys):
    assert main(["new-paper", "--", key]) == 1
    assert capsys.readouterr().err.startswith(
        f"error: the key {key!r} cannot name a paper; take a letter a-z and up to 49 "
    )
    assert not (here / "papers").exists()


@pytest.mark.parametrize("key", ["off", "no", "null", "yes", "on", "true", "false"])
def test_a_key_that_is_no_text_in_yaml_is_refused(key, here, capsys):
    assert main(["new-paper", key]) == 1
    message = f"error: the key {key!r} is no text in YAML; choose another key\n"
    assert capsys.readouterr().err == message
    assert not (here / "papers").exists()


def test_nothing_is_overwritten_and_nothing_is_written_elsewhere(here, capsys, monkeypatch):
    main(["new-paper", "mine"])
    (here / "papers/mine/NOTES.md").write_text("mine")
    assert main(["new-paper", "mine"]) == 1
    assert (
        capsys.readouterr().err
        == "error: papers/mine exists; choose another key, or edit its files\n"
    )
    assert (here / "papers/mine/NOTES.md").read_text() == "mine"
    monkeypatch.chdir(here / "catalogue")
    assert main(["new-paper", "other"]) == 1
    assert "run this in the root of the repository" in capsys.readouterr().err
