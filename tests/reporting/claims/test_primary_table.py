"""The tables of claims in README and docs/verdicts.md: what they say of complete and of incomplete
plans, and that the documents have them.
"""

import csv
import json
from pathlib import Path

import pytest

from tests.config.copies import copy_project
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.claim_rows import CLAIM_COLUMNS, ClaimRow, read_claim_rows
from workflow_scripts.reporting.pages.verdict_documents import (
    BEGIN,
    END,
    format_documents,
    format_short_table,
    format_tables,
    replace_tables,
    sum_costs,
)

ROOT = Path(__file__).parents[3]
CLAIMS = "results/reference/small/claims.csv"


def row(**values) -> ClaimRow:
    usual = {
        "paper": "cat",
        "claim": "first",
        "kind": "paper",
        "role": "primary",
        "plan": "analysis_plan.yaml",
        "statement": "CAT is closer",
        "unit": "points",
    }
    usual |= {
        "published_effect": 14.94,
        "effect": -6.3,
        "ci_low": -9.04,
        "ci_high": -3.61,
        "quantile": 0.983333,
    }
    usual |= {"n_seeds": 9, "n_planned": 9, "verdict": "not reproduced"}
    return ClaimRow(**usual | values)


def write(folder: Path, *rows: ClaimRow, columns: tuple[str, ...] = CLAIM_COLUMNS) -> Path:
    file = folder / "small/claims.csv"
    file.parent.mkdir()
    with open(file, "w", newline="") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(vars(each) for each in rows)
    return file


def test_a_complete_plan_shows_effect_interval_seeds_and_verdict():
    reason = "less than a quarter of the published effect"
    line = format_tables([row(reason=reason)], ["cat"], "small").splitlines()[2]
    assert line == (
        "| cat | CAT is closer<br>`cat/first` | +14.9 points | −6.3 points (96.7%: −9.0 to −3.6) | 9 seeds | "
        f"**not reproduced** at small: {reason} |"
    )


@pytest.mark.parametrize("measured", [None, 0, 4])
def test_missing_seeds_show_no_effect_even_where_the_file_has_one(measured):
    incomplete = row(n_seeds=measured, verdict="no verdict", reason=f"{measured or 0} of 9 seeds")
    line = format_tables([incomplete], ["cat"], "small").splitlines()[2]
    assert line == (
        f"| cat | CAT is closer<br>`cat/first` | +14.9 points |  | {measured or 0} of 9 seeds "
        "| **planned**: no verdict at small yet |"
    )


def test_a_claim_of_no_loss_has_no_published_effect_and_a_95_percent_interval_no_decimal():
    line = format_tables(
        [row(published_effect=None, quantile=0.975)], ["cat"], "small"
    ).splitlines()[2]
    assert "| CAT is closer<br>`cat/first` |  | −6.3 points (95%: " in line


def test_the_other_claims_are_counted_by_paper_without_controls():
    rows = [
        row(role="exploratory", verdict=verdict)
        for verdict in ("inconclusive", "inconclusive", "not run")
    ]
    rows += [row(role="exploratory", kind="control", verdict="reproduced"), row()]
    rows.append(row(paper="carma", role="exploratory", verdict="reproduced"))
    lines = format_tables(rows, ["carma", "cat"], "small").splitlines()
    assert lines[-2:] == [
        "| [carma](../papers/carma/NOTES.md) |  | 1 | 1 | 0 | 0 | 0 | 0 |",
        "| [cat](../papers/cat/NOTES.md) | 1: at most 5% | 3 | 0 | 0 | 2 | 0 | 1 |",
    ]


def test_each_plan_of_a_paper_adds_its_share_of_wrong_verdicts():
    file = "plans/2026-11-27-longer.yaml"
    later = row(
        plan=file,
        statement="CAT is probably closer",
        unit="chance",
        effect=0.72,
        ci_low=0.55,
        ci_high=0.9,
    )
    lines = format_tables(
        [row(), later, row(role="exploratory", plan="")], ["cat"], "small"
    ).splitlines()
    assert lines[-1].startswith("| [cat](../papers/cat/NOTES.md) | 2: at most 10% | 1 |")
    assert lines[3].startswith(
        f"| cat | CAT is probably closer ([later plan](../papers/cat/{file}))<br>`cat/first` "
        "| 14.94 chance | 0.72 chance ("
    )


