"""A file that nothing reads is named: an analysis plan `x.yml` would silently be no plan."""

import shutil
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue, read_catalogue


@pytest.fixture(autouse=True)
def uncached():
    read_catalogue.cache_clear()
    yield
    read_catalogue.cache_clear()


def write(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("scale: small\n")


def list_problems(root: Path) -> list[str]:
    """Return the lines of what `load_catalogue` raises, as seen from the root."""
    try:
        load_catalogue(root)
    except UserError as error:
        return str(error).replace(f"{root}/", "").splitlines()
    return []


def test_misnamed_files_and_folders_are_named_each(copy: Path):
    write(
        copy,
        "papers/lrf/plans/2026-12-01-more.yml",
        "papers/lrf/analysis_plan.yml",
        "papers/cat/plan/2026-12-01-more.yaml",
        "papers/lrf/captions/table-cogz.rst",
        "papers/carma/captions/table1.md.txt",
        "papers/mine/displays.yaml",
        "catalogue/scale.yaml",
        "catalogue/tasks/mine.yml",
        "catalogue/methods/mine/mine.yaml",
    )
    assert sorted(list_problems(copy)) == [
        "catalogue/methods/mine: nothing reads this folder; move its files up",
        "catalogue/scale.yaml: nothing reads it; did you mean 'scales.yaml'?",
        "catalogue/tasks/mine.yml: nothing reads it; did you mean 'mine.yaml'?",
        "papers/carma/captions/table1.md.txt: nothing reads it; did you mean 'table1.md.rst'?",
        "papers/cat/plan: nothing reads it; did you mean 'plans'?",
        "papers/lrf/analysis_plan.yml: nothing reads it; did you mean 'analysis_plan.yaml'?",
        "papers/lrf/captions/table-cogz.rst: no display 'table-cogz' in displays.yaml; "
        "did you mean 'table-cogs'?",
        "papers/lrf/plans/2026-12-01-more.yml: nothing reads it; "
        "did you mean '2026-12-01-more.yaml'?",
        "papers/mine: nothing reads its files without experiments.yaml; write it, or remove the "
        "folder",
    ]


def test_notes_tables_pictures_hidden_files_and_backups_may_be_there(copy: Path):
    write(
        copy,
        "papers/README.md",
        "papers/lrf/README.md",
        "papers/lrf/pilots-more.csv",
        "papers/lrf/paper.pdf",
        "papers/lrf/.DS_Store",
        "papers/lrf/plans/.2026.yaml.swp",
        "papers/lrf/plans/2026.yaml~",
        "papers/lrf/plans/#2026.yaml#",
        "papers/lrf/claims.yaml.orig",
        "papers/left/.DS_Store",
        "papers/planned/NOTES.md",
        "catalogue/.idea/x.xml",
        "catalogue/tasks/scan.yaml.bak",
        "catalogue/notes.md",
    )
    assert list_problems(copy) == []


def test_a_renamed_plan_is_not_taken_for_none(copy: Path):
    """The runs that it names would be asked for with the seeds of the first plan."""
    plans = copy / "papers/lrf/plans"
    shutil.move(
        plans / "2026-11-27-cognition-compounds.yaml", plans / "2026-11-27-cognition-compounds.yml"
    )
    found = "papers/lrf/plans/2026-11-27-cognition-compounds.yml: nothing reads it; "
    assert any(line.startswith(found) for line in list_problems(copy))
