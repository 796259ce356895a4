"""Whatever is wrong with a file that a user edits or brings: a command fails, names it, and changes
no file.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.limits import HANGS
from tests.malformed.conftest import RUNS, Place, assert_refused, call
from tests.malformed.damages import FORMATS, set_key
from tests.training.toy import environment

CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())


def words(name: str) -> list[str]:
    return (
        CASES["commands"].get(name, name).format(runs=" ".join(RUNS), run=f"runs/{RUNS[0]}").split()
    )


DAMAGED = [
    (file.format(run=f"runs/{RUNS[0]}"), command, kind, damage)
    for file, (kind, *commands) in CASES["files"].items()
    for command in commands
    for damage in FORMATS[kind]
    if f"{Path(file).name} {damage}" not in CASES["harmless"] or command in ("evaluate", "answer")
]


# Of YAML files, which take long, every fifth damage is tried in each call, else every third; the
# others by `-m many`.
USUAL = [
    pytest.param(*case, marks=pytest.mark.many if number % (5 if case[2] == "yaml" else 3) else ())
    for number, case in enumerate(DAMAGED)
]


@pytest.mark.parametrize(("file", "command", "kind", "damage"), USUAL)
def test_a_damaged_file_is_refused(place: Place, file: str, command: str, kind: str, damage: str):
    changed = FORMATS[kind][damage](place.content[file])
    place.write(file, changed)
    if (
        command in ("evaluate", "answer", "intervene")
        and changed is not None
        and not file.endswith("run.json")
    ):
        place.record(file)
    assert_refused(place, words(command), file)


def test_the_project_is_right_before_any_damage(place: Place):
    # lint knows no task for the variants of the papers that are left out here.
    for name in CASES["commands"]:
        if name not in ("lint", "train-named", "fetch", "check", "verify", "verify-zip"):
            assert call(words(name))[0] == 0, (name, call(words(name)))
            shutil.rmtree("new", ignore_errors=True)


VALUES = [
    (entry["file"], entry["command"], key, value)
    for entry in CASES["values"]
    for key, values in entry["keys"].items()
    for value in values
]


@pytest.mark.parametrize(("file", "command", "key", "value"), VALUES)
def test_a_wrong_value_is_refused(place: Place, file: str, command: str, key: str, value: object):
    place.write(file, set_key(place.content[file], key, value))
    assert_refused(place, words(command), file)


REMOVED = [
    (entry["file"], entry["command"], key)
    for entry in CASES["values"]
    for key in entry.get("removed", ())
]


@pytest.mark.parametrize(("file", "command", "key"), REMOVED)
def test_a_missing_key_is_refused(place: Place, file: str, command: str, key: str):
    place.write(file, set_key(place.content[file], key, None, remove=True))
    assert_refused(place, words(command), file)


NAMED = [
    (command, name) for command in CASES["names"]["commands"] for name in CASES["names"]["names"]
]
NAMED += [(command, "") for command in CASES["names"]["swapped"]]
NAMED += [
    (f"{command} --config NAME", word)
    for command in ("plan", "check")
    for word in CASES["names"]["config"]
]


@pytest.mark.parametrize(("command", "name"), NAMED)
def test_an_odd_name_is_refused(place: Place, command: str, name: str):
    name = name.replace("LONG", "x" * 300)
    assert_refused(place, [word.replace("NAME", name) for word in command.split()], "")


# Commands that import nothing heavy before they read these files.
REAL = [
    *(
        ("toy.json", "train", "json", name)
        for name in ("empty", "a folder", "latin-1", "half", "twice", "deep lists")
    ),
    *(
        ("data.json", "prepare", "json", name)
        for name in ("noise", "zeros", "utf-16", "many digits", "null")
    ),
    *(("crate.zip", "verify-zip", "zip", name) for name in ("encrypted", "outside")),
    *(
        ("config.yaml", "check", "yaml", name)
        for name in ("a date", "odd keys", "aliases", "a tag", "deep by indent")
    ),
    *(
        ("trusted.csv", "trusted", "csv", name)
        for name in ("no header", "a cell more", "a NUL", "a large cell")
    ),
]


@pytest.mark.parametrize(("file", "command", "kind", "damage"), REAL)
def test_a_real_command_refuses_a_damaged_file(
    place: Place, file: str, command: str, kind: str, damage: str
):
    def run(words: list[str]) -> tuple[int, str]:
        line = [sys.executable, "-m", "workflow_scripts", *words]
        done = subprocess.run(
            line, env=environment(), capture_output=True, text=True, timeout=HANGS
        )
        return done.returncode, done.stderr

    assert len(REAL) == 22
    place.write(file, FORMATS[kind][damage](place.content[file]))
    assert_refused(place, words(command), file, run)


@pytest.mark.skipif(os.getuid() == 0, reason="root reads every file")
@pytest.mark.parametrize(
    ("file", "command"), [(file, command) for file, (_, command, *_) in CASES["files"].items()]
)
def test_a_file_without_permission_is_refused(place: Place, file: str, command: str):
    path = place.root / file.format(run=f"runs/{RUNS[0]}")
    path.chmod(0)
    try:
        code, said = call(words(command))
    finally:
        path.chmod(0o644)
    assert (
        code == 1
        and path.name in said
        and all(line.startswith("error: ") for line in said.splitlines())
    )


def test_each_problem_has_a_line(place: Place):
    content = set_key(
        set_key(place.content["toy.json"], "training.betas", [2.0]), "training.max_steps", -1
    )
    place.write("toy.json", content)
    assert_refused(place, words("train"), "toy.json", problems=2)
    place.write("toy.json", set_key(set_key(place.content["toy.json"], "seed", 10**20), "extra", 1))
    assert_refused(place, words("train"), "toy.json", problems=2)


# Of each format one file, and a command that reads it quickly.
MUTATED = {
    name.format(run=f"runs/{RUNS[0]}"): command for name, (_, command, *_) in CASES["files"].items()
}
# they read the catalogue again
SLOW = (
    "plan",
    "lint",
    "check",
    "claims",
    "table",
    "train-named",
    "prepare-named",
)
QUICK = {name: command for name, command in MUTATED.items() if command not in SLOW}
TEXTS = [
    "",
    "null",
    "[]",
    "{}",
    "-1",
    "1e999",
    "NaN",
    '"x"',
    "[[[[",
    "\0",
    "é",
    "{{ }}",
    "../x",
    "a;$(id)\n",
    "9" * 30,
]
mutation = st.tuples(
    st.sampled_from(["cut", "flip", "insert", "drop", "double"]),
    st.floats(0, 1),
    st.sampled_from(TEXTS),
)


def mutate(old: bytes, change: str, share: float, text: str) -> bytes:
    """Change a file at a place, which is a share of its length."""
    at = min(int(share * len(old)), len(old) - 1)
    middle = {
        "flip": bytes([old[at] ^ 255]),
        "insert": text.encode(),
        "drop": b"",
        "double": old[at : at + 50] * 2,
    }
    return old[:at] + (b"" if change == "cut" else middle[change] + old[at + 1 :])


def check_mutations(
    place: Place, files: dict[str, str], count: int, derandomize: bool = False
) -> None:
    """Whatever a mutation does to a file, a command works, or fails with lines that say why and
    changes no file.
    """

    @settings(
        max_examples=count,
        derandomize=derandomize,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.sampled_from(sorted(files)), mutation)
    def check(file: str, change: tuple[str, float, str]) -> None:
        with place.restored():
            place.write(file, mutate(place.content[file], *change))
            if files[file] in ("evaluate", "answer", "intervene") and not file.endswith("run.json"):
                place.record(file)
            assert_refused(place, words(files[file]), "", may_work=True)

    check()


def test_a_mutated_file_is_refused_or_read(place: Place):
    check_mutations(place, QUICK, 40, derandomize=True)


@pytest.mark.many
def test_ten_thousand_mutated_files_are_refused_or_read(place: Place):
    check_mutations(place, MUTATED, 10_000)
