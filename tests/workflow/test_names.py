"""Names and other free text of the configuration: none is more than a word for a shell, and none
leaves results/.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from tests.workflow.projects import ROOT, Project, copied
from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import read_catalogue

HOSTILE = (
    "../x",
    "a b",
    "a;touch x",
    "$(touch x)",
    "a\nb",
    "x" * 300,
    "é",
    "/x",
    "..",
    "`touch x`",
    "'",
    "-x",
    "",
)


def test_every_field_of_a_shell_command_is_quoted():
    text = "".join(
        file.read_text() for file in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
    )
    lines = r"""(?:        (?:".*"|'.*')\n)+"""
    commands = re.findall(rf"^    shell:\n({lines})", text, flags=re.MULTILINE)
    assert len(commands) == len(re.findall(r"^ *shell\b|\bshell\(", text, flags=re.MULTILINE)) > 10
    assert not re.search(r"^ *(run|script|notebook|wrapper|cwl):", text, flags=re.MULTILINE)
    fields = [field for command in commands for field in Formatter().parse(command) if field[1]]
    assert len(fields) > 50
    assert [field for field in fields if field[2] != "q"] == []
    # What a shell puts in is one word, too.
    folders = re.findall(r".?\$\(.*?\).?", text)
    assert len(folders) > 10
    assert {folder[0] + folder[-1] for folder in folders} == {'""'}


def test_no_code_of_a_file_is_run():
    """Neither of a pickle, nor of the hub, nor of a text, nor through a shell of our own."""
    calls = r"trust_remote_code(?!\": False|=False)|torch\.load|pickle\.loads?\(|yaml\.(unsafe_|full_)?load\("
    calls += r"|shell=True|os\.system|(?<![.\w])(eval|exec)\("
    files = [
        file
        for folder in ("workflow_scripts", "profiles")
        for file in sorted((ROOT / folder).rglob("*.py"))
    ]
    assert len(files) > 100
    assert [
        (file.name, found[0]) for file in files for found in re.finditer(calls, file.read_text())
    ] == []


def test_a_mirror_and_a_checkout_of_any_name_are_one_word(tmp_path, mirror):
    """Through Snakemake and its shell: what a shell would read otherwise is a name."""
    project = copied(tmp_path / "$(touch x); 'é {x} {{y}}")
    strange = tmp_path / "a  mirror; $(touch x) `touch x` 'é\" & \\"
    (strange / "scan").mkdir(parents=True)
    shutil.copy(mirror / "scan/LICENSE", strange / "scan")
    with project.edited("config.yaml") as config:
        config["data"]["mirror"] = str(strange)
    project.make("results/downloads/scan/LICENSE")
    assert (
        f"from {strange}/scan/LICENSE"
        in (project.root / "results/downloads/logs/scan/LICENSE.log").read_text()
    )
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


PLACE = "--scale=demo --results=results/demo --out=results/out"
DATA = "--scale=demo --data=results/demo/data/x --out=results/out"
COMMANDS = (
    f"table {PLACE} --paper=carma --display={{}}",
    f"table {PLACE} --paper={{}} --display=table1",
    "table --paper=carma --results=results/demo --out=results/out --scale={} --display=table1",
    f"figure {PLACE} --paper=carma --display={{}}",
    f"analyse {PLACE} --paper=carma --analysis={{}}",
    "prepare --scale=demo --out=results/out --task={}",
    f"candidates {DATA} --task={{}}",
    f"train {DATA} --run=scan-jump-x2/transformer/default/{{}}",
    f"train {DATA} --run={{}}/transformer/default/seed-1",
    f"search {DATA} --run={{}}/transformer/default",
    "claims --scale=demo --results=results/demo --out=results/out.csv --papers={}",
    "crate --out=results/out.zip --scale={}",
    "export --scale={}",
    "fetch -- scan/{}/x",
    "fetch-model --out=results/out -- {}",
    "new-paper -- {}",
    "new-method -- {}",
    "list -- {}",
    "plan --show=scan-jump-x2/transformer/default/{}",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_hostile_name_ends_a_command_before_it_writes_anything(place, capsys, command):
    before = set(place.parents[2].rglob("*"))
    for name in HOSTILE:
        assert main([word.format(*[name] * 2) for word in command.split()]) == 1, name
        assert capsys.readouterr().err.startswith("error: "), name
    found = {file for file in place.parents[2].rglob("*") if ".locks" not in file.parts}
    assert found - before <= {place / "results", place / "results/downloads"}


def make_table(place: Path, label: str, title: str) -> int:
    """Make a table with a row and a column of this label, without any run."""
    with Project(place).edited("papers/sq_transformer/displays.yaml") as content:
        content["displays"]["odd"] = {
            **{"source": title, "title": title, "group": title},
            "rows": [{"row": label, "method": "transformer", "variant": "default"}],
            "columns": [{"column": label, "task": "scan-jump-x2", "metric": "exact_match"}],
        }
    read_catalogue.cache_clear()
    return main(f"table {PLACE} --paper=sq_transformer --display=odd --runs".split())


def test_rows_columns_and_titles_name_no_file(place, capsys):
    """They are free text, so a table has them as they are, in files that the display alone names."""
    label, before = "..; $(touch x) `touch x` é' -" + "x" * 300, set(place.parents[2].rglob("*"))
    assert make_table(place, label, f"../x\n{label}") == 0, capsys.readouterr().err
    made = {file for file in set(place.parents[2].rglob("*")) - before if file.is_file()}
    assert made == {
        place / f"results/out/odd.{suffix}" for suffix in ("csv", "html", "json", "md", "tex")
    }
    assert (place / "results/out/odd.csv").read_text().count(label) == 2


@pytest.mark.parametrize("label", ["../x", "a\nb", "a\n", ""])
def test_a_row_or_column_that_no_cell_could_name_is_refused(place, label, capsys):
    assert make_table(place, label, "x") == 1
    said = capsys.readouterr().err
    assert (
        f"'displays.odd.rows.0.row' is {label!r}" in said
        and f"'displays.odd.columns.0.column' is {label!r}" in said
    )
