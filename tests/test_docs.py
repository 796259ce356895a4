"""What the documents name is there."""

import ast
import doctest
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.analyses.small_runs import add_run
from tests.config.as_json import resolve_run
from workflow_scripts.__main__ import COMMANDS, main
from workflow_scripts.common.files import write_json
from workflow_scripts.config.loading import load_catalogue

ROOT = Path(__file__).parents[1]


def marks(file: Path) -> dict[str, set[str]]:
    """The marks of each test of a file, its own and those of all its tests."""
    tree = ast.parse(file.read_text())
    common = marked(*(node for node in tree.body if ast.unparse(node).startswith("pytestmark = ")))
    tests = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
    return {node.name: common | marked(*node.decorator_list) for node in tests}


def marked(*nodes: ast.AST) -> set[str]:
    return {name for node in nodes for name in re.findall(r"mark\.(\w+)", ast.unparse(node))}


def test_the_tests_in_the_table_of_faults_exist_and_run_when_it_says():
    """Those without * by default, and all of them with `-m faults`."""
    rows = [
        line.split("|")[3]
        for line in (ROOT / "docs/faults.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    named = 0
    for row in rows[1:]:
        file = ""
        for path, name, stars in re.findall(
            r"`(?:([\w/]+\.py)(?:::)?)?…?(\w*)…?`((?: [*=])*)", row
        ):
            file = path or file
            own = {
                test: found for test, found in marks(ROOT / "tests" / file).items() if name in test
            }
            assert own, f"no test {file}::{name}"
            for test, found in own.items():
                assert found & {"faults", "quick_faults"}, f"{file}::{test} is not among the faults"
                assert ("quick_faults" in found) != ("*" in stars), (
                    f"{file}::{test}: * where it is not run by default"
                )
            named += 1
    assert named > 30


def test_the_notes_on_lrf_name_every_variant():
    """What the paper leaves open is a variant with a default and its reason."""
    notes = (ROOT / "papers/lrf/NOTES.md").read_text()
    variants = load_catalogue(ROOT).methods["lrf"].variants
    assert not [
        name
        for name in variants
        if not {f"`{name}`", f"`lrf/{name}`"} & set(re.findall("`[^`]+`", notes))
    ]


def test_the_notes_on_sq_transformer_are_short_and_begin_with_findings():
    lines = (ROOT / "papers/sq_transformer/NOTES.md").read_text().splitlines()
    assert len(lines) <= 150
    assert next(line for line in lines if line.startswith("## ")).startswith("## Findings")


def test_the_tests_that_security_promises_exist_and_run_by_default():
    """But for the one that installs the public validator of crates."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "docs/security.md").read_text())
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    left_out = set(re.findall(r"not (\w+)", options["addopts"])) | {"faults"}
    assert len(named) > 8 and {"slow", "validator"} <= left_out
    only_on_request = set()
    for file, test in named:
        found = marks(ROOT / "tests" / file)
        assert test in found, f"no test {file}::{test}"
        if found[test] & left_out and "quick_faults" not in found[test]:
            only_on_request.add(f"{file}::{test}")
    assert only_on_request == {
        "workflow/test_crate.py::"
        "test_the_public_validator_of_workflow_run_crates_accepts_it_and_refuses_another"
    }


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_links_and_commands_of_a_document_exist(file):
    text = file.read_text()
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert not [link for link in links if not (file.parent / link.split("#")[0]).exists()]
    assert set(re.findall(r"python -m workflow_scripts ([a-z][\w-]*)", text)) <= {
        *COMMANDS,
        "COMMAND",
    }


DOCUMENTED = yaml.safe_load((ROOT / "tests/documented_commands.yaml").read_text())
BEGINNINGS = (".ci/", ".venv/", "./", "cp ", "npm ", "pip ", "python ", "sbatch ", "snakemake ")


def test_every_documented_command_is_run_by_a_test_or_says_why_not():
    found = set()
    for file in (*DOCUMENTS, ROOT / "CONTRIBUTING.md"):
        lines = re.findall(
            rf"^    ((?:{'|'.join(map(re.escape, BEGINNINGS))}|[A-Z_]+=).*)$",
            file.read_text(),
            re.MULTILINE,
        )
        found |= {re.sub(r"\s+#.*", "", line).strip() for line in lines}
    assert found == set(DOCUMENTED)
    for command, shown in DOCUMENTED.items():
        for file, _, test in re.findall(r"test ([\w/]+\.py)(::(\w+))?", shown):
            assert (ROOT / "tests" / file).is_file(), command
            assert not test or test in marks(ROOT / "tests" / file), command


@pytest.mark.parametrize(
    "command", [command for command, shown in DOCUMENTED.items() if shown == "here"]
)
def test_a_documented_command_works(command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    words = command.replace("RUN", "sst2/cat/mix/seed-1").partition("workflow_scripts ")[2].split()
    assert main(words) == 0
    assert capsys.readouterr().out


def test_the_examples_of_the_configuration_are_a_paper_that_passes_the_checks(tmp_path):
    """And the settings of a run are those that its comments say."""
    text = (ROOT / "docs/configuration.md").read_text()
    blocks = {
        heading: "\n".join(line[4:] for line in body.splitlines() if line.startswith("    "))
        for heading, body in re.findall(
            r"^## ([^\n]+)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL
        )
    }
    shutil.copytree(ROOT / "catalogue", tmp_path / "catalogue")
    paper, published = (
        tmp_path / "papers/mine",
        (ROOT / "papers/lrf/published.csv").read_text().splitlines()[0],
    )
    paper.mkdir(parents=True)
    method = blocks["Four layers of settings"].partition("# catalogue/methods/mine.yaml\n")[2]
    (tmp_path / "catalogue/methods/mine.yaml").write_text(method)
    for name, content in {
        "experiments.yaml": "title: Mine\ncitation: Me\n" + blocks["Experiments"],
        "displays.yaml": blocks["Displays and axes"],
        "claims.yaml": blocks["Claims"],
        "analysis_plan.yaml": blocks["Analysis plans"],
        "published.csv": published + "\n",
    }.items():
        (paper / name).write_text(content)
    catalogue = load_catalogue(tmp_path)
    assert [column.column for column in catalogue.papers["mine"].displays["table1"].columns] == [
        "COGS", "JUMP", "COGS in distribution", "JUMP in distribution"
    ]  # fmt: skip
    assert [claim.kind for claim in catalogue.papers["mine"].claims if claim.kind != "paper"] == [
        "control"
    ]
    rates = {name: resolve_run(catalogue, f"cogs/{name}/seed-1", "small")["training"]["learning_rate"]
             for name in ("transformer/default", "mine/default", "mine/slow")}  # fmt: skip
    assert list(rates.values()) == [0.001, 0.002, 0.0001]


@pytest.mark.parametrize(("name", "examples"), [("python.md", 6), ("statistics.md", 5)])
def test_the_examples_in_python_run(
    name: str, examples: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = add_run(tmp_path / "results/demo", "scan-jump-x2/sq-transformer/sal/seed-1").folder
    settings = {"splits": ["test"], "batch_tokens": 512}
    write_json(
        run / "eval/evaluation.json",
        {"run": "scan-jump-x2/sq-transformer/sal/seed-1", "spec": settings},
    )
    (tmp_path / "results/reference").symlink_to(ROOT / "results/reference")
    monkeypatch.chdir(tmp_path)
    failed, attempted = doctest.testfile(
        str(ROOT / "docs" / name),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert not failed and attempted >= examples


def test_the_stops_of_a_batch_and_the_folders_of_the_code_exist():
    """Of docs/code.md: every stop is a file, a rule or a function, and every folder is named."""
    text = (ROOT / "docs/code.md").read_text()
    stops = re.findall(
        r"^\| (\d+) \| `([\w/.]+)`(?: `([\w.]+)`)?(?:, rule `(\w+)`)? \|", text, re.M
    )
    assert [int(number) for number, *_ in stops] == list(range(1, 21))
    for _, path, name, rule in stops:
        if not name:
            assert (ROOT / path).is_file()
            assert not rule or f"rule {rule}:" in (ROOT / path).read_text()
            continue
        tree: ast.AST = ast.parse((ROOT / "workflow_scripts" / path).read_text())
        for part in name.split("."):
            named = [
                node for node in ast.iter_child_nodes(tree) if getattr(node, "name", "") == part
            ]
            assert len(named) == 1, f"{path} has no {name}"
            tree = named[0]
    folders = {path.name for path in (ROOT / "workflow_scripts").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(
        re.findall(
            r"`(\w+)`",
            " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `")),
        )
    )
