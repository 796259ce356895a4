"""The tables of claims in README: what they say of complete and of incomplete plans, and that
README has them.
"""

import csv
from pathlib import Path

import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.claim_rows import CLAIM_COLUMNS, ClaimRow, read_claim_rows
from workflow_scripts.reporting.pages.readme_tables import BEGIN, END, format_tables, replace_tables

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
        "| cat | CAT is closer | +14.9 points | −6.3 points (96.7%: −9.0 to −3.6) | 9 seeds | "
        f"**not reproduced** at small: {reason} |"
    )


@pytest.mark.parametrize("measured", [None, 0, 4])
def test_missing_seeds_show_no_effect_even_where_the_file_has_one(measured):
    incomplete = row(n_seeds=measured, verdict="no verdict", reason=f"{measured or 0} of 9 seeds")
    line = format_tables([incomplete], ["cat"], "small").splitlines()[2]
    assert line == (
        f"| cat | CAT is closer | +14.9 points |  | {measured or 0} of 9 seeds | **no verdict** at small |"
    )


def test_a_claim_of_no_loss_has_no_published_effect_and_a_95_percent_interval_no_decimal():
    line = format_tables(
        [row(published_effect=None, quantile=0.975)], ["cat"], "small"
    ).splitlines()[2]
    assert "| CAT is closer |  | −6.3 points (95%: " in line


def test_the_other_claims_are_counted_by_paper_without_controls():
    rows = [
        row(role="exploratory", verdict=verdict)
        for verdict in ("inconclusive", "inconclusive", "not run")
    ]
    rows += [row(role="exploratory", kind="control", verdict="reproduced"), row()]
    rows.append(row(paper="carma", role="exploratory", verdict="reproduced"))
    lines = format_tables(rows, ["carma", "cat"], "small").splitlines()
    assert lines[-2:] == [
        "| [carma](papers/carma/NOTES.md) |  | 1 | 1 | 0 | 0 | 0 | 0 |",
        "| [cat](papers/cat/NOTES.md) | 1: at most 5% | 3 | 0 | 0 | 2 | 0 | 1 |",
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
    assert lines[-1].startswith("| [cat](papers/cat/NOTES.md) | 2: at most 10% | 1 |")
    assert lines[3].startswith(
        f"| cat | CAT is probably closer ([later plan](papers/cat/{file})) | 14.94 chance | 0.72 chance ("
    )


def test_the_command_prints_the_tables_and_writes_them_between_the_markers(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(ROOT)
    file, readme = write(tmp_path, row()), tmp_path / "README.md"
    readme.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nText.\n")
    assert main(["readme", str(file)]) == 0
    printed = capsys.readouterr().out.rstrip("\n")
    assert main(["readme", str(file), "--write", str(readme)]) == 0
    assert readme.read_text() == f"# Title\n\n{BEGIN}\n{printed}\n{END}\n\nText.\n"
    assert "**not reproduced** at small" in printed


def test_a_file_without_markers_or_columns_is_refused(tmp_path):
    with pytest.raises(UserError, match="once each"):
        replace_tables("# Title\n", "table", "README.md")
    with pytest.raises(UserError, match="has no column role"):
        read_claim_rows(
            write(tmp_path, row(), columns=tuple(name for name in CLAIM_COLUMNS if name != "role"))
        )
    with pytest.raises(UserError, match="does not exist"):
        read_claim_rows(tmp_path / "other.csv")


def test_readme_has_the_tables_of_the_committed_claims():
    """`python -m workflow_scripts readme results/reference/small/claims.csv --write README.md` puts
    them there.
    """
    tables = format_tables(
        read_claim_rows(ROOT / CLAIMS), list(load_catalogue(ROOT).papers), "small"
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert replace_tables(readme, tables, "README.md") == readme
