"""Tables, figures, claims and a page of what is finished, next to results that a call makes."""

from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT, add_run
from tests.workflow.four_rows import PAPER
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import read_csv, write_json

WORDS = ["preview", "--scale", "demo", "--papers", "mine"]
WORKS = "scan-jump-x2/transformer/default/seed-1"
CRASHES = "scan-jump-x2/lrf/default/seed-1"
OUT = Path("results/preview/demo")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the catalogue and the paper `mine`, without results."""
    for name in ("catalogue", "config.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "papers/mine").mkdir(parents=True)
    for name, content in PAPER.items():
        (tmp_path / "papers/mine" / name).write_text(content)
    monkeypatch.chdir(tmp_path)


def add_scored_run(name: str, accuracy: float = 12.5) -> None:
    """A run of the demo with its scores, and the manifest that its evaluation writes last."""
    run = add_run(Path("results/demo"), name, accuracy)
    write_json(run.folder / "eval/evaluation.json", {})


def list_files(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file()}


def read_statuses() -> dict[str, tuple[str, str]]:
    """Row/column -> status and note, of the columns that the paper runs."""
    rows = read_csv(OUT / "tables/mine/table1.csv")
    cells = {f"{row['row']}/{row['column']}": (row["status"], row["note"]) for row in rows}
    return {name: cell for name, cell in cells.items() if cell[1] != "not run at demo"}


def test_what_is_finished_is_shown_and_the_rest_named(capsys: pytest.CaptureFixture[str]):
    add_scored_run(WORKS, accuracy=62.5)
    before = list_files(Path("results/demo"))
    assert main(WORDS) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"1 of 4 runs are finished; in {OUT}: 1 training, 1 table and 1 figure",
        f"Page: {OUT}/index.html",
    ]
    assert list_files(Path("results/demo")) == before, "the results themselves stay as they are"
    assert read_statuses() == {
        "works/SCAN": ("measured", ""),
        "gated/SCAN": ("not run", "not run: not finished"),
        "crashes/SCAN": ("not run", "not run: not finished"),
        "works/COGS": ("not run", "not run: not finished"),
    }
    markdown = (OUT / "tables/mine/table1.md").read_text()
    assert f"Not run, because {CRASHES} is not finished: crashes." in markdown
    assert {row["series"] for row in read_csv(OUT / "figures/mine/figure1.csv")} == {"works"}
    figure = (OUT / "figures/mine/figure1.svg").read_text()
    assert f"1 run left out: {CRASHES} is not finished" in figure

    claims = {row["claim"]: row for row in read_csv(OUT / "claims.csv")}
    assert float(claims["works-above-half"]["effect"]) == 12.5
    assert claims["gated-over-works"]["verdict"] == "not run"
    page = (OUT / "index.html").read_text()
    assert "Finished so far" in page and "1 training, 1 table and 1 figure" in page


def test_a_second_preview_has_what_was_finished_since():
    add_scored_run(WORKS)
    assert main(WORDS) == 0
    add_scored_run(CRASHES)
    assert main(WORDS) == 0
    assert read_statuses()["crashes/SCAN"] == ("measured", "")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "none of the 4 runs is finished in results/demo"),
        (["--claim", "mine/works-above-half"], "preview shows whole papers; leave out --claim"),
        (["--out", "results/demo"], "results/demo has results of runs; choose another folder"),
    ],
)
def test_what_it_refuses(words: list[str], error: str, capsys: pytest.CaptureFixture[str]):
    if words:
        add_scored_run(WORKS)
    assert main(["preview", "--scale", "demo", *words, "--config", "papers=[mine]"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {error}")
