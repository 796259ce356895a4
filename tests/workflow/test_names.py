"""Names and other free text of the configuration: none is more than a word for a shell, and none leaves results/."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Formatter

import pytest

from tests.workflow.projects import ROOT, Project, copied
from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import read_catalogue

HOSTILE = ("../x", "a b", "a;touch x", "$(touch x)", "a\nb", "x" * 300, "é", "/x", "..", "`touch x`", "'", "-x", "")
RUN = "scan-jump-x2/transformer/default"


def test_every_field_of_a_shell_command_is_quoted():
    text = "".join(file.read_text() for file in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))])
    commands = re.findall(r'^    shell:\n((?:        ".*"\n)+)', text, flags=re.MULTILINE)
    assert len(commands) == len(re.findall(r"^ *shell\b|\bshell\(", text, flags=re.MULTILINE)) > 10
    assert not re.search(r"^ *(run|script|notebook|wrapper|cwl):", text, flags=re.MULTILINE)
    fields = [field for command in commands for field in Formatter().parse(command) if field[1]]
    assert len(fields) > 50
    assert [field for field in fields if field[2] != "q"] == []


def test_no_code_of_a_file_is_run():
    """Neither of a pickle, nor of the hub, nor of a text, nor through a shell of our own."""
    calls = r"trust_remote_code(?!\": False)|torch\.load|pickle\.loads?\(|yaml\.(unsafe_|full_)?load\("
    calls += r"|shell=True|os\.system|(?<![.\w])(eval|exec)\("
    files = [file for folder in ("workflow_scripts", "profiles") for file in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 100
    assert [(file.name, found[0]) for file in files for found in re.finditer(calls, file.read_text())] == []


def test_a_mirror_and_a_checkout_of_any_name_are_one_word(tmp_path, mirror):
    """Through Snakemake and its shell: what a shell would read otherwise is a name."""
    project = copied(tmp_path / "$(touch x); 'é")
    strange = tmp_path / "a  mirror; $(touch x) `touch x` 'é\" & \\"
    (strange / "scan").mkdir(parents=True)
    shutil.copy(mirror / "scan/LICENSE", strange / "scan")
    with project.edited("config.yaml") as config:
        config["data"]["mirror"] = str(strange)
    project.make("results/downloads/scan/LICENSE")
    assert f"from {strange}/scan/LICENSE" in (project.root / "results/downloads/logs/scan/LICENSE.log").read_text()
    assert not list(tmp_path.rglob("x"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project deep in a folder, so that ../ leads to places that the test sees."""
    project = tmp_path / "a/b/project"
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, project / folder)
    shutil.copy(ROOT / "config.yaml", project)
    monkeypatch.chdir(project)
    read_catalogue.cache_clear()
    yield project
    read_catalogue.cache_clear()


def call(name: str, **names: str) -> list[str]:
    """The arguments of a command; --NAME=VALUE also for values with a leading dash."""
    return [name, *(f"--{option.replace('_', '-')}={value}" for option, value in names.items())]


SCALE = {"scale": "demo"}
DISPLAY = {"paper": "carma", "out": "results/out", "results": "results/demo"} | SCALE
DATA = {"data": "results/demo/data/x", "out": "results/out"} | SCALE
COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "table": lambda name: call("table", **DISPLAY, display=name),
    "table of a paper": lambda name: call("table", **DISPLAY | {"paper": name}, display="table1"),
    "table at a scale": lambda name: call("table", **DISPLAY | {"scale": name}, display="table1"),
    "figure": lambda name: call("figure", **DISPLAY, display=name),
    "analyse": lambda name: call("analyse", **DISPLAY, analysis=name),
    "prepare": lambda name: call("prepare", task=name, out="results/out", **SCALE),
    "candidates": lambda name: call("candidates", task=name, **DATA),
    "train": lambda name: call("train", run=f"{RUN}/{name}", **DATA),
    "train a task": lambda name: call("train", run=f"{name}/transformer/default/seed-1", **DATA),
    "search": lambda name: call("search", run=f"{name}/transformer/default", **DATA),
    "claims": lambda name: call("claims", papers=name, out="results/out.csv", results="results/demo", **SCALE),
    "crate": lambda name: call("crate", scale=name, out="results/out.zip"),
    "export": lambda name: call("export", scale=name),
    "export of weights": lambda name: [*call("export", **SCALE), "--weights", f"{RUN}/{name}", f"/{name}"],
    "fetch": lambda name: ["fetch", "--", f"scan/{name}/x"],
    "fetch-model": lambda name: ["fetch-model", "--out=results/out", "--", name],
    "new-paper": lambda name: ["new-paper", "--", name],
    "plan": lambda name: call("plan", show=f"{RUN}/{name}"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_hostile_name_ends_a_command_before_it_writes_anything(place, capsys, command):
    before = sorted(place.parents[2].rglob("*"))
    for name in HOSTILE:
        assert main(COMMANDS[command](name)) == 1, name
        said = capsys.readouterr().err
        assert said.startswith("error: ") and "Traceback" not in said, name
    found = {file for file in place.parents[2].rglob("*") if ".locks" not in file.parts}
    assert found - set(before) <= {place / "results", place / "results/downloads"}


def with_table(place: Path, rows: list[str], columns: list[str], title: str) -> list[str]:
    """Add a table to displays.yaml. Returns the command that makes it, without any run."""
    with Project(place).edited("papers/sq_transformer/displays.yaml") as content:
        content["displays"]["odd"] = {
            **{"source": title, "title": title, "group": title},
            "rows": [{"row": name, "method": "transformer", "variant": "default"} for name in rows],
            "columns": [{"column": name, "task": "scan-jump-x2", "metric": "exact_match"} for name in columns],
        }
    read_catalogue.cache_clear()
    return [*call("table", **DISPLAY | {"paper": "sq_transformer"}, display="odd"), "--runs"]


def test_rows_columns_and_titles_name_no_file(place, capsys):
    """They are free text, so a table has them as they are, in files that the display alone names."""
    names = [name for name in HOSTILE if name and "/" not in name and "\n" not in name]
    before = set(place.parents[2].rglob("*"))
    assert main(with_table(place, names, names, "../x $(touch x)\n;")) == 0, capsys.readouterr().err
    made = {file for file in set(place.parents[2].rglob("*")) - before if file.is_file()}
    assert made == {place / f"results/out/odd.{suffix}" for suffix in ("csv", "html", "json", "md", "tex")}
    text = (place / "results/out/odd.csv").read_text()
    assert all(name in text for name in names)


@pytest.mark.parametrize("label", ["../x", "a\nb", "a\n", ""])
def test_a_row_or_column_that_no_cell_could_name_is_refused(place, label, capsys):
    assert main(with_table(place, [label], [label], "x")) == 1
    said = capsys.readouterr().err
    assert f"'displays.odd.rows.0.row' is {label!r}" in said and f"'displays.odd.columns.0.column' is {label!r}" in said
