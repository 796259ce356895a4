"""The search in the workflow: what is planned, what a changed grid reruns, what `why`, `plan` and
`check` say of it.
"""

import json
import subprocess

import pytest

from tests.limits import HANGS
from tests.workflow.projects import Project

RUN = "scan-jump/transformer/default"
TARGETS = tuple(f"results/demo/runs/{RUN}/seed-{seed}/run.json" for seed in (3, 4))
CHOSEN = f"results/demo/search/{RUN}/chosen.json"


def command(project: Project, *arguments: str) -> str:
    line = [str(project.root / ".venv/bin/python"), "-m", *arguments]
    done = subprocess.run(line, cwd=project.root, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def rules(project: Project) -> list[str]:
    """The rules of the jobs that Snakemake plans for the targets."""
    return sorted({rule for rule, _ in project.planned(*TARGETS)})


@pytest.fixture
def searching(project) -> Project:
    """A project in which learning rates are searched for SCAN's Transformer, with few steps."""
    with project.edited("catalogue/tasks/scan.yaml") as tasks:
        (rule,) = tasks["scan-jump"]["when"]
        rule["options"]["limit"] = {"train": 300, "test": 50}
        search = {"seed": 1, "learning_rate": [0.001, 0.01], "batch_sentences": [64]}
        own = {"task": "scan-jump", "scale": "demo", "training": {"max_steps": 6}, "search": search}
        tasks["scan-jump"]["when"].append(own)  # not for the tasks that extend it
    return project


@pytest.mark.faults
def test_a_search_is_made_once_for_all_seeds_and_again_when_its_grid_changes(
    searching, monkeypatch
):
    monkeypatch.setenv("PATH", f"{searching.root / '.venv/bin'}:/usr/bin:/bin")
    made = command(searching, "snakemake", "--cores", "1", "--", *TARGETS)
    assert [made.count(f"rule {rule}:") for rule in ("prepare", "search", "train")] == [1, 1, 2]
    assert rules(searching) == []
    chosen = json.loads((searching.root / CHOSEN).read_text())["chosen"]
    assert all(
        json.loads((searching.root / target).read_text())["chosen"] == chosen for target in TARGETS
    )
    assert (
        command(searching, "workflow_scripts", "check")
        == "4 results agree with the current configuration\n"
    )
    # Another grid: the search and what was trained with it are stale, and each says why.
    with searching.edited("catalogue/tasks/scan.yaml") as tasks:
        tasks["scan-jump"]["when"][1]["search"]["learning_rate"] = [0.001, 0.02]
    said = command(searching, "workflow_scripts", "why", *TARGETS)
    assert f"search {RUN}: search.learning_rate.1 was 0.01 and is 0.02" in said
    assert f"train {RUN}/seed-3: search.learning_rate.1 was 0.01 and is 0.02" in said
    # the search and two trainings, each for a reason of its own
    assert "3 jobs would run at scale demo" in said.splitlines()
    checked = searching.command("check")
    assert checked.returncode == 1
    record = CHOSEN.replace("chosen.json", "record.json")
    assert f"{record}: search.learning_rate.1 was 0.01 and is 0.02" in checked.stdout.splitlines()
    assert rules(searching) == ["search", "train"]


def test_the_plan_counts_searches(searching):
    def jobs() -> str:
        said = command(
            searching, "workflow_scripts", "plan", "--scale", "demo", "--papers", "sq_transformer"
        )
        return next(line for line in said.splitlines() if "jobs " in line)

    assert " search" not in jobs()
    with searching.edited("papers/sq_transformer/experiments.yaml") as content:
        methods = {"transformer": ["default", "sinusoidal"]}
        content["demo"].append({"task": "scan-jump", "methods": methods, "seeds": {"demo": [3, 4]}})
    assert ", 2 search" in jobs()
