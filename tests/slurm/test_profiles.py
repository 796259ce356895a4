"""The shipped profiles, as far as they can be tried without a cluster."""

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
    instead = gres.pop("set-resources")
    assert "resources.gres(wildcards)" in instead["train"].pop("gres")
    assert instead.pop("train") == {"gpu": 0}
    assert instead == {key: {"gpu": 0, "gres": "gpu:1"} for key in ("evaluate", "intervene")}
    assert gres == gpus


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
