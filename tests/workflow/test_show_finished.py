"""What is shown when jobs have failed: everything that is finished, and why the rest is not."""

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.data.file_server import serving
from tests.data.hub_server import HubServer
from tests.workflow.four_rows import PAPER
from tests.workflow.projects import Project
from workflow_scripts.data.sources.declared import load_repositories

GATED = "google/gemma-2b"
REVISION = load_repositories()[GATED].revision
FILES = {"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": bytes(1000)}


def read_rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def failing(project: Project) -> Project:
    """A paper in which one run works, one model is gated, one training crashes, and one source is
    at a dead address.
    """
    project.add_paper(PAPER)
    project.set_demo_steps(3)
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["sq-transformer"]["init"] = {"hub": GATED, "revision": REVISION}
    project.edit(
        "catalogue/tasks/cogs.yaml",
        "limit: {train: 1000, test: 210}}, sources: []",
        "limit: {train: 1000, test: 210}}, sources: [cogs/train.tsv]",
    )
    sources = project.root / "workflow_scripts/data/sources/sources.yaml"
    dead = re.sub(
        r"https://raw.githubusercontent.com/najoungkim/\S+",
        "http://127.0.0.1:9/",
        sources.read_text(),
    )
    sources.write_text(dead)
    with open(project.root / "workflow_scripts/models/lrf/model.py", "a") as module:
        module.write("\nraise RuntimeError('boom')\n")
    return project


@pytest.mark.faults
def test_a_gated_model_a_dead_address_and_a_crash_leave_the_rest_of_the_page(
    failing: Project, monkeypatch
):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with serving(HubServer) as hub:
        hub.add(GATED, REVISION, FILES)
        hub.gated = {GATED}
        done = failing.reproduce(env=os.environ | {"HF_ENDPOINT": hub.url})
    assert done.returncode == 1
    results = failing.root / "results/demo"

    rows = read_rows(results / "tables/mine/table1.csv")
    cells = {f"{row['row']}/{row['column']}": (row["status"], row["note"]) for row in rows}
    assert cells == {
        "works/SCAN": ("measured", ""),
        "works/COGS": ("not run", "not run: download failed"),
        "gated/SCAN": ("not run", "not run: gated"),
        "crashes/SCAN": ("not run", "not run: failed"),
        "gated/COGS": ("not run", "not run at demo"),
        "crashes/COGS": ("not run", "not run at demo"),
    }
    markdown = (results / "tables/mine/table1.md").read_text()
    assert f"Not run, because {GATED} is gated: gated." in markdown

    drawn = read_rows(results / "figures/mine/figure1.csv")
    assert {row["series"] for row in drawn} == {"works"}
    assert (
        "1 run left out: train scan-jump-x2/lrf/default/seed-1 failed"
        in (results / "figures/mine/figure1.svg").read_text()
    )

    claims = {row["claim"]: row for row in read_rows(results / "claims.csv")}
    assert claims["works-above-half"]["effect"] != ""
    assert claims["gated-over-works"]["verdict"] == "not run"
    assert claims["gated-over-works"]["reason"] == f"not run: {GATED} is gated"
    assert claims["works-on-cogs"]["reason"] == "not run: cogs/train.tsv could not be downloaded"
    page = (results / "index.html").read_text()
    assert "Finished so far" in page and "works-above-half" in page
    assert f"Not run: {GATED} is gated." in page

    last_lines = sorted(done.stderr.splitlines()[-4:])
    assert last_lines[0] == "Try again with: ./reproduce"
    dead, gated, crashed = last_lines[1:]
    assert dead.startswith("error: cogs/train.tsv could not be downloaded, 1 run not finished: ")
    assert gated.startswith(f"error: {GATED} is gated, 1 run not finished: ")
    assert "accept its licence" in gated
    code = "workflow_scripts/models/lrf/model.py"
    last_line = len((failing.root / code).read_text().splitlines())
    assert crashed == (
        "error: train scan-jump-x2/lrf/default/seed-1 failed, 1 run not finished: "
        f"{code}:{last_line}: RuntimeError: boom (results/demo/logs/train/scan-jump-x2/lrf/default/seed-1.log)"
    )


