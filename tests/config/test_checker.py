"""Mistakes planted in the files that a user edits: `lint` names each, with its file and line,
before anything runs.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.config.copies import ROOT
from tests.workflow.projects import Project, copied
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import ANALYSES, FIGURES, list_modules, parse_options
from workflow_scripts.config import checker
from workflow_scripts.config.checker import check_files, find_problems
from workflow_scripts.config.loading import read_catalogue
from workflow_scripts.evaluation.measures import list_measures, parse_measure_options

SEQ2SEQ = "catalogue/methods/seq2seq.yaml"


class Mistake(NamedTuple):
    """In `file`, `right` becomes `wrong`; `said` is a part of the message."""

    file: str
    right: str
    wrong: str
    said: str
    found_by: str = "editor"


# Each group is planted at once, and each of its mistakes must be named.
MISTAKES = {
    group: [Mistake(file, *words) for file, mistakes in files.items() for words in mistakes]
    for group, files in yaml.safe_load(
        Path(__file__).with_name("mistakes.yaml").read_text()
    ).items()
}


@pytest.fixture(autouse=True)
def uncached():
    read_catalogue.cache_clear()
    yield
    read_catalogue.cache_clear()


def test_the_projects_own_files_have_no_problem():
    assert find_problems(ROOT) == []
    assert sum(map(len, MISTAKES.values())) > 70


def test_a_method_for_one_scale_may_be_asked_for_by_no_paper(copy: Path):
    """Its sizes are wrong at the first scale: twelve layers of the hub's model are two at `demo`, of
    which four cannot be kept.
    """
    file = copy / "papers/cat/experiments.yaml"
    lines = file.read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if "distilbert-first-4: [frozen]" not in line)
    file.write_text(text.replace("roberta-first-4: [frozen], distilbert-first-4: [frozen], ", ""))
    assert "distilbert-first-4: [frozen]" not in file.read_text()
    assert find_problems(copy) == []


@pytest.mark.parametrize("group", MISTAKES)
def test_every_planted_mistake_is_named_at_once_with_its_file_and_line(copy: Path, group: str):
    for it in MISTAKES[group]:
        text = (copy / it.file).read_text()
        assert it.right in text, f"{it.file} has no {it.right!r}"
        (copy / it.file).write_text(text.replace(it.right, it.wrong, 1))
    problems = find_problems(copy)
    assert not [line for line in problems if not re.match(r"\S+:\d+: ", line)]
    for file, _, wrong, said, _ in MISTAKES[group]:
        lines = (copy / file).read_text().partition(wrong)[0].count("\n") + 1
        found = [line for line in problems if said in line and f"{file}:" in line]
        assert found, f"{file}: {wrong!r} is not named in\n" + "\n".join(problems)
        # What axes make is named with the line of the entry that names them.
        wanted = range(lines, lines + wrong.count("\n") + 1)
        assert (
            file.startswith("papers") or int(re.search(rf"{file}:(\d+)", found[0])[1]) in wanted
        ), found


PATTERNS = (
    "config.yaml",
    "catalogue/*.yaml",
    "catalogue/*/*.yaml",
    "papers/*/*.yaml",
    "papers/*/published.csv",
)
FILES = sorted(path.relative_to(ROOT) for pattern in PATTERNS for path in ROOT.glob(pattern))


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_mutation_of_a_file_ends_in_a_traceback(copy: Path, data: st.DataObject):
    """A line is cut, doubled or written over; what is found is one line per problem."""
    file = data.draw(st.sampled_from(FILES), label="file")
    lines = (ROOT / file).read_text().splitlines()
    at = data.draw(st.integers(0, len(lines) - 1), label="line")
    change = data.draw(st.sampled_from(["drop", "double", "cut", "value", "bytes"]), label="change")
    text = data.draw(
        st.sampled_from(
            ["{", "- x", "x: 1", "'", "\t", "é", "null", "{{ }}", "10" * 20, "a" * 300]
        ),
        label="text",
    )
    if change == "cut":
        lines[at] = lines[at][: len(lines[at]) // 2]
    elif change == "value":
        lines[at] = lines[at].partition(":")[0] + ": " + text
    else:
        lines[at : at + 1] = {"drop": [], "double": [lines[at]] * 2, "bytes": [text]}[change]
    (copy / file).write_bytes(
        "\n".join(lines).encode("latin-1" if change == "bytes" else "utf-8", "replace")
    )
    read_catalogue.cache_clear()
    problems = find_problems(copy)
    (copy / file).write_bytes((ROOT / file).read_bytes())
    assert all(line and "\n" not in line and "Traceback" not in line for line in problems)


HEAVY = {
    "matplotlib",
    "numpy",
    "pandas",
    "pyarrow",
    "sacrebleu",
    "sklearn",
    "torch",
    "transformers",
}


def test_the_command_prints_one_line_for_each_problem_and_needs_no_torch(copy: Path):
    """In a separate process, so that its imports can be listed."""
    file = copy / SEQ2SEQ
    file.write_text(
        file.read_text().replace("width: 128", "widht: 128", 1).replace("name: lrf", "name: lfr", 1)
    )
    code = (
        f"HEAVY = {HEAVY}; "
        "import sys; from workflow_scripts.__main__ import main; status = main(['lint']); "
        "assert not HEAVY & set(sys.modules), HEAVY & set(sys.modules); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=copy,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) >= 2 and all(line.startswith("error: catalogue/") for line in lines), lines
    assert yaml.safe_load(file.read_text())


def test_the_options_of_every_shipped_entry_and_measure_are_parsed():
    catalogue = read_catalogue(str(ROOT), str(ROOT))
    modules = defaultdict(set)
    for paper in catalogue.papers.values():
        entries = [(ANALYSES, entry) for entry in paper.analyses.values()]
        entries += [(FIGURES, entry) for entry in paper.displays.values() if entry.kind == "figure"]
        for package, entry in entries:
            options = parse_options(entry.module, package, entry.options, "file", ())
            assert options.model_dump(exclude_unset=True, mode="json") == entry.options
            modules[package].add(entry.module)
    for package, used in modules.items():
        assert used >= set(list_modules(f"{package}.options")) and len(used) > 7
    for measure, content, metrics in MEASURES:
        assert parse_measure_options(measure, content, "file").list_metrics() == metrics
    assert [measure for measure, _, _ in MEASURES] == list_measures()


MEASURES = [  # measure, its options, the metrics that they give
    ("bleu", {"a": {"tokenize": "zh"}, "b": {"tokenize": "13a"}}, ["a", "b"]),
    ("compound_measure", {}, ["cter_instance", "cter_aggregate"]),
    ("moses_bleu", {"language": "de"}, ["bleu_tokenised", "bleu_detokenised"]),
]


def test_files_that_have_no_problem_are_not_checked_again_until_one_changes(
    copy: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(copy)
    stamp = copy / ".snakemake/checked"
    check_files(stamp)
    monkeypatch.setattr(checker, "find_problems", lambda: pytest.fail("checked again"))
    check_files(stamp)
    monkeypatch.undo()
    monkeypatch.chdir(copy)
    file = copy / "papers/lrf/published.csv"
    file.write_text(file.read_text().replace("50.3%,50.3", "50.3%,5o.3"))
    read_catalogue.cache_clear()
    with pytest.raises(UserError, match=r"published\.csv:3: '5o.3' is not a decimal number"):
        check_files(stamp)


def test_a_checkout_that_was_moved_is_not_checked_again(tmp_path: Path):
    project = copied(tmp_path / "before")
    digest_files = "from workflow_scripts.config.checker import _digest_files as f; print(f())"

    def digest() -> str:
        command = [".venv/bin/python", "-c", digest_files]
        return subprocess.run(
            command, cwd=project.root, capture_output=True, text=True, check=True
        ).stdout

    before = digest()
    project = Project(project.root.rename(tmp_path / "after"))
    assert digest() == before
    project.change_code("training/loop.py")
    assert digest() != before
