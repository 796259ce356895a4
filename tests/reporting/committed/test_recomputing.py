"""The committed verdicts and tables follow from the committed scores, and real faults are named."""

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.reference import REFERENCE
from workflow_scripts.__main__ import main

CLAIM = "cat/comp-over-bert-bird"
DECIDED = ("reproduced", "not reproduced", "inconclusive")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what verdicts are judged from, and of the documents that have them."""
    for name in ("catalogue", "papers"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "README.md", tmp_path)
    (tmp_path / "docs").mkdir(exist_ok=True)
    for name in ("verdicts.md", "glossary.md"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    folder = tmp_path / "results/reference/small"
    shutil.copytree(REFERENCE, folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit_rows(file: Path, is_changed: Callable[[dict[str, str]], bool], **changes: str) -> None:
    with open(file, newline="") as stream:
        rows = list(csv.DictReader(stream))
    changed = [row for row in rows if is_changed(row)]
    assert changed
    for row in changed:
        row |= changes
    with open(file, "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def verify_claims(capsys: pytest.CaptureFixture) -> tuple[int, str, list[str]]:
    """The exit code, what is printed, and the errors."""
    code = main(["verify", "results/reference/small", "--claims"])
    printed = capsys.readouterr()
    return code, printed.out.strip(), printed.err.splitlines()


def count_committed() -> tuple[dict[str, int], int]:
    """Primary claims by verdict, and the scores that the decided ones compare, by the files."""
    with open(REFERENCE / "claims.csv", newline="") as stream:
        primary = [row for row in csv.DictReader(stream) if row["role"] == "primary"]
    verdicts = {verdict: sum(row["verdict"] == verdict for row in primary) for verdict in DECIDED}
    decided = {(row["paper"], row["claim"]) for row in primary if row["verdict"] in DECIDED}
    with open(REFERENCE / "claim_sides.csv", newline="") as stream:
        scores = {
            (row["paper"], row["cell"], row["seed"])
            for row in csv.DictReader(stream)
            if (row["paper"], row["claim"]) in decided and row["seed"]
        }
    return verdicts, len(scores)


@pytest.mark.slow
def test_one_line_says_what_the_committed_claims_come_to(checkout, capsys):
    code, line, errors = verify_claims(capsys)
    verdicts, scores = count_committed()
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    assert line == (
        f"{sum(verdicts.values())} primary claims (15 of papers, 2 controls of ours) "
        f"recomputed from {scores:,} committed scores "
        f"(4 claims also from predictions): {counts}, equal to README.md"
    )
    assert (code, errors) == (0, [])


def test_a_changed_score_is_an_error_of_its_claims_alone(checkout, capsys):
    scores = checkout / "results/reference/small/scores.csv"
    edit_rows(
        scores,
        lambda row: (
            (row["task"], row["method"], row["variant"], row["seed"])
            == ("bird", "cat", "comp@paws", "104")
            and row["readout"] == "comp"
            and row["metric"] == "pearson"
        ),
        value="80",
    )
    code, line, errors = verify_claims(capsys)
    assert code == 1 and line.endswith("NOT equal to what is committed")
    fields = [text for text in errors if text.startswith(f"error: {CLAIM}: ")]
    assert any(": effect is -5.51082, by the scores " in text for text in fields)
    (side,) = (text for text in fields if ": left at seed 104 is " in text)
    assert side.endswith(", by the scores 80")
    # other lines are about the same paper: its q-values follow from all of its effects
    of_the_paper = (
        "error: cat/",
        "error: docs/verdicts.md: [cat](",
        "error: README.md: *Towards Equipping Transformer ",
    )
    assert all(text.startswith(of_the_paper) for text in errors)
    assert not any("CAT_comp is closer" in text for text in errors)  # said once, of claims.csv


def test_a_claim_without_a_committed_result_says_in_one_line_how_to_get_it(checkout, capsys):
    (checkout / "papers").unlink()
    shutil.copytree(ROOT / "papers", checkout / "papers")
    shutil.copy(ROOT / "config.yaml", checkout)
    assert main(["new-paper", "mine"]) == 0
    capsys.readouterr()
    name = "mine/transformer-above-half"
    assert main(["verify", name]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith(f"error: results/reference/small has no result of {name}; ")
    assert f"`./reproduce --claim {name} --scale small` makes one" in line


@pytest.mark.slow
def test_a_changed_verdict_is_an_error(checkout, capsys):
    edit_rows(
        checkout / "results/reference/small/claims.csv",
        lambda row: row["claim"] == "comp-over-bert-bird",
        verdict="reproduced",
    )
    code, _, errors = verify_claims(capsys)
    assert code == 1
    assert errors == [f"error: {CLAIM}: verdict is reproduced, by the scores not reproduced"]


@pytest.mark.faults
def test_a_changed_line_of_the_verdicts_is_an_error(checkout, capsys):
    document = checkout / "docs/verdicts.md"
    text = document.read_text()
    before = "| 9 seeds | **not reproduced** at small: the whole interval is below 0, opposite to the claim |"
    assert text.count(before) == 1
    document.write_text(text.replace(before, "| 9 seeds | **reproduced** at small |"))
    code, _, errors = verify_claims(capsys)
    (error,) = errors
    assert code == 1
    assert error.startswith(
        f"error: docs/verdicts.md: {CLAIM}: verdict is **reproduced** at small, by the scores "
    )


@pytest.mark.faults
def test_a_changed_number_of_verdicts_in_readme_is_an_error(checkout, capsys):
    readme = checkout / "README.md"
    text = readme.read_text()
    before = "| 1 reproduced, 2 not reproduced |"
    assert text.count(before) == 1
    readme.write_text(text.replace(before, "| 3 reproduced |"))
    code, _, errors = verify_claims(capsys)
    (error,) = errors
    assert code == 1 and error.startswith("error: README.md: *Towards Equipping Transformer ")
    assert "primary claims at small is 3 reproduced, by the scores 1 reproduced, 2 not" in error


@pytest.mark.faults
def test_a_claim_that_is_not_in_the_file_is_an_error(checkout, capsys):
    file = checkout / "results/reference/small/claims.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(
        "".join(line for line in lines if not line.startswith("cat,comp-over-bert-bird,"))
    )
    code, _, errors = verify_claims(capsys)
    assert code == 1 and errors == [f"error: {CLAIM}: claims.csv lacks it"]


@pytest.mark.faults
def test_results_elsewhere_are_not_compared_with_readme(checkout, capsys):
    (checkout / "README.md").unlink()
    shutil.move("results/reference/small", "small")
    assert main(["verify", "small", "--claims"]) == 0
    assert capsys.readouterr().out.strip().endswith("equal to claims.csv")


def test_a_folder_must_be_named_as_its_scale(checkout, capsys):
    shutil.move("results/reference/small", "mine")
    assert main(["verify", "mine", "--claims"]) == 1
    assert (
        "a folder of results has the name of a scale: demo, small, full" in capsys.readouterr().err
    )


def change_predictions(
    checkout: Path, variant: str, seed: int, prediction: str, count: int
) -> None:
    """Put an answer in the place of the first `count` ones of the last weights of a seed."""
    file = checkout / f"results/reference/small/predictions/{variant}.parquet"
    frame = pd.read_parquet(file)
    rows = frame.index[
        (frame["seed"] == seed) & (frame["split"] == "test") & (frame["readout"] == "last")
    ]
    assert len(rows) > count
    frame.loc[rows[:count], "prediction"] = prediction
    frame.to_parquet(file)


@pytest.mark.faults
def test_changed_predictions_are_an_error(checkout, capsys):
    """Seed 101 of SAL is right everywhere: with 77 wrong outputs of 7,706 it is at 99.0008%."""
    run = "scan-jump-x2/sq-transformer/sal-entropy-3"
    change_predictions(checkout, run, 101, "I_JUMP", 77)
    code, line, errors = verify_claims(capsys)
    assert code == 1 and "NOT equal" in line
    assert errors == [
        f"error: {run}/seed-101: exact_match of test/all/last is 100, by its predictions 99.0008"
    ]


def test_all_of_the_committed_results_agree(checkout, capsys):
    assert main(["verify", "results/reference/small"]) == 0
    first, predictions, *unscored, tables, figures, last = capsys.readouterr().out.splitlines()
    assert first.startswith("17 primary claims (15 of papers, 2 controls of ours) recomputed ")
    # 6 seeds x 6 models x 2 methods on IDM, 8 x 2 and 5 x 2 on SCAN, 6 x 2 of SmolLM2
    computed = f" scores of {72 + 16 + 10 + 12} runs computed again from their predictions"
    assert predictions.endswith(computed)
    assert unscored == [
        line
        for task in ("bird", "cognition", "cognition-compounds", "sst", "sst2")
        for line in (
            f"  {task}: from scores only, the right answers are not here",
            f"    ./reproduce results/small/data/{task}/dataset.json  # gets them",
        )
    ]
    number = int(tables.split(" cells")[0].replace(",", ""))
    assert number > 1000
    n_figures = len(list((REFERENCE / "figures").glob("*/*.csv")))
    # That of the sememes is made of a further table of an analysis.
    expected = f"{n_figures - 1} figures drawn again from the scores; 1 more of what is not"
    assert figures == f"{expected} committed"
    assert last == (
        "results/reference/small: verdicts, predictions, tables and the values of figures agree; "
        "curves.csv, provenance.json, datasets.json and pictures are not compared"
    )


@pytest.mark.slow
def test_a_changed_value_of_a_figure_is_an_error(checkout, capsys):
    file = checkout / "results/reference/small/figures/carma/figure2a.csv"
    lines = file.read_text().split("\n")
    lines[1] = re.sub(r"(\d)\.(\d)", r"\1.9\2", lines[1], count=1)
    assert lines[1] != file.read_text().split("\n")[1]
    file.write_text("\n".join(lines))
    assert main(["verify", "results/reference/small"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: carma/figure2a: figure2a.csv:2: is ")
    assert ", by the scores " in error


@pytest.mark.slow
def test_a_changed_cell_of_a_table_is_an_error(checkout, capsys):
    edit_rows(
        checkout / "results/reference/small/tables/lrf/table-cognition.csv",
        lambda row: (row["row"], row["metric"]) == ("LRF", "cter_instance"),
        reproduced="12.5",
    )
    assert main(["verify", "results/reference/small"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors
    assert all(text.startswith("error: lrf/table-cognition/LRF/") for text in errors)
    assert all("reproduced is 12.5, by the scores " in text for text in errors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("carma/table4.csv", ",49.17,", ",94.17,", "published is 94.17, by the scores 49.17"),
        ("carma/table4.md", "49.17", "94.17", "carma/table4.md: a row is | GPT2-S CARMA"),
        ("carma/table4.tex", "49.17", "94.17", "carma/table4.tex: a row is GPT2-S CARMA"),
    ],
)
def test_a_changed_number_of_the_paper_in_a_table_is_an_error(
    checkout, capsys, file, before, after, said
):
    path = checkout / "results/reference/small/tables" / file
    path.write_text(path.read_text().replace(before, after, 1))
    assert main(["verify", "results/reference/small"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert said in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("title", "## Table 4:", "## Table 5:"), ("note", "\n- ", "\n- Not so: ")],
)
def test_a_changed_title_or_note_of_a_table_is_an_error(checkout, capsys, name, before, after):
    path = checkout / "results/reference/small/tables/carma/table4.md"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    assert main(["verify", "results/reference/small"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert f"carma/table4.md: its {name} is not that of papers/carma/displays.yaml" in error


@pytest.mark.faults
def test_a_changed_number_of_the_paper_of_a_claim_is_an_error(checkout, capsys):
    edit_rows(
        checkout / "results/reference/small/claim_sides.csv",
        lambda row: (row["claim"], row["side"]) == ("comp-over-bert-bird", "left"),
        published="999",
    )
    assert main(["verify", CLAIM]) == 1
    said = capsys.readouterr()
    assert "claim_sides.csv" in said.err
    assert "999" in said.out


def test_one_claim_shows_both_sides_by_seed(checkout, capsys):
    assert main(["verify", "sq_transformer/sal-success-addjump"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    with open(REFERENCE / "claim_sides.csv", newline="") as stream:
        sides = [row for row in csv.DictReader(stream) if row["claim"] == "sal-success-addjump"]
    for seed in map(str, range(101, 109)):
        left, right = (
            f"{float(row['value']):.2f}"
            for side in ("left", "right")
            for row in sides
            if (row["side"], row["seed"]) == (side, seed)
        )
        assert [seed, left, "✓", right, "✓"] in rows  # both also from predictions
    assert "verdict    inconclusive at small: above 50% exact_match: 2 of 8 seeds against" in text
    assert "metric     percent of outputs that are right as a whole (exact_match)" in text
    assert "above 50% exact_match    2 of 8    0 of 8" in text
    assert "effect     +0.25 share of seeds: 2 of 8 against 0 of 8" in text
    assert "SAL: systematic attention layer: queries and keys come from the codes," in text
    assert all(len(line) <= 80 for line in text.splitlines()[1:])
    # What a reviewer needs next: the paper's words, the test, and how the runs were made.
    assert "(Section 1, table 1)" in " ".join(text.split())
    facts = dict(re.findall(r"^  (\w+) {2,}(.*)$", text, re.MULTILINE))
    assert facts["test"] == "Fisher's exact test"
    assert facts["runs"] == "16"
    assert facts["torch"] == "2.11.0 (14), 2.13.0+cpu (2)"
    assert text.splitlines()[-1] == "  equal to claims.csv and docs/verdicts.md"


@pytest.mark.faults
def test_one_claim_with_a_changed_prediction_is_an_error(checkout, capsys):
    change_predictions(checkout, "scan-jump-x2/transformer/default", 104, "I_JUMP", 7000)
    assert main(["verify", "sq_transformer/sal-success-addjump"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: scan-jump-x2/transformer/default/seed-104: exact_match of ")


@pytest.mark.faults
def test_a_claim_without_its_planned_seeds_shows_no_value(checkout, capsys):
    assert main(["verify", "sq_transformer/sal-above-transformer-addjump"]) == 0
    text = capsys.readouterr().out
    assert "verdict    planned at small: 0 of 12 seeds run, no verdict yet" in text
    assert "seed  " not in text and "none is shown before the last planned seed is run" in text


@pytest.mark.faults
def test_each_field_of_a_claim_that_differs_has_a_row_and_is_said_once(checkout, capsys):
    file = checkout / "results/reference/small/claims.csv"
    edit_rows(
        file,
        lambda row: row["claim"] == "comp-over-bert-bird",
        verdict="reproduced",
        effect="5",
    )
    assert main(["verify", CLAIM]) == 1
    printed = capsys.readouterr()
    rows = [" ".join(line.split()) for line in printed.out.splitlines()]
    assert "claims.csv: verdict reproduced not reproduced" in rows
    assert "claims.csv: effect 5 -5.51082" in rows
    (error,) = printed.err.splitlines()
    assert error.startswith(f"error: {CLAIM}: claims.csv: not what follows from the committed ")


@pytest.mark.parametrize(
    ("claim", "metric"),
    [
        (
            "carma/cap-first-sst-six",
            "percent of right answers that stay right under CAP, the pooling of each word's tokens "
            "(exact_match)",
        ),
        (
            "carma/cv-six",
            "coefficient of variation of the score over draws of synonyms, the standard deviation "
            "over the mean, on the items that all compared models had right before (cv)",
        ),
    ],
)
def test_scores_under_interventions_are_described_as_what_they_are(checkout, capsys, claim, metric):
    assert main(["verify", claim]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f" metric {metric} left CARMA: cell " in text
    # Right answers would not help: the answers under the intervention are not there.
    assert " from scores only: those of interventions, analyses and gains are not rec" in text
    assert "./reproduce" not in text


def test_a_claim_says_how_to_get_right_answers_and_why_something_is_not_recorded(checkout, capsys):
    assert main(["verify", CLAIM]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("  bird: from scores only, the right answers are not here")
    command = "    ./reproduce results/small/data/bird/dataset.json  # gets them"
    assert lines[place + 1] == command
    assert "  started    not recorded" in lines
    text = " ".join(" ".join(lines).split())
    assert (
        " not recorded: an earlier export left it out of provenance.json; docs/results.md, " in text
    )


def read_claims(paper: str) -> list[dict[str, str]]:
    """The committed claims of a paper."""
    with open(REFERENCE / "claims.csv", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["paper"] == paper]


def list_shown(lines: list[str], names: set[str]) -> set[str]:
    """The claims that have a line of a table."""
    return {line.split()[0] for line in lines if line.startswith("  ")} & names


def test_a_paper_is_verified_claim_by_claim(checkout, capsys):
    claims = read_claims("lrf")
    names = {row["claim"] for row in claims}
    primary = {row["claim"] for row in claims if row["role"] == "primary"}
    assert main(["verify", "lrf"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("recomputing lrf from the scores and predictions in results/")
    assert list_shown(lines, names) == primary != names
    # What is folded is counted.
    exploratory = [row for row in claims if row["role"] != "primary" and row["kind"] == "paper"]
    counts = f"{len(exploratory)} exploratory claims of the papers at small: "
    assert any(line.startswith(counts) for line in lines)
    verify = ".venv/bin/python -m workflow_scripts verify"
    assert lines[-3:-1] == [
        f"{len(claims)} claims equal to claims.csv and docs/verdicts.md",
        f"all of them: {verify} lrf --all",
    ]
    assert lines[-1].startswith(f"one of them, with each seed: {verify} lrf/")
    assert lines[-1].rpartition("/")[2] in primary
    assert main(["verify", "lrf", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert list_shown(lines, names) == names
    assert not any(line.startswith("all of them") for line in lines)


def test_claims_are_as_wide_as_the_reader_says(checkout, capsys, monkeypatch):
    """In 80 columns no name is broken, which one copies into the next command."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["verify", "lrf"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines if "verify" not in line)
    place = lines.index("  lrf-over-transformer-cter-instance")
    assert lines[place + 1].startswith("    effect   +")
    assert any(line.startswith("    verdict  ") for line in lines[place + 2 : place + 4])


