"""./reproduce --claim: what one claim needs, and nothing else."""

import csv
from pathlib import Path

import pytest

from tests.workflow.four_rows import PAPER
from tests.workflow.projects import Project

ABOVE_HALF = "mine/works-above-half"


def read_claims(file: Path) -> dict[str, dict[str, str]]:
    with open(file, newline="") as stream:
        return {row["claim"]: row for row in csv.DictReader(stream)}


def list_made(project: Project) -> set[str]:
    """The runs and reports that are there."""
    results = project.root / "results/demo"
    patterns = (
        "runs/*/*/*/*/run.json",
        "tables/*/*.csv",
        "figures/*/*.csv",
        "claims/*/*",
        "claims.csv",
    )
    patterns += ("config.json", "index.html", "analyses/*/*")
    return {
        path.relative_to(results).as_posix()
        for pattern in patterns
        for path in results.glob(pattern)
    }


@pytest.fixture
def mine(project: Project) -> Project:
    """A paper with two short trainings at demo; two of its rows have none there."""
    others = ", sq-transformer: [srl], lrf: [default]"
    experiments = PAPER["experiments.yaml"]
    assert others in experiments
    at_demo = experiments.replace(others, "").replace(
        "{demo: [1]}", "{demo: [1], small: [1], full: [1]}"
    )
    at_small = "  - {task: scan-jump-x2, methods: {sq-transformer: [srl]}}"
    project.add_paper(PAPER | {"experiments.yaml": f"{at_demo}experiments:\n{at_small}\n"})
    project.set_demo_steps(3)
    return project


def test_a_claim_is_made_alone_and_leaves_the_results_of_all_as_they_are(mine: Project):
    results = mine.root / "results/demo"
    done = mine.make("--claim", ABOVE_HALF)
    transformer = "runs/scan-jump-x2/transformer/default/seed-1/run.json"
    assert list_made(mine) == {transformer, f"claims/{ABOVE_HALF}"}
    assert done.stdout.splitlines() == [
        f"{ABOVE_HALF} at demo: exploratory claim",
        "  It answers more than half",
        "  effect    −50.0 points; claimed > 0; seeds 1",
        "  verdict   no verdict: the demo scale gives no verdict",
    ]
    again = mine.make("--claim", ABOVE_HALF)
    assert again.stdout == done.stdout and "Nothing to be done" in again.stderr

    mine.make("results/demo/claims.csv")
    files = ("claims.csv", "claim_sides.csv", "claims.json", "overview.rst")
    whole = {name: (results / name).read_bytes() for name in files}
    mine.make("--claim", "mine/works-on-cogs", ABOVE_HALF)
    assert {name: (results / name).read_bytes() for name in whole} == whole
    assert mine.planned("results/demo/claims.csv") == set()
    assert not (results / "claims" / ABOVE_HALF / "overview.rst").exists()
    for claim in ("works-on-cogs", "works-above-half"):
        header, row = (results / f"claims/mine/{claim}/claims.csv").read_text().splitlines()
        lines = (results / "claims.csv").read_text().splitlines()
        assert header == lines[0] and row in lines


def test_a_dry_run_and_a_plan_list_what_the_claim_needs(mine: Project):
    done = mine.make("--claim=mine/works-on-cogs", "-n")
    last = done.stdout.splitlines()[-1]
    assert last == "4 jobs: 1 prepare, 1 train, 1 evaluate, 1 claim (not run: -n)"
    assert not (mine.root / "results/demo/claims").exists()
    planned = mine.command("plan", "--claim", "mine/works-on-cogs").stdout
    assert "  runs       1\n" in planned
    assert "  jobs       4: 1 prepare, 1 train, 1 evaluate, 1 claim\n" in planned
    runs = mine.make("--claim", "mine/works-on-cogs", "-n", "runs").stdout.splitlines()[-1]
    assert runs == "3 jobs: 1 prepare, 1 train, 1 evaluate (not run: -n)"


@pytest.mark.faults
def test_a_key_of_the_configuration_does_the_same(mine: Project):
    with mine.edited("config.yaml") as config:
        config["claims"] = ["mine/works-on-cogs"]
    done = mine.make()
    assert done.stdout.startswith("mine/works-on-cogs at demo: exploratory claim\n")
    claim = "claims/mine/works-on-cogs"
    assert list_made(mine) == {"runs/cogs/transformer/default/seed-1/run.json", claim}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--claim"], "error: --claim names nothing; write <paper>/<claim>"),
        (
            ["--claim", "mine/works"],
            "error: --claim: papers/mine/claims.yaml has no claim 'works'; ",
        ),
        (
            ["--claim", "main/works-on-cogs"],
            "error: --claim: no paper 'main'; did you mean 'mine'?",
        ),
        (["--claim", ABOVE_HALF, "--papers", "mine"], "leave out --papers"),
        (["--claim", ABOVE_HALF, "results/demo/claims.csv"], "leave out results/..."),
        (
            ["--claim", "lrf/lrf-over-matched-cogs"],
            "is not measured at demo, but at small and full: ./reproduce --claim "
            "lrf/lrf-over-matched-cogs --scale small",
        ),
    ],
)
def test_what_is_refused_is_one_line(mine: Project, words: list[str], message: str):
    done = mine.reproduce(*words)
    assert done.returncode == 1 and not done.stdout
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("Using workflow")]
    assert message in line


@pytest.mark.faults
def test_a_claim_is_made_in_a_limited_time(mine: Project):
    done = mine.make("--claim", "mine/works-on-cogs", "--finish-within", "10m")
    assert "mine/works-on-cogs at demo: exploratory claim" in done.stdout
    assert (mine.root / "results/demo/exported/runs/cogs").is_dir()
    assert "the page" not in done.stdout + done.stderr


@pytest.mark.faults
def test_what_is_finished_is_shown_of_a_claim(mine: Project):
    done = mine.reproduce("--claim", ABOVE_HALF, "--finished")
    assert done.returncode == 1
    assert "  verdict   not run: not started yet" in done.stdout
    lines = done.stderr.splitlines()[-2:]
    assert lines[0] == "error: 1 run not started yet"
    assert lines[1] == f"Try again with: ./reproduce --claim {ABOVE_HALF}"
