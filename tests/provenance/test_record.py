"""Where and from what a result was made."""

import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

from tests.provenance.fields import FIELDS
from workflow_scripts.common import system
from workflow_scripts.provenance import record
from workflow_scripts.provenance.spec_fingerprints import Fingerprint

ROOT = Path(__file__).parents[2]


def test_peak_memory_is_in_bytes_and_sees_what_was_held():
    """In a process of its own: of the tests' own the peak so far may be gigabytes."""
    code = (
        "import numpy as np; from workflow_scripts.common.system import measure_peak_memory; "
        "block = np.ones(40_000_000); print(block.nbytes, measure_peak_memory())"
    )
    parent = np.ones(150_000_000)  # 1.2 GB of the process that starts it, which are not its own
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    block, peak = map(int, done.stdout.split())
    assert block < peak < 3 * block < parent.nbytes


def test_cpu_seconds_count_work_and_not_sleep():
    began, clock = system.measure_cpu_seconds(), time.monotonic()
    time.sleep(0.3)
    assert system.measure_cpu_seconds() - began < 0.2
    while time.monotonic() - clock < 0.6:
        sum(range(1000))
    assert system.measure_cpu_seconds() > began


def test_the_commit_is_that_of_the_checkout_and_dirty_when_the_code_differs(tmp_path, monkeypatch):
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    monkeypatch.setattr(system, "PROJECT", tmp_path)
    assert system.read_commit()["commit"] is None and system.read_commit()["dirty"] is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    (tmp_path / "file").write_text("one")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-qm", "First"]):
        subprocess.run([*git, *arguments], check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert (system.read_commit()["commit"], system.read_commit()["dirty"]) == (head, False)
    (tmp_path / "file").write_text("two")
    assert system.read_commit()["dirty"] is True
    (tmp_path / "file").write_text("one")
    (tmp_path / "notes.txt").touch()
    assert system.read_commit()["dirty"] is False  # no part of the code
    (tmp_path / "workflow_scripts/models").mkdir(parents=True)
    (tmp_path / "workflow_scripts/models/new model.py").touch()
    assert system.read_commit()["dirty"] is True
    shutil.rmtree(tmp_path / ".git")
    assert system.read_commit()["commit"] is None


def test_versions_are_those_installed_of_all_that_the_project_depends_on():
    import snakemake
    import torch

    found = system.list_versions()
    # The CUDA build of the package index says `+cu130` itself, and not in its metadata.
    builds = (torch.__version__, torch.__version__.partition("+")[0])
    assert found["torch"] in builds and found["snakemake"] == snakemake.__version__
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert found.keys() == {"python", *(Requirement(text).name for text in named)}


def test_versions_are_found_without_importing_a_package():
    code = "import sys; from workflow_scripts.common import system as p; p.list_versions(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert not {"torch", "snakemake", "pandas", "numpy", "sacrebleu"} & set(loaded.split())


def test_a_record_has_every_field_of_what_was_made_here():
    facts = Fingerprint({"task": "toy"}, ("workflow_scripts.commands.train",))
    found = record.make_record(facts, "0" * 64, seed=3)
    assert found.keys() == set(FIELDS)
    assert (found["spec"], found["code_digest"], found["seed"]) == ({"task": "toy"}, facts.code, 3)
    assert found["started"] <= found["finished"] <= system.get_utc_time() and found["seconds"] > 0
    assert (
        found["cpu_seconds"] > 0 and found["gpu_seconds"] == 0 and found["peak_memory_bytes"] > 1e7
    )


def test_a_record_says_how_long_the_gpu_was_held():
    on_gpu = system.describe_cpu() | {"device": "cuda", "peak_gpu_memory_bytes": 5}
    found = record.make_record(Fingerprint({}, ()), {}, computed_on=on_gpu)
    assert found["gpu_seconds"] == found["seconds"] > 0 and found["peak_gpu_memory_bytes"] == 5