def test_readme_counts_the_verdicts_of_primary_claims_by_paper():
    papers = load_catalogue(ROOT).papers
    rows = [row(verdict=verdict) for verdict in ("reproduced", "inconclusive", "reproduced")]
    for seeds in (0, 4):
        reason = f"{seeds} of 9 seeds"
        rows.append(row(verdict="no verdict", reason=reason, n_seeds=seeds, n_planned=9))
    rows += [row(verdict="no verdict", reason="a control fails: too low")]
    rows += [row(role="exploratory"), row(paper="lrf", verdict="not reproduced")]
    rows += [row(paper="lrf", kind="control", verdict="inconclusive")]
    cat, lrf = format_short_table(rows, papers, "small").splitlines()[2:]
    assert cat.startswith("| *Towards Equipping Transformer ")
    assert cat.endswith(
        "| 2 reproduced, 1 inconclusive, 1 no verdict, 2 planned | [cat](papers/cat/NOTES.md) |"
    )
    assert lrf.endswith(
        "| 1 not reproduced; controls of ours: 1 inconclusive | [lrf](papers/lrf/NOTES.md) |"
    )


def test_costs_are_hours_of_threads_and_of_gpus():
    costs = sum_costs(
        [
            {"seconds": 3600, "threads": 2, "device": "cpu"},
            {"seconds": 7200.0, "threads": 1, "device": "cpu"},
            {"seconds": 5400, "threads": 8, "device": "cuda"},
            {"not_recorded": ["seconds"]},
        ]
    )
    assert (costs.runs, costs.untimed_runs) == (4, 1)
    assert (costs.core_hours, costs.gpu_hours) == (4, 1.5)
    assert str(costs) == (
        "What is committed took 4 core-hours, and 2 hours of processes on a GPU, which several "
        "share (4 trainings and scorings; "
        "1 of them have no record of time and machine)."
    )


def test_the_command_prints_the_tables_and_writes_them_between_the_markers(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(copy_project(tmp_path))
    file = write(tmp_path, row())
    Path("docs").mkdir(exist_ok=True)
    for document in ("README.md", "docs/verdicts.md"):
        Path(document).write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nText.\n")
    assert main(["readme", str(file)]) == 0
    short, full = capsys.readouterr().out.rstrip("\n").split("\n\n", 1)
    assert main(["readme", str(file), "--write"]) == 0
    for document, tables in (("README.md", short), ("docs/verdicts.md", full)):
        expected = f"# Title\n\n{BEGIN}\n{tables}\n{END}\n\nText.\n"
        assert Path(document).read_text() == expected
    assert "1 not reproduced" in short and "**not reproduced** at small" in full


def test_a_file_without_markers_or_columns_is_refused(tmp_path):
    with pytest.raises(UserError, match="once each"):
        replace_tables("# Title\n", "table", "README.md")
    with pytest.raises(UserError, match="has no column role"):
        read_claim_rows(
            write(tmp_path, row(), columns=tuple(name for name in CLAIM_COLUMNS if name != "role"))
        )
    with pytest.raises(UserError, match="does not exist"):
        read_claim_rows(tmp_path / "other.csv")


def test_the_documents_have_the_tables_of_the_committed_claims():
    """`python -m workflow_scripts readme results/reference/small/claims.csv --write` puts them
    there.
    """
    rows = read_claim_rows(ROOT / CLAIMS)
    costs = sum_costs(json.loads((ROOT / CLAIMS).with_name("provenance.json").read_text()))
    documents = format_documents(rows, load_catalogue(ROOT).papers, "small", costs)
    for document, tables in documents.items():
        text = (ROOT / document).read_text(encoding="utf-8")
        assert replace_tables(text, tables, str(document)) == text
