import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.common.files import hash_file, write_json
from workflow_scripts.common.result_folders import RunFolder
from workflow_scripts.provenance.exported import PROVENANCE
from workflow_scripts.provenance.record import add_output_digests
from workflow_scripts.reporting.committed.exported_items import ExportedRun, add_predictions

RUN = "cogs/transformer/default/seed-1"
FIELDS = [key for key in PROVENANCE if key not in ("analysis_plans", "versions", "not_recorded")]
# Metric, draw, value. A share of no item is empty.
DRAWS = [
    ("consistency", 42, 3),
    ("cv", "", 0.25),
    ("empty", 42, ""),
    ("consistency", 7, 7),
    ("empty", 7, ""),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A finished scale with one measured table, one that was not run, one measured figure, claims
    and a run.
    """
    folder = tmp_path / "results/small"
    tables = folder / "tables/paper"
    tables.mkdir(parents=True)
    for name, status in (("table1", "measured"), ("table2", "not run")):
        (tables / f"{name}.csv").write_text(f"row,column,status\nTransformer,COGS,{status}\n")
        (tables / f"{name}.md").write_text("| Transformer |\n")
        (tables / f"{name}.tex").write_text("\\begin{table}\n")
    figures = folder / "figures/paper"
    figures.mkdir(parents=True)
    for name, rows in (("figure1", "1,False\n2,True\n"), ("figure2", "2,True\n"), ("figure3", "")):
        (figures / f"{name}.csv").write_text("value,published\n" + rows)
        (figures / f"{name}.svg").write_text("<svg/>")
        (figures / f"{name}.png").touch()
    (folder / "claims.csv").write_text("paper,claim,verdict\npaper,first,reproduced\n")
    (folder / "runs" / RUN / "eval").mkdir(parents=True)
    (folder / "runs" / RUN / "eval/evaluation.json").write_text("{}")
    (folder / "runs" / RUN / "run.json").write_text(
        json.dumps({key: key for key in FIELDS} | {"run": RUN, "spec": {"a": 1}})
    )
    (folder / "runs" / RUN / "record.json").write_text('{"analysis_plans": {}}')
    return tmp_path / "results"


def export(results: Path, out: Path, scale: str = "small") -> int:
    return main(["export", "--scale", scale, "--results", str(results), "--out", str(out)])


def rows(file: Path, *columns: str) -> list[tuple[str, ...]]:
    with open(file) as stream:
        return [tuple(row[name] for name in columns) for row in csv.DictReader(stream)]


def test_measured_tables_claims_and_provenance_are_copied(results: Path):
    out = results / "reference"
    (out / "small/tables/paper").mkdir(parents=True)
    (out / "small/tables/paper/old.csv").touch()
    assert export(results, out) == 0
    found = sorted(
        str(file.relative_to(out / "small")) for file in out.rglob("*") if file.is_file()
    )
    figures, tables = (
        ["figures/paper/figure1.csv", "figures/paper/figure1.svg"],
        ["table1.csv", "table1.md", "table1.tex"],
    )
    assert found == [
        "claims.csv",
        *figures,
        "provenance.json",
        *(f"tables/paper/{name}" for name in tables),
    ]
    (run,) = json.loads((out / "small/provenance.json").read_text())
    assert set(run) == {*FIELDS, "analysis_plans", "versions", "not_recorded"}
    assert run["not_recorded"] == ["versions"]
    assert rows(out / "small/claims.csv", "verdict") == [("reproduced",)]


def test_a_file_that_was_changed_is_not_exported(results: Path, capsys):
    """Scores after their manifest has its sha256, a manifest after its record has, and a table."""
    folder = results / "small/runs" / RUN
    scores = folder / "eval/scores.csv"
    scores.write_text("task,method,variant,seed,value\ncogs,transformer,default,1,5\n")
    write_json(folder / "eval/evaluation.json", {"files": {"scores.csv": hash_file(scores)}})
    add_output_digests(folder / "record.json", [folder / "run.json"])
    table = results / "small/tables/paper/table1.csv"
    write_json(table.with_suffix(".json"), {})
    add_output_digests(table.with_suffix(".json"), [table])
    out = results / "reference"
    assert export(results, out) == 0
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    changed = {
        scores: "evaluation.json",
        folder / "run.json": "record.json",
        table: "table1.json",
    }
    for file, has_digest in changed.items():
        whole = file.read_text()
        file.write_text(f"{whole} ")
        capsys.readouterr()
        assert export(results, out) == 1
        first, advice = capsys.readouterr().err.splitlines()
        assert first == f"error: {file} differs from the sha256 in {has_digest}"
        assert advice.startswith("error: nothing was written; ")
        file.write_text(whole)
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before


def test_other_papers_and_runs_stay(results: Path):
    out = results / "reference"
    other = out / "small/tables/other/table9.csv"
    other.parent.mkdir(parents=True)
    other.write_text("row,column,status\nA,B,measured\n")
    (out / "small/claims.csv").write_text(
        "paper,claim,verdict\nother,ninth,inconclusive\npaper,first,not reproduced\npaper,gone,reproduced\n"
    )
    model = out / "small/models/README.md"
    model.parent.mkdir()
    model.touch()
    drawn = [out / f"small/figures/{name}/old.svg" for name in ("other", "paper")]
    for figure in drawn:
        figure.parent.mkdir(parents=True)
        figure.touch()
    earlier = [{"run": "scan/other/default/seed-1", "steps": 7}, {"run": RUN, "steps": 1}]
    (out / "small/provenance.json").write_text(json.dumps(earlier))
    assert export(results, out) == 0
    assert model.exists() and other.exists() and (out / "small/tables/paper/table1.csv").exists()
    assert [figure.exists() for figure in drawn] == [True, False]
    found = rows(out / "small/claims.csv", "paper", "claim", "verdict")
    assert found == [("other", "ninth", "inconclusive"), ("paper", "first", "reproduced")]
    runs = json.loads((out / "small/provenance.json").read_text())
    assert [(run["run"], run["steps"]) for run in runs] == [
        (RUN, "steps"),
        ("scan/other/default/seed-1", 7),
    ]


def test_verdicts_that_these_results_do_not_reach_stay(results: Path):
    """Of a paper that was not run here, of a claim of which a run is missing, and of a plan."""
    out = results / "reference"
    columns = "paper,claim,effect,n_seeds,n_planned,verdict\n"
    earlier = (
        "cat,bird,-1.3,9,9,not reproduced\n"
        "cat,open,,,,not run\n"
        "paper,first,5.0,3,,reproduced\n"
        "paper,second,2.0,3,,inconclusive\n"
        "paper,planned,4.0,6,6,reproduced\n"
        "paper,gone,1.0,3,,reproduced\n"
    )
    new = (
        "cat,bird,,,9,not run\n"
        "cat,open,,,,not run\n"
        "paper,first,6.0,3,,inconclusive\n"
        "paper,second,,,,not run\n"
        "paper,planned,,2,6,no verdict\n"
    )
    (out / "small").mkdir(parents=True)
    (out / "small/claims.csv").write_text(columns + earlier)
    (out / "small/claim_sides.csv").write_text("paper,claim,value\ncat,bird,1\ncat,bird,2\n")
    (results / "small/claims.csv").write_text(columns + new)
    (results / "small/claim_sides.csv").write_text("paper,claim,value\npaper,first,3\n")
    assert export(results, out) == 0
    assert rows(out / "small/claims.csv", "paper", "claim", "effect", "verdict") == [
        ("cat", "bird", "-1.3", "not reproduced"),
        ("cat", "open", "", "not run"),
        ("paper", "first", "6.0", "inconclusive"),
        ("paper", "second", "2.0", "inconclusive"),
        ("paper", "planned", "4.0", "reproduced"),
    ]
    assert rows(out / "small/claim_sides.csv", "claim", "value") == [
        ("bird", "1"),
        ("bird", "2"),
        ("first", "3"),
    ]


def test_nothing_measured_is_one_line_and_keeps_what_was_there(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "reference"
    (out / "demo").mkdir(parents=True)
    (out / "demo/claims.csv").touch()
    assert export(results, out, "demo") == 1
    error = capsys.readouterr().err
    assert "demo has no scored run; make one with ./reproduce --scale demo" in error
    assert error.count("\n") == 1
    assert (out / "demo/claims.csv").exists()


def test_scores_are_kept_seed_by_seed_beside_those_of_other_runs(results: Path):
    header = "task,method,variant,seed,metric,value\n"
    for part, line in (
        ("eval", "cogs,transformer,default,1,exact_match,5\n"),
        ("interventions", "cogs,transformer,default,1,cv,3\n"),
    ):
        file = results / "small/runs" / RUN / part / "scores.csv"
        file.parent.mkdir(exist_ok=True)
        file.write_text(header + line)
    out = results / "reference/small/scores.csv"
    out.parent.mkdir(parents=True)
    earlier = [f"cogs,transformer,default,{seed},exact_match,4" for seed in (10, 2, 1)]
    out.write_text("\n".join([header.strip(), *earlier]) + "\n")
    assert export(results, out.parents[1]) == 0
    found = rows(out, "seed", "metric", "value")
    assert found == [
        ("1", "exact_match", "5"),
        ("1", "cv", "3"),
        ("2", "exact_match", "4"),
        ("10", "exact_match", "4"),
    ]


def test_scores_of_draws_are_averaged(results: Path):
    file = results / "small/runs" / RUN / "interventions/scores.csv"
    file.parent.mkdir()
    draws = [f"cogs,transformer,default,1,{name},{draw},{value}" for name, draw, value in DRAWS]
    file.write_text(
        "\n".join(["task,method,variant,seed,metric,intervention_seed,value", *draws]) + "\n"
    )
    assert export(results, results / "reference") == 0
    found = rows(results / "reference/small/scores.csv", "metric", "intervention_seed", "value")
    assert found == [("consistency", "", "5.0"), ("cv", "", "0.25"), ("empty", "", "")]


def test_scores_of_analyses_are_kept_beside_those_of_other_analyses(results: Path):
    file = results / "small/analyses/paper/probe/scores.csv"
    file.parent.mkdir(parents=True)
    file.write_text("task,seed,metric,value\ncogs,1,share,5\ncogs,2,share,7\n")
    out = results / "reference/small/analyses.csv"
    out.parent.mkdir(parents=True)
    out.write_text(
        "paper,analysis,task,value\npaper,probe,cogs,4\npaper,other,cogs,3\nother,probe,cogs,2\n"
    )
    assert export(results, out.parents[1]) == 0
    found = rows(out, "paper", "analysis", "value")
    assert found == [
        ("other", "probe", "2"),
        ("paper", "other", "3"),
        ("paper", "probe", "5"),
        ("paper", "probe", "7"),
    ]


def test_a_run_is_exported_before_any_table_and_one_without_scores_is_not(tmp_path: Path):
    folder, out = tmp_path / "results/small/runs/cogs/transformer/default", tmp_path / "reference"
    losses = "".join(f"{step},loss,{1 / step}\n" for step in range(100, 10_100, 100))
    for seed, scored in ((1, True), (2, False)):
        run = folder / f"seed-{seed}"
        (run / "eval").mkdir(parents=True)
        (run / "training.csv").write_text(
            "step,name,value\n" + losses + "5000,valid_exact_match,12.3456789\n"
        )
        (run / "run.json").write_text(json.dumps({key: key for key in FIELDS} | {"run": RUN}))
        (run / "record.json").write_text('{"analysis_plans": {}}')
        if scored:
            (run / "eval/evaluation.json").write_text("{}")
            (run / "eval/scores.csv").write_text(
                "task,method,variant,seed,value\ncogs,transformer,default,1,5\n"
            )
    for _ in range(2):  # the second call finds what the first has written
        assert export(tmp_path / "results", out) == 0
        assert {file.name for file in (out / "small").iterdir()} == {
            "curves.csv",
            "provenance.json",
            "scores.csv",
        }
        assert [run["run"] for run in json.loads((out / "small/provenance.json").read_text())] == [
            RUN
        ]
        curve = rows(out / "small/curves.csv", "seed", "step", "name", "value")
        assert ("1", "5000", "valid_exact_match", "12.3457") in curve and (
            "1",
            "10000",
            "loss",
            "0.0001",
        ) in curve
        steps = [int(step) for _, step, name, _ in curve if name == "loss"]
        assert (
            20 < len(steps) <= 30 and len(set(np.diff(steps))) == 1 and len(steps) + 1 == len(curve)
        )


def test_outputs_of_runs_behind_primary_claims_are_kept(results: Path):
    folder, out = results / "small/runs" / RUN, results / "reference/small"
    table = {
        "split": ["test"] * 2,
        "row": [0, 1],
        "prediction": ["x", "y"],
        "source": ["a text", "b"],
    }
    table["correct"] = [1, 0]
    pq.write_table(pa.table(table), folder / "eval/predictions.parquet")
    assert export(results, out.parent) == 0
    assert not (out / "predictions").exists()
    (folder / "record.json").write_text('{"analysis_plans": {"paper": "sha"}}')
    assert export(results, out.parent) == 0
    kept = out / f"predictions/{RUN.rpartition('/')[0]}.parquet"
    seed = int(RUN.rpartition("-")[2])
    assert pq.read_table(kept).to_pydict() == {
        "seed": [seed] * 2,
        **{name: table[name] for name in ("split", "row", "prediction")},
    }
    shutil.copytree(folder, other := folder.with_name("seed-9"))
    table["prediction"] = ["u", "v"]
    pq.write_table(pa.table(table), other / "eval/predictions.parquet")
    for _ in range(2):  # rows of a seed that is there already are replaced
        add_predictions(kept, [ExportedRun(RunFolder(other), {})])
    found = pq.read_table(kept).to_pydict()
    assert list(zip(found["row"], found["seed"], found["prediction"], strict=True)) == [
        *((0, seed, "x"), (0, 9, "u"), (1, seed, "y"), (1, 9, "v")),
    ]


def test_answers_under_interventions_are_kept_of_runs_behind_primary_claims(results: Path):
    folder, out = results / "small/runs" / RUN, results / "reference/small"
    answers = {
        "item": ["b", "a"],
        "intervention": ["cap"] * 2,
        "layer": [1] * 2,
        "readout": ["vocabulary"] * 2,
        "correct_before": [True, True],
        "correct": [False, True],
    }
    (folder / "interventions").mkdir()
    pq.write_table(pa.table(answers), folder / "interventions/answers.parquet")
    predictions = pa.table({"split": ["test"], "row": [0], "prediction": ["x"]})
    pq.write_table(predictions, folder / "eval/predictions.parquet")
    assert export(results, out.parent) == 0
    assert not (out / "interventions").exists()  # no plan lists the run
    (folder / "record.json").write_text('{"analysis_plans": {"paper": "sha"}}')
    for name in ("seed-9", "seed-10"):
        shutil.copytree(folder, folder.with_name(name))
    (folder.with_name("seed-10") / "interventions/answers.parquet").unlink()
    assert export(results, out.parent) == 0
    kept = pq.read_table(out / f"interventions/{RUN.rpartition('/')[0]}.parquet").to_pydict()
    assert kept.keys() == {"seed", *answers}
    found = list(zip(kept["seed"], kept["item"], kept["correct"], strict=True))
    assert found == [(1, "a", True), (9, "a", True), (1, "b", False), (9, "b", False)]
    shutil.rmtree(folder / "interventions")  # of a run that is not here an export keeps them
    assert export(results, out.parent) == 0
    assert (
        pq.read_table(out / f"interventions/{RUN.rpartition('/')[0]}.parquet").to_pydict() == kept
    )
