"""What docs/adding.md says: new files are enough, and they run at once."""

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.data.preparing import prepare_data
from tests.workflow.projects import ROOT, Project

EXAMPLE = ROOT / "docs/examples/devil_detail"
OBJECTIVE = ROOT / "docs/examples/near_layers"


def add_example(project: Project, example: Path = EXAMPLE) -> None:
    """Copy its files, each of which is new."""
    files = [
        file.relative_to(example)
        for file in example.rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    ]
    assert len(files) >= 9 and not [file for file in files if (project.root / file).exists()]
    for file in files:
        (project.root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(example / file, project.root / file)


def test_a_new_paper_makes_its_table_and_verdicts_at_once(project: Project):
    project.set_demo_steps(4)
    for words in (("new-paper", "mine"), ("lint",)):
        said = project.command(*words)
        assert said.returncode == 0, said.stderr
    done = project.make("--papers", "mine")
    with open(project.root / "results/demo/tables/mine/table1.csv") as stream:
        cells = {(row["row"], row["column"]): row["status"] for row in csv.DictReader(stream)}
    assert cells == {
        (row, column): status
        for row, status in (("Transformer", "measured"), ("best constant answer", "computed"))
        for column in ("ADDJUMP 2x", "in distribution")
    }
    lines = done.stdout.splitlines()
    of_mine = "mine alone; ./reproduce --finished shows all papers of config.yaml"
    assert f"Page: results/demo/index.html ({of_mine})" in lines
    assert not [line for line in lines if "no verdict" in line]  # the demo gives none


@pytest.mark.slow
def test_the_example_makes_its_tables_figure_and_verdicts(project: Project):
    project.set_demo_steps(4)
    project.edit("catalogue/tasks/kinds.yaml", "{max_length: 130}", "{max_length: 10}")
    add_example(project)
    project.make("--papers", "devil_detail")
    results = project.root / "results/demo"
    cells = {}
    for table in ("table-cogs", "table-scan"):
        with open(results / f"tables/devil_detail/{table}.csv") as stream:
            cells |= {f"{row['row']}/{row['column']}": row for row in csv.DictReader(stream)}
    expected = {
        "relative/early stopping": ("", "stand_in", "measured"),
        "upscaled/last weights": ("", "stand_in", "measured"),
        "relative/longer": ("100", "reduced", "measured"),
        "best model/last weights": ("81", "", "published only"),
    }
    assert {
        key: tuple(cells[key][name] for name in ("published", "protocol", "status"))
        for key in expected
    } == expected
    assert (results / "figures/devil_detail/figure-cogs.svg").exists()
    with open(results / "claims.csv") as stream:
        verdicts = Counter(row["verdict"] for row in csv.DictReader(stream))
    assert verdicts == {"no verdict": 1, "not run": 3}


def test_the_examples_rerun_nothing(demo: Project):
    add_example(demo)
    add_example(demo, OBJECTIVE)
    assert demo.command("lint").returncode == 0
    assert demo.planned() == set()
    # The Transformer of the demo is trained already: its two seeds are not trained again.
    listed = demo.reproduce("--papers", "near_layers", "-n")
    assert " 4 train" in listed.stdout and " 1 table" in listed.stdout, listed.stdout


def test_a_new_method_trains_its_two_variants_alone(demo: Project):
    shutil.copytree(OBJECTIVE, demo.root / OBJECTIVE.relative_to(ROOT))
    for words in (("new-method", "mine"), ("lint",)):
        said = demo.command(*words)
        assert said.returncode == 0, said.stderr
    assert demo.planned() == set()
    listed = demo.reproduce("--papers", "mine", "-n")
    assert " 4 train" in listed.stdout and " 1 table" in listed.stdout, listed.stdout


@pytest.mark.parametrize("cutoff", [22, 26])
def test_the_example_splits_scan_by_length(cutoff, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE / "workflow_scripts/data/datasets")
    import scan_length

    splits = prepare_data(scan_length, {"cutoff": cutoff}, {}).splits
    lengths = {
        name: [len(example.target.split()) for example in rows] for name, rows in splits.items()
    }
    assert max(lengths["train"] + lengths["in_distribution"]) <= cutoff < min(lengths["test"])
    assert len(set().union(*splits.values())) == sum(map(len, splits.values())) == 20_910
    # 16,990 and 3,920 are the sizes of the official split, which has 22.
    assert cutoff != 22 or len(lengths["test"]) == 3_920
