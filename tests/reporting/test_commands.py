"""The commands `table` and `claims` on invented results of the real catalogue."""

import csv
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from docutils.core import publish_parts
from jinja2 import Environment
from scipy import stats

from tests.provenance.fields import FIELDS
from tests.reporting.made_up import write_run
from tests.training.toy import assert_one_error
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import hash_file, hash_files, read_json, write_json
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.scores import read_scores, write_scores
from workflow_scripts.reporting.claims.claim_rows import CLAIM_COLUMNS
from workflow_scripts.reporting.tables.table import TABLE_COLUMNS

ROOT = Path(__file__).parents[2]
ACCURACY = {"transformer": 40, "sq-transformer": 95}
NAMES = [f"{task}/transformer/default" for task in ("scan-jump-x2", "scan-around-right")]
NAMES += [f"{task}/sq-transformer/sal" for task in ("scan-jump-x2", "scan-jump-x2-na-1")]
RUNS = [f"{name}/seed-{seed}" for name in NAMES for seed in (11, 12, 13)]


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def results(tmp_path):
    for name in RUNS:
        run = parse_run(load_catalogue(), name)
        accuracy = 3 if "na-1" in run.task else ACCURACY[run.method] + run.seed - 12
        write_run(
            tmp_path,
            run,
            accuracy,
            examples=400,
            readouts={"in_distribution": accuracy, "last": accuracy},
        )
    for analysis in load_catalogue().papers["sq_transformer"].analyses:
        folder = tmp_path / "analyses/sq_transformer" / analysis
        folder.mkdir(parents=True)
        write_scores(folder / "scores.csv", [])
    return tmp_path


def call(command, results, *more, runs=RUNS, scale="small"):
    arguments = [
        command,
        "--scale",
        scale,
        "--results",
        str(results),
        "--runs",
        *runs,
        *map(str, more),
    ]
    return main(arguments)


def table(results, display="table1", **more):
    where = ["--paper", "sq_transformer", "--display", display, "--out", results / "tables"]
    return call("table", results, *where, **more)


def claims(results, *more, **options):
    out = results / "claims.csv"
    return call("claims", results, "--papers", "sq_transformer", "--out", out, *more, **options)


def rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def values(results, task, method, variant):
    """The test accuracies of all seeds, read without the code under test."""
    found = []
    for seed in (11, 12, 13):
        file = results / f"runs/{task}/{method}/{variant}/seed-{seed}/eval/scores.csv"
        wanted = {"split": "test", "subset": "all", "metric": "exact_match", "readout": None}
        found += [row.value for row in read_scores(file) if row.has(wanted)]
    return found


def test_table_csv(results):
    assert table(results) == 0
    found = {(row["row"], row["column"]): row for row in rows(results / "tables/table1.csv")}
    assert tuple(next(iter(found.values()))) == TABLE_COLUMNS
    cell = found["SQ-Transformer", "JUMP"]
    expected = values(results, "scan-jump-x2", "sq-transformer", "sal")
    assert (cell["published"], cell["published_std"]) == ("99.42", "1")
    assert float(cell["reproduced"]) == pytest.approx(statistics.mean(expected))
    assert float(cell["std"]) == pytest.approx(statistics.stdev(expected), abs=1e-6)
    half = 4.302653 * statistics.stdev(expected) / 3**0.5  # t(0.975, 2)
    assert float(cell["ci_high"]) == pytest.approx(statistics.mean(expected) + half, abs=1e-4)
    assert (cell["n_seeds"], cell["protocol"], cell["status"], cell["difference"]) == (
        "3",
        "reduced",
        "measured",
        "",
    )
    assert cell["note"].startswith(
        "better than Transformer: bootstrap over 400 examples, one-sided p 0.0001"
    )
    assert found["SQ-Transformer", "COGS"]["status"] == "not run"
    assert found["SQ-Transformer", "COGS"]["note"].startswith("not run at small")
    assert found["LSTM-RNN", "JUMP"]["status"] == "published only"


