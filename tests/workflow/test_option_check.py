"""What is said of options that Snakemake refuses with its usage, or ignores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.workflow.option_check import find_wrong_options, list_rules, suggest_option
from workflow_scripts.workflow.snakemake_call import read_arguments

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--buget 67 -n", "there is no option --buget; did you mean '--budget'?"),
        ("--dry-rn", "there is no option --dry-rn; did you mean '--dry-run'?"),
        (
            "--profile NOPE",
            "no profile NOPE; one of your own is in ~/.config/snakemake/NOPE/profile.yaml; those of "
            "this project, after --workflow-profile: profiles/default, profiles/gpu, profiles/slurm",
        ),
        ("--seed 3", "there is no option --seed; write --config seeds=[3]"),
        ("--gpu-speed 0.3", "there is no option --gpu-speed; write --config gpu_speed=VALUE"),
        (
            "--learning-rate 0.1",
            "there is no option --learning-rate; training.learning_rate is set in catalogue/, and no "
            "call changes it; with another value write a variant of your own: docs/adding.md#a-method",
        ),
        (
            "--zzz",
            "there is no option --zzz; its own are --papers, --scale, --claim, --budget, "
            "--finish-within, --finished, --yes, --export-weights, all others Snakemake's: "
            ".venv/bin/snakemake --help",
        ),
        ("--claims lrf/a", "there is no option --claims; did you mean '--claim'?"),
        ("--finish-withn=5m", "there is no option --finish-withn; did you mean '--finish-within'?"),
    ],
)
def test_an_unknown_option_is_answered_with_a_known_one(words: str, expected: str):
    with pytest.raises(UserError) as refused:
        read_arguments(words.split())
    assert suggest_option(str(refused.value)) == expected


def test_a_profile_of_the_users_own_is_suggested(tmp_path: Path):
    """In another process, because Snakemake looks up the user's folder only once."""
    profile = tmp_path / ".config/snakemake/mycluster/profile.yaml"
    profile.parent.mkdir(parents=True)
    profile.write_text("default-resources: {slurm_account: physics, qos: normal}\n")
    said = check_options("--profile", "myclustr", home=tmp_path)
    assert said.startswith(
        "error: no profile myclustr; did you mean 'mycluster'? one of your own is in "
        "~/.config/snakemake/myclustr/profile.yaml; those of this project"
    )
    assert check_options("--profile", "mycluster", home=tmp_path) == ""
    words = ["--profile", "mycluster", "--default-resources", "slurm_account=biology"]
    assert check_options(*words, home=tmp_path) == (
        "--default-resources replaces those of your profile: without qos; name all of them in one "
        "place\n"
    )
    profile.write_text("default-resources: {slurm_acount: physics}\n")
    assert check_options("--profile", "mycluster", home=tmp_path) == (
        "error: default-resources of your profile, slurm_acount: nothing reads 'slurm_acount'; "
        "did you mean 'slurm_account'?\n"
    )


def check_options(*words: str, home: Path) -> str:
    """Return what the check of these words says to a user with this home."""
    command = [sys.executable, "-m", "workflow_scripts", "check-options", "--", *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "profiles/plugins"), "HOME": str(home)}
    environment.pop("XDG_CONFIG_HOME", None)
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    return done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--cores many", "must be integer"),
        ("--rerun-triggers weather", "invalid choice: 'weather'"),
    ],
)
def test_another_mistake_keeps_snakemakes_message(words: str, message: str):
    with pytest.raises(UserError, match=message) as refused:
        read_arguments(words.split())
    assert suggest_option(str(refused.value)) is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "--workflow-profile profiles/slrum",
            "--workflow-profile profiles/slrum is no folder; did you mean 'profiles/slurm'?",
        ),
        (
            "--set-resources trian:runtime=2880",
            "--set-resources names the rule 'trian'; did you mean 'train'?",
        ),
        (
            "--set-threads evalute=2",
            "--set-threads names the rule 'evalute'; did you mean 'evaluate'?",
        ),
    ],
)
def test_a_value_that_names_nothing_is_answered_with_what_was_meant(words: str, expected: str):
    assert list(find_wrong_options(words.split())) == [expected]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--cores 1 -n",
        "--workflow-profile none --cores 2",
        "--set-resources train:runtime=2880 --set-threads train=2",
        "--config seeds=[1,2] extra=true",
    ],
)
def test_what_snakemake_would_use_is_no_problem(words: str):
    assert not list(find_wrong_options(words.split()))


@pytest.mark.parametrize("profile", ["profiles/slurm", "slurm"])
def test_the_profile_of_a_cluster_is_found(profile: str):
    """In another process, because Snakemake looks for executors only once in a process."""
    command = [sys.executable, "-m", "workflow_scripts", "check-options", "--"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "profiles/plugins")}
    done = subprocess.run([*command, "--workflow-profile", profile], env=environment, cwd=ROOT)
    assert done.returncode == 0


def test_all_rules_are_known():
    rules = list_rules((ROOT / "rules").glob("*.smk"))
    assert {"fetch", "prepare", "train", "evaluate", "intervene", "claims"} <= set(rules)
    assert {"fetch_again", "prepare_large"} <= set(rules)  # by `use rule`
