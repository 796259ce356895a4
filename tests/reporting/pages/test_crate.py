"""A crate contains only the files that the configuration requests."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files, write_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.system import list_tracked_files
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.provenance.record import add_output_digests
from workflow_scripts.provenance.recorded_digests import require_undamaged
from workflow_scripts.reporting.pages.crate import list_requested_files, list_workflow_files
from workflow_scripts.reporting.pages.verify import (
    find_digest_faults,
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


def write_files(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("content\n")


PACKED = ["papers/lrf/NOTES.md", "papers/lrf/claims.yaml", "papers/lrf/plans/later.yaml"]
LEFT_OUT = [
    "papers/lrf/.DS_Store",
    "papers/lrf/.env",
    "papers/lrf/claims.yaml~",
    "papers/lrf/captions/.table.rst.swp",
    "catalogue/tasks/.old.yaml",
]


def test_hidden_and_backup_files_are_not_packed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(*PACKED, *LEFT_OUT)
    assert list(map(str, list_workflow_files())) == PACKED


def test_a_draft_that_git_does_not_track_is_not_packed(tmp_path, monkeypatch):
    """But what is read is, such as a paper that is new."""
    monkeypatch.chdir(tmp_path)
    new = ["papers/mine/claims.yaml", "trusted.csv"]
    write_files(*PACKED, *LEFT_OUT, *new, "papers/lrf/draft.md", "papers/lrf/letter.docx")
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", *PACKED, "papers/lrf/.env"], check=True)
    assert list(map(str, list_workflow_files())) == sorted([*PACKED, *new])


def test_all_that_git_tracks_of_the_papers_is_packed(monkeypatch):
    monkeypatch.chdir(ROOT)
    tracked = list_tracked_files(Path())
    if tracked is None:
        pytest.skip("no git checkout")
    packed = {file.as_posix() for file in list_workflow_files()}
    assert {
        name for name in tracked if name.startswith("papers/") and Path(name).exists()
    } <= packed


@pytest.fixture
def with_digests(tmp_path: Path) -> Path:
    """A crate of a run with its manifest and its record, and of a table with its record."""
    run = tmp_path / "results/demo/runs/cogs/transformer/default/seed-1"
    write_files(*map(str, (run / "training.csv", run / "checkpoint/model.safetensors")))
    write_json(run / "run.json", {"files": hash_files(run)})
    write_json(run / "record.json", {"seconds": 1})
    add_output_digests(run / "record.json", [run / "run.json"])
    shutil.rmtree(run / "checkpoint")  # a crate has no weights
    table = tmp_path / "results/demo/tables/lrf/table1.csv"
    write_files(str(table))
    write_json(table.with_suffix(".json"), {"seconds": 1})
    add_output_digests(table.with_suffix(".json"), [table])
    return tmp_path


RUN = "results/demo/runs/cogs/transformer/default/seed-1"
TABLE = "results/demo/tables/lrf/table1"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (f"{RUN}/training.csv", "differs from the sha256 in run.json"),
        (f"{RUN}/run.json", "differs from the sha256 in record.json"),
        (f"{RUN}/record.json", "differs from its own record_digest"),
        (f"{TABLE}.csv", "differs from the sha256 in table1.json"),
        (f"{TABLE}.json", "differs from its own record_digest"),
    ],
)
def test_a_file_that_was_changed_is_neither_packed_nor_verified(with_digests, name, fault):
    """Whoever changes it can list its new sha256 in the metadata, but not in all of these."""
    files = sorted(file for file in with_digests.rglob("*") if file.is_file())
    listed = [file.relative_to(with_digests).as_posix() for file in files]
    require_undamaged(files)
    assert find_digest_faults(with_digests, listed) == []
    file = with_digests / name
    file.write_text(file.read_text() + "\n")
    with pytest.raises(UserError, match=re.escape(f"{file} {fault}")):
        require_undamaged(files)
    assert find_digest_faults(with_digests, listed) == [f"{name} {fault}"]


@pytest.mark.parametrize(
    "content",
    [
        {"files": []},
        {"files": {"../../../../../../../../etc/passwd": "0"}},
        {"files": {"\0": "0"}, "output_sha256": {"a/b": 1, "": 2}, "record_digest": 3},
        {"output_sha256": {"x": "y"}},
        [],
    ],
)
def test_manifests_with_any_content_end_in_a_fault_or_none(tmp_path, content):
    file = tmp_path / "results/demo/claims.json"
    write_json(file, content)
    faults = find_digest_faults(tmp_path, ["results/demo/claims.json"])
    assert all(fault.startswith("results/demo/claims.json") for fault in faults)