def test_a_seed_whose_score_is_not_defined_is_counted_once(results):
    """However many rows of its evaluation say why."""
    folder = results / "runs/scan-around-right/transformer/default/seed-12/eval"
    place = {"split": "test", "subset": "all", "metric": "exact_match"}
    scores = [row for row in read_scores(folder / "scores.csv") if not row.has(place)]
    write_scores(folder / "scores.csv", scores)
    absent = [place | {"readout": readout, "reason": "no item"} for readout in ("cont", "mix")]
    write_json(folder / "evaluation.json", {"files": hash_files(folder), "absent": absent})
    assert table(results) == 0
    found = {(row["row"], row["column"]): row for row in rows(results / "tables/table1.csv")}
    cell = found["Transformer", "AROUNDR"]
    assert cell["n_seeds"] == "2" and cell["note"].startswith(
        "seeds without a value, left out: 1 (no item)"
    )


def test_a_table_of_all_formats_says_how_data_were_made_that_are_not_the_papers_own(results):
    notes = ["train: 12 of 20 lines", "valid: 3 lines"]
    for task, protocol in (("scan-jump-x2", "reduced"), ("scan-around-right", "paper")):
        write_json(results / f"data/{task}/dataset.json", {"protocol": protocol, "notes": notes})
    assert table(results) == 0
    assert {path.suffix for path in (results / "tables").glob("table1.*")} == {
        ".csv",
        ".md",
        ".tex",
        ".html",
        ".json",
    }
    said = "Data of SCAN ADDJUMP 2x, protocol reduced: train: 12 of 20 lines; valid: 3 lines."
    for suffix in ("md", "tex", "html"):
        text = (results / f"tables/table1.{suffix}").read_text().replace("\u00a0", " ")
        parts = (
            "99.42",
            "40.04",
            "not run at small",
            "CGPS-RNN",
            "3 seeds",
            said,
            "scale small, protocol reduced",
        )
        assert "Trained in fp32." in text
        assert [part for part in parts if part not in text] == [], suffix
        assert text.count("12 of 20 lines") == 1 and "at scale small" in text


def test_table_again_is_the_same_with_its_record_beside_it(results):
    table(results)
    first = hash_files(results / "tables")
    made = read_json(results / "tables/table1.json")
    table(results)
    again = hash_files(results / "tables")
    assert first.pop("table1.json") and again.pop("table1.json") and first == again
    tests = read_json(results / "tables/table1.json")["tests"]
    assert (
        tests == made["tests"]
        and tests["table1/SQ-Transformer/JUMP/exact_match"]["examples"] == 400
    )
    assert set(FIELDS) <= made.keys() and made["spec"]["entry"]["kind"] == "table"
    read = {name for name in made["data_digest"] if "/sq-transformer/" in name}
    assert read and all(hash_file(results / name) == made["data_digest"][name] for name in read)


@pytest.mark.parametrize(
    ("display", "runs", "message"),
    [
        ("tabel1", RUNS, r"no table 'tabel1'; did you mean 'table1'\?"),
        ("figure1", RUNS, r"no table 'figure1'"),
        (
            "table1",
            ["scan-jump-x2/transformer/default/seed-99"],
            r"seed-99/eval/scores.csv does not exist",
        ),
        ("table1", ["scan-jump-x3/transformer/default/seed-1"], r"no task 'scan-jump-x3'"),
    ],
)
def test_table_errors_are_one_line(results, capsys, display, runs, message):
    assert table(results, display, runs=runs) == 1
    error = capsys.readouterr().err
    assert re.search(message, error) and error.startswith("error: ") and error.count("\n") == 1
    assert not (results / "tables").exists()


