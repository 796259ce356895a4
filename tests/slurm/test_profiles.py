"""The shipped profiles, as far as they can be tried without a cluster."""

import re
import shutil
import subprocess

import pytest
import yaml

from tests.workflow.projects import ROOT, Project

PROFILES = ("slurm-gpus", "slurm-gres")


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_leaves_the_users_own_settings_alone(name: str):
    """A `default-resources` here would erase the account and partition of the user's profile."""
    profile = yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text())
    assert "default-resources" not in profile and "config" not in profile and "slurm-array-jobs" not in profile


def test_profiles_differ_in_the_form_of_gpus_only():
    gpus, gres = (yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text()) for name in PROFILES)
    asking = ("search", "train", "evaluate", "intervene")
    assert gres.pop("set-resources") == {key: {"gpu": 0, "gres": "gpu:1"} for key in asking}
    assert gres == gpus


def test_both_forms_of_gpus_are_those_of_every_rule_that_asks_for_some():
    """One that the profile forgot would ask for GPUs in the form that the cluster refuses."""
    rules = "".join(file.read_text() for file in (ROOT / "rules").glob("*.smk"))
    asking = {
        name for name, body in re.findall(r"^rule (\w+):\n((?:    .*\n|\n)+)", rules, re.MULTILINE) if "gpu=" in body
    }
    profile = yaml.safe_load((ROOT / "profiles/slurm-gres/profile.yaml").read_text())
    assert len(asking) == 4 and asking == set(profile["set-resources"])


@pytest.mark.parametrize("name", PROFILES)
def test_a_dry_run_needs_no_slurm(project: Project, name: str):
    done = project.reproduce(f"--workflow-profile=profiles/{name}", "-n")
    assert done.returncode == 0, done.stderr
    assert "not run: -n" in done.stdout


def test_without_slurm_the_error_is_one_line(project: Project):
    if shutil.which("squeue") and subprocess.run(["squeue", "--me"], capture_output=True).returncode == 0:
        pytest.skip("this machine belongs to a cluster")
    done = project.reproduce("--workflow-profile", "profiles/slurm-gpus")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: SLURM does not answer; call the same command again when `squeue --me` works"
    )
    assert not (project.root / "results").exists()


def test_no_rule_retries_by_itself():
    """A rule's own retries would be spent inside the one allocation that was too small."""
    files = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    assert len(files) > 5 and not [line for line in lines if line.startswith(("retries", "restart"))]
    for name in PROFILES:
        assert yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text())["retries"] == 2


@pytest.mark.parametrize("words", [("--slurm-array-jobs", "all"), ("--slurm-array-jobs=train",)])
def test_job_arrays_are_refused(project: Project, words: tuple[str, ...]):
    done = project.reproduce("--workflow-profile=profiles/slurm-gpus", *words)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: slurm-array-jobs is not supported")
    with project.edited("profiles/slurm-gpus/profile.yaml") as profile:
        profile["slurm-array-jobs"] = "all"
    done = project.reproduce("--workflow-profile=profiles/slurm-gpus", "-n")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: slurm-array-jobs is not supported")
    assert not (project.root / "results").exists() and not (project.root / ".snakemake/running").exists()
