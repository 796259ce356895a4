"""Analysis plans decide as in the first commit: nothing that a verdict depends on has changed."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.copies import ROOT
from workflow_scripts.config.analysis_plan import AnalysisPlan, FirstPlan, LaterPlan

PLANS = [
    file.relative_to(ROOT)
    for pattern in ("papers/*/analysis_plan.yaml", "papers/*/plans/*.yaml")
    for file in sorted(ROOT.glob(pattern))
]


def git(root: Path, *arguments: str) -> str:
    """What git says. An error of git is a failure: a skipped test would hold no plan."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout.strip()


def first_committed(root: Path, file: Path) -> AnalysisPlan:
    """The plan as it was when it was added; of one that was added again, the first time.

    Without the whole history the test is skipped. On a server .ci/run then fails.
    """
    if not (root / ".git").exists():
        pytest.skip("needs the history of the repository: this is no git checkout")
    if git(root, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("needs the history of the repository: this is a shallow clone")
    added = git(root, "log", "--diff-filter=A", "--format=%H", "--", str(file)).splitlines()
    if not added:
        pytest.skip(f"{file} has not been committed yet")
    return parse_plan(file, git(root, "show", f"{added[-1]}:{file.as_posix()}"))


def parse_plan(file: Path, text: str) -> AnalysisPlan:
    kind = FirstPlan if file.name == "analysis_plan.yaml" else LaterPlan
    return kind(**yaml.safe_load(text))


def what_decides(plan: AnalysisPlan) -> dict[str, Any]:
    """All that a verdict depends on: neither dates nor words."""
    limits = {"measure", "published", "margin", "smallest", "threshold", "control"}
    claims = {
        entry.claim: (entry.model_dump(include=limits), plan.select_seeds(entry))
        for entry in plan.primary
    }
    whole = plan.model_dump(include={"scale", "quantile", "draws", "precision", "device"})
    return whole | {"K": len(plan.primary), "pilots": plan.pilots.seeds, "claims": claims}


def assert_held(root: Path, file: Path) -> None:
    now = parse_plan(file, (root / file).read_text())
    assert what_decides(now) == what_decides(first_committed(root, file)), (
        f"{file} does not decide as it did when it was added; take that back"
    )


@pytest.mark.parametrize("file", PLANS, ids=str)
def test_plans_decide_as_they_did_when_they_were_added(file: Path):
    assert_held(ROOT, file)


TEXT = """
scale: small
written: 2026-01-31
seeds: [101, 102, 103, 104]
pilots: {seeds: [21, 22], source: scores.csv}
quantile: 0.95
draws: 24
stop: all seeds, no more
primary:
  - claim: a-claim
    published: 8.0
    margin: 0.0
    smallest: 2.0
    control: {floor: 0.2}
    spread: {sd: 1.0, freedom: 9, paired: true}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a plan."""
    file = tmp_path / "papers/one/analysis_plan.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "A plan")
    return tmp_path


def commit(root: Path, message: str) -> None:
    git(root, "add", "--all")
    author = (
        "-c",
        "user.name=one",
        "-c",
        "user.email=one@example.org",
        "-c",
        "commit.gpgsign=false",
    )
    git(root, *author, "commit", "--quiet", "--message", message)


FILE = Path("papers/one/analysis_plan.yaml")


def test_words_and_dates_may_change(repository: Path):
    changed = TEXT.replace("2026-01-31", "2026-02-01").replace(
        "no more", "and no more  # a comment"
    )
    (repository / FILE).write_text(changed)
    assert_held(repository, FILE)
    commit(repository, "Other words")
    assert_held(repository, FILE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("margin: 0.0\n    smallest: 2.0", "margin: 1.0\n    smallest: 3.0"),
        ("smallest: 2.0", "smallest: 4.0"),
        ("published: 8.0", "published: 4.0"),
        ("floor: 0.2", "floor: 0.1"),
        ("103, 104", "103, 105"),
        ("103, 104", "103, 104, 105"),
        ("[21, 22]", "[21]"),
        ("draws: 24", "draws: 6"),
        ("scale: small", "scale: demo"),
        ("claim: a-claim", "claim: another"),
    ],
)
@pytest.mark.parametrize("committed", [False, True])
def test_what_decides_may_not_change(repository: Path, old: str, new: str, committed: bool):
    assert old in TEXT
    (repository / FILE).write_text(TEXT.replace(old, new))
    if committed:
        commit(repository, "Another plan")
    with pytest.raises(AssertionError, match="does not decide as it did"):
        assert_held(repository, FILE)


def test_a_second_claim_may_not_be_added(repository: Path):
    """With it K and the quantile change."""
    entry = TEXT[TEXT.index("  - claim") :]
    (repository / FILE).write_text(
        TEXT.replace("0.95", "0.975") + entry.lstrip("\n").replace("a-claim", "another")
    )
    with pytest.raises(AssertionError, match="does not decide as it did"):
        assert_held(repository, FILE)


def test_a_plan_that_was_removed_and_added_again_is_held_to_the_first(repository: Path):
    (repository / FILE).unlink()
    commit(repository, "None")
    (repository / FILE).parent.mkdir(exist_ok=True)
    (repository / FILE).write_text(TEXT.replace("smallest: 2.0", "smallest: 4.0"))
    commit(repository, "Again")
    with pytest.raises(AssertionError, match="does not decide as it did"):
        assert_held(repository, FILE)


def test_a_plan_is_not_held_without_the_whole_history(repository: Path, tmp_path: Path):
    (repository / FILE).write_text(TEXT.replace("smallest: 2.0", "smallest: 4.0"))
    commit(repository, "Another plan")
    shallow = tmp_path / "shallow"
    git(repository, "clone", "--quiet", "--depth=1", f"file://{repository}", str(shallow))
    with pytest.raises(pytest.skip.Exception, match="this is a shallow clone"):
        assert_held(shallow, FILE)
    shutil.rmtree(shallow / ".git")
    with pytest.raises(pytest.skip.Exception, match="this is no git checkout"):
        assert_held(shallow, FILE)


def test_what_git_refuses_is_a_failure(repository: Path):
    """As it refuses a repository of another user."""
    (repository / ".git/HEAD").write_text("")
    with pytest.raises(AssertionError, match="git rev-parse --is-shallow-repository: fatal: "):
        assert_held(repository, FILE)