def test_claims_csv(results, capsys):
    assert claims(results) == 0
    found = {row["claim"]: row for row in rows(results / "claims.csv")}
    assert tuple(next(iter(found.values()))) == CLAIM_COLUMNS
    first = found["sq-over-transformer-addjump"]
    left = values(results, "scan-jump-x2", "sq-transformer", "sal")
    right = values(results, "scan-jump-x2", "transformer", "default")
    assert float(first["effect"]) == pytest.approx(
        statistics.mean(left) - statistics.mean(right), rel=1e-5
    )
    assert (float(first["published_effect"]), first["printed"]) == (pytest.approx(59.38), "agree")
    shown = [first[name] for name in ("verdict", "n_seeds", "protocol", "at_least")]
    assert shown == ["reproduced", "3", "reduced", "25"]
    oracle = stats.ttest_ind(np.array(left) - 25, right, equal_var=False).pvalue
    assert (float(first["p_value"]), float(first["q_value"])) == pytest.approx(
        (oracle, oracle), rel=1e-4
    )
    assert found["atomic-copies-1"]["verdict"] == "reproduced"
    others = [row for row in found.values() if row["verdict"] == "not run"]
    primary = [row for row in found.values() if row["role"] == "primary"]
    assert {row["verdict"] for row in primary} == {"no verdict"}  # their seeds are not there
    assert len(others) == len(found) - 3 - len(primary)  # and the control on the last weights
    assert all(row["effect"] == row["p_value"] == row["protocol"] == "" for row in others)
    printed = capsys.readouterr().out
    line = r"sq-over-transformer-addjump +\+5\d\.\d points \(95%: \d+\.\d to \d+\.\d\) +> 25 +3 +reproduced"
    assert re.search(line, printed)
    of_paper = sum(row["kind"] == "paper" for row in others)
    assert f": 2 reproduced, {of_paper} not run" in printed
    assert f": 1 reproduced, {len(others) - of_paper} not run" in printed
    sides = [
        row
        for row in rows(results / "claim_sides.csv")
        if row["claim"] == "sq-over-transformer-addjump"
    ]
    places = [
        (*side, seed)
        for side in (("left", "99.42"), ("right", "40.04"))
        for seed in ("11", "12", "13")
    ]
    assert [(row["side"], row["published"], row["seed"]) for row in sides] == places
    assert [float(row["value"]) for row in sides] == pytest.approx([*left, *right], rel=1e-5)


def test_quotes_and_caveats_are_columns(results, monkeypatch):
    papers = load_catalogue().papers
    first, *others = papers["sq_transformer"].claims
    texts = {"caveat": "one seed was lucky", "quote": "SQ-Transformer wins", "kind": "control"}
    changed = replace(papers["sq_transformer"], claims=[first.model_copy(update=texts), *others])
    monkeypatch.setitem(papers, "sq_transformer", changed)
    assert claims(results) == 0
    found = {row["claim"]: row for row in rows(results / "claims.csv")}[first.claim]
    assert (found["caveat"], found["quote"], found["kind"]) == (
        "one seed was lucky",
        "SQ-Transformer wins",
        "control",
    )
    assert "by far on SCAN ADDJUMP 2x (control of ours)\n" in (results / "overview.rst").read_text()


def test_the_committed_ledger_can_be_read(capsys):
    """And it says of each claim what claims.yaml says."""
    ledger = ROOT / "results/reference/small/claims.csv"
    assert main(["claims", "--show", str(ledger)]) == 0
    said = capsys.readouterr().out
    assert "not run: small does not measure it" in said and " at small: " in said
    papers = load_catalogue().papers
    for row in rows(ledger):
        claim = papers[row["paper"]].claims_by_name[row["claim"]]
        assert (row["kind"], row["quote"]) == (claim.kind, claim.quote or ""), row["claim"]
        decided = row["verdict"] in ("reproduced", "not reproduced")
        if row["role"] == "exploratory":  # outside of a terminal no name is broken
            assert (f"{row['claim']} " in said) == decided


def test_a_scale_for_show_gives_no_verdict(results, capsys):
    assert claims(results, scale="demo") == 0
    found = rows(results / "claims.csv")
    assert [row["verdict"] for row in found if row["effect"]] == ["no verdict"] * 3
    assert {row["verdict"] for row in found if not row["effect"]} == {"not run"}
    assert {row["p_value"] for row in found} == {""}
    *counts, no_verdict, not_run, written = capsys.readouterr().out.splitlines()
    assert sum(
        int(count) for count in re.findall("(\\d+) (?:no verdict|not run)", " ".join(counts))
    ) == len(found)
    assert no_verdict == "no verdict: the demo scale gives no verdict (3)"
    assert written == f"written to {results / 'claims.csv'}"
    assert not_run.startswith("not run: ")


