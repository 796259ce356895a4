"""What a server checks: nothing is left out there without a failure."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci/run"
SCRIPTS = [SCRIPT, ROOT / ".ci/lint", ROOT / ".ci/steps"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))


def function(name: str) -> str:
    """A function of a script in .ci."""
    text = "\n".join(script.read_text() for script in SCRIPTS)
    return re.search(rf"^{name}\(\) {{.*?^}}$", text, re.MULTILINE | re.DOTALL)[0]


def call(name: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call a function of a script in .ci in a folder, with nothing but git to be found."""
    words = f"{function('leave_out')}\n{function(name)}\n{name}"
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "git").unlink(missing_ok=True)
    (tools / "git").symlink_to("/usr/bin/git")
    return subprocess.run(
        ["/bin/bash", "-c", words],
        cwd=folder,
        env={"PATH": str(tools), **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", ["types", "workflows", "whole_history"])
def test_what_cannot_be_checked_fails_on_a_server_alone(name: str, tmp_path: Path):
    here, server = call(name, tmp_path), call(name, tmp_path, CI="true")
    assert (here.returncode, server.returncode) == (0, 1)
    (said,) = here.stdout.splitlines()
    (error,) = server.stdout.splitlines()
    assert said.startswith("== SKIPPED: ") and error.startswith("error: ")
    assert said.removeprefix("== SKIPPED: ") in error


def test_a_shallow_clone_has_no_whole_history(tmp_path: Path):
    words = (
        "git init -q a && git -C a -c user.name=a -c user.email=a@b commit -q --allow-empty -m 1"
    )
    words += " && git -C a -c user.name=a -c user.email=a@b commit -q --allow-empty -m 2"
    words += ' && git clone -q --depth 1 "file://$PWD/a" b'
    subprocess.run(["bash", "-c", words], cwd=tmp_path, check=True)
    assert call("whole_history", tmp_path / "a", CI="true").returncode == 0
    assert "the clone is shallow" in call("whole_history", tmp_path / "b", CI="true").stdout
    assert call("whole_history", tmp_path / "b").returncode == 0


def test_slurm_is_not_left_out_on_a_server():
    lines = SCRIPT.read_text().replace("||\n", "|| ").splitlines()
    left_out = [line for line in lines if "NOTHING OF THE CLUSTER" in line]
    assert len(left_out) == 2
    for line in left_out:
        assert re.search(r'^ +leave_out ".*" \|\| +failed\+=\(SLURM\)$', line), line


def test_all_steps_run_and_the_failed_ones_are_named(tmp_path: Path):
    words = f"""
        . {ROOT}/.ci/steps
        step "first" false
        step "second" echo done
        step "third" test "" = "a"
        printf '%s\\n' "${{failed[@]}}"
    """
    said = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True).stdout
    assert "done" in said.splitlines()
    assert said.splitlines()[-2:] == ["first", "third"]


def test_the_linters_run_before_everything_that_takes_long():
    steps = [line for line in SCRIPT.read_text().splitlines() if line.startswith("step ")]
    assert steps.index('step "lint" .ci/lint') < steps.index('step "demo" to_its_end')


def test_the_server_has_the_whole_history_and_says_that_it_is_one():
    (job,) = yaml.safe_load((ROOT / ".github/workflows/checks.yaml").read_text())["jobs"].values()
    assert job["steps"][0]["with"] == {"fetch-depth": 0}
    *_, safe, run = (step["run"] for step in job["steps"] if "run" in step)
    assert safe == 'sudo git config --system --add safe.directory "$GITHUB_WORKSPACE"'
    assert run == "sudo --preserve-env=PATH,CI .ci/run"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_named_by_commit(file: Path):
    """A tag can be moved to other code."""
    for job in yaml.safe_load(file.read_text())["jobs"].values():
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
