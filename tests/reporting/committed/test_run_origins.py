"""How the runs of a committed claim were made."""

import json
import subprocess

from workflow_scripts.common import system
from workflow_scripts.common.run_names import Run
from workflow_scripts.reporting.committed.run_origins import (
    describe_plan_versions,
    read_data_notes,
    read_run_origins,
)

RUN = Run("bird", "cat", "comp@paws", 101)
OTHER = Run("bird", "cat", "comp@paws", 102)
PARENT = Run("paws", "cat", "comp", 101)
ABSENT = Run("pairs", "cat", "pretrain", 101)


def write_provenance(folder):
    entries = [
        {
            "run": str(RUN),
            "commit": "a" * 40,
            "dirty": True,
            "device": "cuda",
            "device_name": "NVIDIA H100",
            "precision": "tf32",
            "started": "2026-11-28T04:10:45+00:00",
            "versions": {"torch": "2.11.0"},
        },
        {
            "run": str(OTHER),
            "commit": "b" * 40,
            "dirty": False,
            "device": "cpu",
            "precision": "fp32",
            "started": "2026-11-27T23:59:59+00:00",
            "versions": {"torch": "2.13.0"},
        },
        {
            "run": "paws/cat/comp/seed-101",
            "commit": "b" * 40,
            "device": "cpu",
            "precision": "fp32",
            "versions": {"torch": "2.13.0"},
        },
        {"run": "paws/cat/comp/seed-999", "commit": "c" * 40},
    ]
    file = folder / "provenance.json"
    file.write_text(json.dumps(entries))
    return file


def test_each_value_has_its_number_of_runs_with_those_of_the_weights(tmp_path):
    origins = read_run_origins(write_provenance(tmp_path), [RUN, OTHER], [PARENT, ABSENT], "")
    assert (origins.compared, origins.parents) == (2, 2)
    assert origins.commits == ("bbbbbbbbb (2), aaaaaaaaa with changed code (1), not recorded (1)")
    assert origins.devices == "cpu, fp32 (2), NVIDIA H100, tf32 (1), not recorded (1)"
    assert origins.torch_versions == "2.13.0 (2), 2.11.0 (1), not recorded (1)"
    assert origins.starts == "2026-11-27 to 2026-11-28, not recorded of 2"


def test_what_is_equal_for_all_runs_has_no_number(tmp_path):
    origins = read_run_origins(write_provenance(tmp_path), [OTHER], [], "")
    assert (origins.compared, origins.parents) == (1, 0)
    assert origins.commits == "b" * 9
    assert origins.starts == "2026-11-27"


def test_a_plan_is_compared_with_that_of_each_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "PROJECT", tmp_path)

    def git(*words):
        words = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    commits = []
    plan = tmp_path / "papers/cat/analysis_plan.yaml"
    plan.parent.mkdir(parents=True)
    for text in (None, "seeds: [1]", "seeds: [1, 2]", "seeds: [1, 2]"):
        if text:
            plan.write_text(text)
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", "next")
        commits.append(git("rev-parse", "HEAD"))
    before, earlier, planned, later = ({"commit": commit} for commit in commits)
    name = "papers/cat/analysis_plan.yaml"
    assert describe_plan_versions(name, [planned, later]) == (
        f"{name}: the same at the commits of 2 of 2 compared runs"
    )
    assert describe_plan_versions(name, [before, earlier, planned, {}]) == (
        f"{name}: the same at the commits of 1 of 4 compared runs, in another version at those of 1"
    )
    assert describe_plan_versions("", [planned]) == ""
    assert describe_plan_versions("papers/x.yaml", [planned]).endswith("history, is not here")


def test_without_a_file_nothing_is_recorded(tmp_path):
    origins = read_run_origins(tmp_path / "provenance.json", [RUN], [], "")
    assert origins.commits == origins.devices == origins.starts == "not recorded"


def test_notes_of_data_are_those_of_the_tasks_that_differ(tmp_path):
    file = tmp_path / "datasets.json"
    file.write_text(json.dumps({"paws": {"notes": ["one"]}, "idm": {"notes": ["two"]}}))
    assert read_data_notes(file, {"paws", "bird"}) == {"paws": ["one"]}
    assert read_data_notes(tmp_path / "absent.json", {"paws"}) == {}