def test_scores_that_were_copied_from_another_run_are_refused(results, capsys):
    folder = next((results / "runs").glob("*/*/*/seed-*"))
    other = next(path for path in folder.parent.glob("seed-*") if path != folder)
    shutil.copy(other / "eval/scores.csv", folder / "eval/scores.csv")
    assert claims(results) == 1
    said = capsys.readouterr().err
    assert (
        f"{folder}/eval/scores.csv holds scores of " in said
        and f"/{other.name}; move {folder} away, then" in said
    )


def test_show_prints_a_ledger_without_making_it(results, capsys):
    claims(results)
    made = capsys.readouterr().out
    (results / "small").mkdir()
    shutil.copy(results / "claims.csv", results / "small")  # the folder has the scale's name
    assert main(["claims", "--show", str(results / "small/claims.csv")]) == 0
    assert capsys.readouterr().out + f"written to {results / 'claims.csv'}\n" == made
    assert main(["claims", "--show", str(results / "nothing.csv")]) == 1
    assert "nothing.csv does not exist" in capsys.readouterr().err
    whole = (results / "claims.csv").read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"# a text\n", b"\xff\xfe"):
        (results / "half.csv").write_bytes(content)
        assert main(["claims", "--show", str(results / "half.csv")]) == 1
        said = capsys.readouterr()
        assert (said.out, len(said.err.splitlines())) == ("", 1) and "half.csv" in said.err


def test_unknown_scales_are_refused(results, capsys):
    for command in (table, claims):
        assert command(results, scale="smal") == 1
        assert_one_error(capsys.readouterr().err, "'smal'", "did you mean 'small'?")


def test_claims_without_what_they_need(results, capsys):
    assert main(["claims", "--show", str(results)]) == 1
    assert capsys.readouterr().err == f"error: {results} is a folder; give the name of a file\n"
    assert main(["claims", "--scale", "small"]) == 1
    assert "claims needs --results" in capsys.readouterr().err


def test_the_first_page_of_the_report_is_what_snakemake_can_show(results):
    assert (
        call(
            "claims",
            results,
            "--papers",
            "sq_transformer",
            "recompose",
            "--out",
            results / "claims.csv",
        )
        == 0
    )
    text = Environment().from_string((results / "overview.rst").read_text()).render()
    # report_level 1: any message of docutils would be in the page.
    html = publish_parts(text, writer="html", settings_overrides={"report_level": 1})["html_body"]
    assert "system-message" not in html and '<div style="max-height' in html
    found = [re.sub("<.*?>|\n", "", cell) for cell in re.findall("(?s)<t[dh].*?</t[dh]>", html)]
    assert found[:5] == [
        "Verdict at small",
        "primary",
        "exploratory",
        "controls of ours",
        "It means",
    ]
    assert found[5:9] == ["reproduced", "0", "2", "1"]
    place = next(
        i
        for i, cell in enumerate(found)
        if cell.startswith("SQ-Transformer (SAL) beats the Transformer by far")
    )
    effect = r"\+5\d\.\d points \(95%: \d+\.\d to \d+\.\d\)"
    assert found[place + 1] == "+59.4 points" and re.fullmatch(effect, found[place + 2])
    assert found[place + 3] == "reproduced"
    title = load_catalogue().scales["small"].title
    assert title.startswith(
        "real data"
    ) and f"Scale small: {title}. It is for verdicts within" in unescape(html)
    # A paper without claims has no table.
    assert load_catalogue().papers["recompose"].experiments.title not in html


def test_table_takes_the_runs_of_config_without_runs(results, capsys):
    """Without --runs the requests of the paper decide, and their scores are asked for by name."""
    arguments = ["table", "--paper", "sq_transformer", "--display", "table1", "--scale", "small"]
    assert main([*arguments, "--results", str(results), "--out", str(results / "tables")]) == 1
    assert re.search(r"runs/.*/eval/scores.csv does not exist", capsys.readouterr().err)


def test_tables_and_claims_are_there_without_scipy_pandas_or_torch():
    """They would take longer to import than a table to make."""
    modules = "workflow_scripts.reporting.claims.judging, workflow_scripts.reporting.tables.table"
    code = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy", "pandas", "torch"} & set(done.stdout.split())