@pytest.mark.faults
def test_a_changed_claim_of_a_paper_is_an_error(checkout, capsys):
    edit_rows(
        checkout / "results/reference/small/claims.csv",
        lambda row: row["claim"] == "lrf-over-transformer-cter-instance",
        verdict="reproduced",
    )
    assert main(["verify", "lrf"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: lrf/lrf-over-transformer-cter-instance: verdict is reproduced, "
        "by the scores not reproduced"
    ]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "cat/comp-over-bert-bir",
            ["is no claim of cat; did you mean 'cat/comp-over-bert-bird'?"],
        ),
        ("lrf/x", ["is no claim of lrf; `verify lrf` lists its claims"]),
        ("qqq", ["a paper or a claim, PAPER/CLAIM; papers: carma, cat, lrf"]),
        (
            "cat/table2",
            [
                "is a table; `verify results/reference/small` recomputes the cells of all",
                "cat/comp-over-bert-bird",
            ],
        ),
        (
            "results/reference/small/claims.csv",
            ["a part of committed results; `verify results/reference/small` recomputes them all"],
        ),
        ("docs", ["docs is no crate, it has no ro-crate-metadata.json; verify takes a crate"]),
        ("README.md", ["README.md is no crate; verify takes a crate (its zip file or folder)"]),
    ],
)
def test_what_cannot_be_verified_is_named_with_what_can_in_one_line(checkout, capsys, name, parts):
    assert main(["verify", name]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: {name} ") and all(part in error for part in parts)


def test_an_export_without_claims_is_nothing_to_verify(checkout, capsys):
    shutil.copytree(REFERENCE.parent / "full", checkout / "results/reference/full")
    assert main(["verify", "results/reference/full"]) == 1
    assert capsys.readouterr().err == (
        "error: results/reference/full has exported results without claims.csv, so there is "
        "nothing to verify\n"
    )


@pytest.mark.parametrize("has_ended", [True, False])
def test_own_results_are_answered_with_the_command_that_makes_a_crate(checkout, capsys, has_ended):
    own = checkout / "results/demo"
    (own / "runs").mkdir(parents=True)
    shutil.copy(REFERENCE / "claims.csv", own)
    if has_ended:
        (own / "config.json").write_text("{}")
    assert main(["verify", "results/demo"]) == 1
    assert capsys.readouterr().err == (
        "error: results/demo has results as ./reproduce makes them; `crate --scale demo --out "
        "demo.zip` makes a crate of them, which verify takes; `check --deep` compares them with "
        "their records\n"
    )


@pytest.mark.faults
def test_answers_under_an_intervention_that_give_another_score_are_an_error(checkout, capsys):
    """As if 3 of 4 answers that were right before block 1 was pooled had stayed right."""
    file = checkout / "results/reference/small/interventions/sst/gpt2-small/carma.parquet"
    file.parent.mkdir(parents=True)
    answers = {
        "seed": 101,
        "item": list("abcd"),
        "readout": "vocabulary",
        "intervention": "cap",
        "layer": 1,
        "pooling": "max",
        "rate": None,
        "intervention_seed": None,
        "correct_before": True,
        "correct": [True, True, True, False],
    }
    pd.DataFrame(answers).to_parquet(file)
    assert main(["verify", "carma/cap-first-sst-six"]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    place = "exact_match of test/all/vocabulary/cap/1/max"
    assert error.startswith(f"error: sst/gpt2-small/carma/seed-101: {place}/")
    assert error.endswith(", by its predictions 75 (and 1 more scores)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["cat", "--claims"],
            "error: --claims is for committed results: `verify results/reference/small --claims`",
        ),
        (
            ["lrf/lrf-over-matched-addjump", "--all"],
            "error: --all is for a paper: `verify carma --all`; leave it out here",
        ),
    ],
)
def test_an_option_that_does_not_apply_is_refused(checkout, capsys, words: list[str], message: str):
    assert main(["verify", *words]) == 1
    assert capsys.readouterr().err.splitlines() == [message]
