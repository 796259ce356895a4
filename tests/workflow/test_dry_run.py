"""Snakemake's dry run as data."""

import argparse
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from workflow_scripts.commands import check, plan, why
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_config
from workflow_scripts.workflow.dry_run import list_jobs_to_run, load_call_config

ROOT = Path(__file__).parents[2]
SNAKEFILE = """
rule all:
    input: "second.txt"
rule one:
    output: "first.txt"
    shell: "echo 1 > {output}"
rule two:
    input: "first.txt"
    output: "second.txt"
    shell: "cp {input} {output}"
"""


@pytest.fixture
def workflow(tmp_path, monkeypatch):
    """A workflow of two jobs, in the current folder."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/plugins").symlink_to(ROOT / "profiles/plugins")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dry_run_is_a_list_of_jobs(workflow):
    first, second = list_jobs_to_run()
    assert (first.rule, first.outputs) == ("one", ["first.txt"])
    assert (second.rule, second.inputs) == ("two", ["first.txt"])
    assert not Path("first.txt").exists()
    assert [job.rule for job in list_jobs_to_run("first.txt")] == ["one"]


def test_an_error_of_snakemake_is_one_line(workflow):
    with pytest.raises(
        UserError, match=r"^no rule makes nothing\.txt; .*; settings go after --config$"
    ):
        list_jobs_to_run("nothing.txt")
    (workflow / "Snakefile").write_text("rule one:\n    nothing: 1\n")
    with pytest.raises(UserError, match=r"^snakemake --dry-run failed: .+$"):
        list_jobs_to_run()


@pytest.mark.parametrize("command", [check, plan, why])
def test_commands_take_the_same_words(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert load_call_config(parser.parse_args([])) == load_config()
    words = ["--papers", "lrf", "cat", "--scale", "small", "--config", "extra=true"]
    config = load_call_config(parser.parse_args(words))
    assert (config.papers, config.scale, config.extra) == (["lrf", "cat"], "small", True)
    with pytest.raises(UserError, match=r"^--papers: no paper 'lfr'; did you mean 'lrf'"):
        load_call_config(parser.parse_args(["--papers", "lfr"]))


@pytest.mark.parametrize(
    ("words", "settings", "others"),
    [
        ("", [], []),
        ("-n file.csv -- --papers", [], ["-n", "file.csv", "--", "--papers"]),
        ("--papers lrf cat --scale small -n", ["scale=small", "papers=[lrf,cat]"], ["-n"]),
        (
            "file.csv --scale=small --papers=lrf -j 2",
            ["scale=small", "papers=[lrf]"],
            ["file.csv", "-j", "2"],
        ),
        ("--config scale=small papers=[lrf]", ["scale=small", "papers=[lrf]"], []),
        (
            "--papers lrf -C extra=true -n --config=seeds=[1]",
            ["extra=true", "seeds=[1]", "papers=[lrf]"],
            ["-n"],
        ),
        ("--papers lrf results/small/claims.csv", ["papers=[lrf]"], ["results/small/claims.csv"]),
        ("--config extra=true results/demo/a.csv -n", ["extra=true"], ["results/demo/a.csv", "-n"]),
        ("--scale", ["scale=[]"], []),  # no scale and no list of papers: refused as in config.yaml
        ("--papers", ["papers=[]"], []),
        ("--claim", ["claims=[]"], []),
        ("--claim lrf/a cat/b --scale small -n", ["scale=small", "claims=[lrf/a,cat/b]"], ["-n"]),
        ("--claim=lrf/a -j 2", ["claims=[lrf/a]"], ["-j", "2"]),
        (
            "--default-resources a=1 b=2 downloads --scale full -n",
            ["scale=full"],
            ["--default-resources", "a=1", "b=2", "-n", "--", "downloads"],
        ),
        (
            "--set-resources train:runtime=9 results/demo/a.csv -- b.csv",
            [],
            ["--set-resources", "train:runtime=9", "--", "results/demo/a.csv", "b.csv"],
        ),
    ],
)
def test_reproduce_hands_its_words_to_snakemake(words, settings, others, tmp_path):
    """All of them before another option, so that no file is taken for a setting."""
    # Of `-m snakemake WORDS` in a dry run, else of `-m workflow_scripts run -- WORDS`.
    print_words = """
        case "$2 $3" in snakemake*) shift 2 ;; "workflow_scripts run") shift 4 ;; *) exit ;; esac
        printf '%s\\n' "$@"
    """
    copy_script(tmp_path, print_words)
    done = call_script(tmp_path, words)
    assert done.returncode == 0
    said = done.stdout.splitlines()
    end = said.index("--logger=terminal")
    # Snakemake takes the last word of a key
    last = dict(word.split("=", 1) for word in said[1:end])
    assert said[:1] == ["--config"] or not settings
    assert last == dict(word.split("=", 1) for word in settings)
    assert said[end + 1 :] == others


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ("-pn", "count"),
        ("-knj 2", "count"),
        ("--dry-run", "count"),
        ("-kp", "restore"),
        ("-j 2 --nolock", "restore"),
        ("-kt", ""),
        ("--touch", ""),
    ],
)
def test_short_options_may_be_one_word(words, mode, tmp_path):
    """A dry run, a marking and a real call treat earlier results in their own ways."""
    copy_script(tmp_path, 'case "$2 $3" in snakemake*|*run) echo "$2 $RECOMPOSE_EARLIER" ;; esac')
    module = "snakemake" if mode == "count" else "workflow_scripts"
    assert call_script(tmp_path, words).stdout == f"{module} {mode}\n"


@pytest.mark.parametrize("word", ["--budget=", "--budget", "--budget=x"])
def test_a_budget_without_a_number_starts_nothing(word, tmp_path):
    """Such as `--budget=$HOURS` where HOURS is not set."""
    copy_script(tmp_path, 'echo "$*"')
    done = call_script(tmp_path, f"{word} --scale full")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --budget needs a number of GPU-hours, such as --budget 200\n"


@pytest.mark.parametrize("word", ["--finish-within=", "--finish-within"])
def test_a_time_limit_without_a_time_is_handed_on_as_none(word, tmp_path):
    """`run` refuses it."""
    copy_script(tmp_path, '[ "$3" != run ] || echo "$4 $5"')
    assert call_script(tmp_path, word).stdout == "--finish-within none\n"


@pytest.mark.quick_faults
def test_without_locks_of_the_file_system_those_of_snakemake_stop_a_second_call(tmp_path):
    """Before anything is done: else the second would cancel the jobs of the first on a cluster."""
    copy_script(tmp_path, 'echo "$*"')
    flock = tmp_path / ".venv/bin/flock"
    flock.write_text("#!/bin/sh\nexit 71\n")
    flock.chmod(0o755)
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    assert "workflow_scripts run" in call_script(tmp_path, "").stdout
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    done = call_script(tmp_path, "")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(
        "error: Snakemake is running in this folder, or was killed: this file system has no locks "
        "that tell; if none is running: ./reproduce --unlock\n"
    )
    assert "workflow_scripts run" in call_script(tmp_path, "--unlock").stdout


def test_help_is_that_of_this_project_and_finished_has_no_dry_run(tmp_path):
    copy_script(tmp_path, "exit 3")
    shown = call_script(tmp_path, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "./reproduce --finished " in shown.stdout and "Snakemake's" in shown.stdout
    refused = call_script(tmp_path, "--finished -n")
    assert refused.returncode == 1
    assert refused.stderr.endswith(
        "error: --finished trains nothing, it only shows what is finished; leave out -n\n"
    )


def copy_script(folder: Path, python: str) -> None:
    """./reproduce alone, with lines of a shell script in the place of the environment's Python."""
    shutil.copy(ROOT / "reproduce", folder)
    (folder / "envs").mkdir()
    for name in ("clean_environment", "variables.txt"):
        shutil.copy(ROOT / "envs" / name, folder / "envs")
    for name, lines in {"envs/make_venv": "", ".venv/bin/python": python}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
        (folder / name).chmod(0o755)


def call_script(folder: Path, words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [folder / "reproduce", *words.split()], env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("words", "verified", "code"),
    [("", 0, 0), ("", 1, 1), ("", 130, 130), ("-n", 1, 0), ("--scale small", 1, 0)],
)
def test_only_the_bare_command_recomputes_the_committed_verdicts(words, verified, code, tmp_path):
    """Where they differ the run continues, and the exit code is 1; Ctrl-C ends it."""
    copy_script(tmp_path, f'echo "$*"; [ "$3" != verify ] || exit {verified}')
    committed = tmp_path / "results/reference/small/claims.csv"
    committed.parent.mkdir(parents=True)
    committed.touch()
    done = call_script(tmp_path, words)
    # without the jobs that an earlier call left on a cluster, if there is one here
    lines = [line for line in done.stdout.splitlines() if line.startswith("-m ")]
    first = "-m workflow_scripts verify results/reference/small --claims"
    assert (lines[0] == first) is not bool(words)
    assert done.stdout.count("verify") == (not words)
    assert any("--logger=terminal" in line for line in lines) is (verified != 130)
    assert done.returncode == code
    committed.unlink()
    done = call_script(tmp_path, words)
    assert (done.returncode, done.stdout.count("verify")) == (0, 0)
