"""A crate contains only the files that the configuration requests."""

from pathlib import Path

import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.common.files import write_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.reporting.pages.crate import list_requested_files
from workflow_scripts.reporting.pages.verify import (
    list_expected_results,
    require_complete,
    verify_crate,
)

ROOT = Path(__file__).parents[3]


def test_what_is_no_longer_asked_for_stays_out(tmp_path):
    catalogue = load_catalogue(ROOT)
    config = load_config({"scale": "demo", "papers": ["sq_transformer"]}, ROOT)
    results = ScaleFolder(tmp_path)
    expected = list_expected_results(catalogue, config, results)
    wanted = {
        *(file.relative_to(tmp_path).as_posix() for file in expected),
        "index.html",
        "report.html",
        "analyses/sq_transformer/neighbours/words.csv",
    }
    wanted -= {"config.json"}  # what the results were made of
    old = {
        "data/idm/dataset.json",
        "candidates/idm/candidates.json",
        *(
            f"runs/cogs/transformer/default/seed-77/{name}"
            for name in ("run.json", "training.csv", "eval/scores.csv")
        ),
        "runs/idm/gpt2/ft/seed-1/interventions/scores.csv",
        "analyses/sq_transformer/renamed/analysis.json",
        "tables/carma/table1.csv",
        "figures/sq_transformer/renamed.svg",
    }
    for name in wanted | old:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    packed = {
        file.relative_to(tmp_path).as_posix()
        for file in list_requested_files(results, catalogue, config)
    }
    assert packed == wanted and "runs/cogs/transformer/default/seed-1/record.json" in packed


INCOMPLETE = [
    ({"finished_only": True}, "finished_only is set, so runs may be missing"),
    (
        {"claims": ["lrf/lrf-over-matched-addjump"]},
        "claims is set, so only single claims are there",
    ),
]


@pytest.mark.parametrize(("settings", "message"), INCOMPLETE)
def test_what_is_not_complete_is_packed_in_no_crate(
    copy_here: Path, settings: dict, message: str, capsys: pytest.CaptureFixture[str]
):
    write_json(Path("results/demo/config.json"), {"scale": "demo", "papers": ["lrf"]} | settings)
    assert main(["crate", "--scale", "demo", "--out", "demo.zip"]) == 1
    assert f"results/demo/config.json: {message}; a crate has everything" in capsys.readouterr().err
    assert not Path("demo.zip").exists()


@pytest.mark.parametrize(("settings", "message"), INCOMPLETE)
def test_a_crate_of_what_is_not_complete_has_a_fault(copy: Path, settings: dict, message: str):
    write_json(copy / "results/demo/config.json", {"scale": "demo", "papers": ["lrf"]} | settings)
    write_json(copy / "ro-crate-metadata.json", {"@graph": []})
    _, faults = verify_crate(copy, copy)
    assert faults[-1].startswith(f"results/demo/config.json: {message}; ")


def test_what_the_papers_have_is_complete():
    config = load_config({"scale": "demo", "papers": ["lrf"], "only": "paper"}, ROOT)
    require_complete(config, Path("config.json"))
    expected = set(
        map(str, list_expected_results(load_catalogue(ROOT), config, ScaleFolder(Path())))
    )
    assert "runs/cfq-mcd1/roberta/lrf/seed-1/run.json" in expected
    assert not [file for file in expected if file.startswith("runs/scan-jump-x2")]