@pytest.mark.faults
def test_a_claim_says_which_of_its_runs_failed(failing: Project, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with serving(HubServer) as hub:
        hub.add(GATED, REVISION, FILES)
        hub.gated = {GATED}
        words = ("--claim", "mine/gated-over-works")
        done = failing.reproduce(*words, env=os.environ | {"HF_ENDPOINT": hub.url})
    assert done.returncode == 1
    results = failing.root / "results/demo"
    (row,) = read_rows(results / "claims/mine/gated-over-works/claims.csv")
    assert (row["verdict"], row["reason"]) == ("not run", f"not run: {GATED} is gated")
    assert done.stdout.splitlines()[-1] == f"  verdict   {row['reason']}"
    failure, advice = done.stderr.splitlines()[-2:]
    assert failure.startswith(f"error: {GATED} is gated, 1 run not finished: ")
    assert advice == "Try again with: ./reproduce --claim mine/gated-over-works"
    assert not (results / "claims.csv").exists() and not (results / "tables").exists()


def read_notes(tables: Path) -> dict[str, str]:
    """Row -> note of the first column of table 2 of CAT."""
    rows = read_rows(tables / "table2.csv")
    return {row["row"]: row["note"].split(";")[0] for row in rows if row["column"] == "PAWS (SO)"}


@pytest.mark.faults
def test_the_next_call_makes_what_was_missing(demo: Project):
    """Of a finished demo one training is deleted, and fails at first."""
    run = "paws/bert/ft/seed-1"
    folder = demo.root / "results/demo/runs" / run
    tables = demo.root / "results/demo/tables/cat"
    before = (tables / "table2.csv").read_bytes()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "mine.txt").touch()

    shown = demo.reproduce("--finished")
    assert shown.returncode == 1
    assert shown.stderr.splitlines()[-2:] == [
        "error: 2 runs not started yet",
        "Try again with: ./reproduce",
    ]
    assert read_notes(tables)["BERT"] == "not run: not started"
    assert not (folder / "run.json").exists()

    failed = demo.reproduce()
    assert failed.returncode == 1
    assert read_notes(tables)["BERT"] == "not run: failed"
    assert "not run" not in read_notes(tables)["CAT_comp"]
    # An analysis of several runs is made of those that are finished.
    assert read_rows(tables / "table4.csv")
    assert json.loads((demo.root / "results/demo/config.json").read_text())["finished_only"] is True

    again = demo.reproduce()
    assert again.returncode == 1
    assert "Nothing to be done" in again.stderr, "nothing is shown twice"

    (folder / "mine.txt").unlink()
    demo.make()
    assert (tables / "table2.csv").read_bytes() == before
    assert not (demo.root / "results/demo/unfinished.json").exists()
    assert demo.planned() == set()


@pytest.mark.faults
def test_downloads_go_on_and_end_with_what_is_missing_and_where_to_put_it(project: Project):
    """No address answers: every file is tried, and each data set has one line at the end."""
    sources = project.root / "workflow_scripts/data/sources/sources.yaml"
    dead = re.sub(r"https://\S+/(?=\S|\s)", "http://127.0.0.1:9/", sources.read_text())
    sources.write_text(dead)
    without_mirror = {
        name: value for name, value in os.environ.items() if name != "RECOMPOSE_MIRROR"
    }
    done = project.reproduce("downloads", "--scale", "small", "--papers", "lrf", env=without_mirror)
    assert done.returncode == 1
    last_lines = done.stderr.splitlines()
    assert last_lines[-1] == "Try again with: ./reproduce downloads --scale small --papers lrf"
    (cognition,) = (line for line in last_lines if " more files of cognition: " in line)
    assert "could not be downloaded, and 8 more files of cognition: " in cognition
    assert "; `python -m workflow_scripts fetch --list cognition` lists all its URLs" in cognition
    assert "is missing: tried http://127.0.0.1:9/" in cognition
    assert "and put it at results/downloads/cognition/" in cognition
    errors = [line for line in last_lines if line.startswith("error: ")]
    assert len(errors) == len({line.split("/")[0] for line in errors})
