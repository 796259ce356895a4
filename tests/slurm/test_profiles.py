"""The shipped profile, as far as it can be tried without a cluster."""

import re
import shutil
import subprocess

import pytest
import yaml

from tests.workflow.projects import ROOT, Project

PROFILE = "--workflow-profile=profiles/slurm"


def read_profile() -> dict:
    return yaml.safe_load((ROOT / "profiles/slurm/profile.yaml").read_text())


def test_the_profile_leaves_the_users_own_settings_alone():
    """`default-resources` would erase those of the user's profile; those of a call would erase
    `set-resources`.
    """
    assert not {"default-resources", "set-resources", "config"} & read_profile().keys()


def test_every_rule_on_a_run_asks_for_a_gpu_by_the_request_of_the_configuration():
    """One that asks otherwise would ask for GPUs in the form that the cluster refuses."""
    rules = "".join(file.read_text() for file in (ROOT / "rules").glob("*.smk"))
    bodies = re.findall(r"^rule \w+:\n((?:    .*\n|\n)+)", rules, re.MULTILINE)
    on_runs = [body for body in bodies if "JOBS.get_threads" in body]
    assert len(on_runs) == 4 and all("**GPU" in body for body in on_runs)
    assert not any("gpu=" in body or "gres=" in body for body in bodies)


def test_a_dry_run_needs_no_slurm(project: Project):
    done = project.reproduce(PROFILE, "-n")
    assert done.returncode == 0, done.stderr
    assert "not run: -n" in done.stdout
    lines = done.stderr.splitlines()
    first = lines.index("The first attempts of these jobs ask SLURM for")
    rules = [line.split()[1] for line in lines[first + 1 :] if line.startswith("   ")]
    assert {"train", "evaluate", "analyse"} <= set(rules)
    assert not {"table", "prepare", "claims"} & set(rules)  # they run where Snakemake does
    train = next(line for line in lines if " train " in line)
    assert train.endswith(" GB, --gpus=1, the default partition")


def test_a_local_dry_run_asks_slurm_for_nothing(project: Project):
    done = project.reproduce("-n")
    assert done.returncode == 0 and "SLURM" not in done.stderr


def test_without_slurm_the_error_is_one_line(project: Project):
    if (
        shutil.which("squeue")
        and subprocess.run(["squeue", "--me"], capture_output=True).returncode == 0
    ):
        pytest.skip("this machine belongs to a cluster")
    done = project.reproduce(PROFILE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: SLURM does not answer; run the same command again when `squeue --me` works"
    )


def test_no_rule_retries_by_itself():
    """A rule's own retries would be spent inside the one allocation that was too small."""
    files = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    assert len(files) > 5 and not [
        line for line in lines if line.startswith(("retries", "restart"))
    ]
    assert read_profile()["retries"] == 2


def test_job_arrays_are_refused(project: Project):
    done = project.reproduce(PROFILE, "--recompose-slurm-array-jobs", "all")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: job arrays are not supported")
