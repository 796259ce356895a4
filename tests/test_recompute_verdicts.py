"""The script recomputes what is committed, without the package, and notices real faults in a copy
of it.
"""

import ast
import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests import recompute_verdicts
from workflow_scripts.evaluation.statistics import measure_superiority

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "results/reference/small"
FILES = ("scores.csv", "analyses.csv", "claims.csv", "claim_sides.csv", "provenance.json")
LATER = "sal-above-transformer-addjump"
LATER_SEEDS = range(201, 213)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    folder.mkdir()
    for name in FILES:
        shutil.copy(REFERENCE / name, folder)
    return folder


def edit(file: Path, where: dict[str, str], changes: list[dict]) -> None:
    """Put a row with each of the changes in the place of every row that has these values."""
    as_json = file.suffix == ".json"
    rows = json.loads(file.read_text()) if as_json else recompute_verdicts.read(file)
    found = [all(row[key] == value for key, value in where.items()) for row in rows]
    assert any(found), where
    new = [
        row | each
        for row, here in zip(rows, found, strict=True)
        for each in (changes if here else [{}])
    ]
    if as_json:
        file.write_text(json.dumps(new))
        return
    with open(file, "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(new)


def list_lines(folder: Path, capsys: pytest.CaptureFixture) -> tuple[bool, dict[str, str]]:
    """Whether the script finds a difference, and its line of each claim."""
    different = recompute_verdicts.main(folder)
    lines = capsys.readouterr().out.splitlines()
    return different, {line.split(" ")[1].rstrip(":"): line for line in lines}


def add_later_seeds(folder: Path, seeds: range) -> None:
    """Scores and runs of SCAN after 40,000 updates: SAL ends at 90% and more, the Transformer below
    50%.
    """
    scores, runs = [{}], [{}]
    for method, variant, lowest in (
        ("sq-transformer", "sal-entropy-3-long", 90),
        ("transformer", "long", 30),
    ):
        for seed in seeds:
            row = {"method": method, "variant": variant, "seed": str(seed)}
            scores.append(row | {"split": "test", "value": str(lowest + (seed - 201) / 2)})
            scores.append(row | {"split": "in_distribution", "value": "99"})
            run = f"scan-jump-x2/{method}/{variant}/seed-{seed}"
            runs.append({"run": run, "started": "2027-01-01T00:00:00+00:00"})
    like = {
        "task": "scan-jump-x2",
        "method": "transformer",
        "variant": "default",
        "seed": "102",
        "split": "test",
    }
    edit(folder / "scores.csv", like | {"metric": "exact_match", "readout": "last"}, scores)
    edit(folder / "provenance.json", {"run": "scan-jump-x2/transformer/default/seed-102"}, runs)


def test_the_committed_results_are_what_the_script_finds():
    done = subprocess.run(
        [sys.executable, "tests/recompute_verdicts.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    plans = [*ROOT.glob("papers/*/analysis_plan.yaml"), *ROOT.glob("papers/*/plans/*.yaml")]
    contents = [
        (file.relative_to(ROOT).parts[1], yaml.safe_load(file.read_text())) for file in plans
    ]
    wanted = {f"{paper} {each['claim']}:" for paper, plan in contents for each in plan["primary"]}
    assert (
        len(lines) == len(wanted) >= 14
        and {" ".join(line.split(" ")[:2]) for line in lines} == wanted
    )
    assert all(", equal" in line and "DIFFERENT" not in line for line in lines)
    exceptions = [line for line in lines if "exception: " in line]
    assert ["2 runs on a CPU" in line or "5 runs on a CPU" in line for line in exceptions] == [
        True,
        True,
    ]


def test_the_script_imports_nothing_of_the_project():
    tree = ast.parse(Path(recompute_verdicts.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {name.name for node in imports if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name for name in names if name.split(".")[0] not in sys.stdlib_module_names} == {
        "numpy",
        "scipy",
        "yaml",
    }


# A fault, file, rows, what is there in place of each, and what the lines of claims then say.
FAULTS = {
    "a score is changed": (
        "scores.csv", "task=sst2 method=cat variant=mix seed=104 metric=accuracy", [{"value": "85"}],
        {"minimal-impact-sst2": "effect is -0.250979, here "},
    ),
    "a score of an analysis is changed": (
        "analyses.csv", "task=idm method=gemma variant=ft seed=102 metric=cv rate=0.4", [{"value": "0.5"}],
        {"cv-six": "effect is 0.0159812, here "},
    ),
    "a seed is removed": (
        "scores.csv", "task=cognition method=lrf variant=plain seed=105", [],
        {"lrf-over-transformer-cter-instance": "effect is 0.639918, here empty",
         "lrf-over-matched-cter-instance": "verdict is not reproduced, here no verdict"},
    ),
    "a seed is there twice": (
        "scores.csv", "task=bird method=cat variant=comp@paws seed=105", [{}, {}],
        {"comp-over-bert-bird": "effect is -5.51082, here empty"},
    ),
    "a seed is added": (
        "scores.csv", "task=bird method=bert variant=ft@paws seed=109", [{}, {"seed": "110"}],
        dict.fromkeys(("comp-over-bert-bird", "mix-over-bert-bird"), "seed 110 is in no plan"),
    ),
    "a seed is added to a side": (
        "claim_sides.csv", "claim=mix-over-bert-bird side=right seed=109", [{}, {"seed": "110"}],
        {"mix-over-bert-bird": "right has other seeds or values in claim_sides.csv"},
    ),
    "a verdict is changed": (
        "claims.csv", "claim=accuracy-idm-six", [{"verdict": "reproduced"}],
        {"accuracy-idm-six": "verdict is reproduced, here inconclusive"},
    ),
    "an end of an interval is changed": (
        "claims.csv", "claim=sq-over-transformer-cter-instance", [{"ci_low": "-1.5"}],
        {"sq-over-transformer-cter-instance": "ci_low is -1.5, here -1.52574"},
    ),
    "the number of seeds is changed": (
        "claims.csv", "claim=sal-success-addjump", [{"n_seeds": "7"}],
        {"sal-success-addjump": "n_seeds is 7, here 8"},
    ),
    "a claim is called primary": (
        "claims.csv", "claim=comp-over-mix-bird", [{"role": "primary"}],
        {"comp-over-mix-bird": "no plan names this primary claim"},
    ),
    "a device is another one": (
        "provenance.json", "run=sst/gemma/ft/seed-103", [{"device": "cpu"}],
        dict.fromkeys(("accuracy-sst-six", "cap-first-sst-six", "cv-six"), "sst/gemma/ft/seed-103 was on cpu in fp32"),
    ),
    "a claim with an exception has another run on a CPU": (
        "provenance.json", "run=scan-jump-x2/transformer/default/seed-104", [{"device": "cpu"}],
        {"sal-success-addjump": "scan-jump-x2/transformer/default/seed-104 was on cpu in fp32"},
    ),
    "weights were trained on another device": (
        "provenance.json", "run=paws/cat/mix/seed-105", [{"device": "cuda"}],
        {"mix-over-bert-bird": "paws/cat/mix/seed-105 was on cuda in fp32"},
    ),
    "a precision is another one": (
        "provenance.json", "run=cognition/transformer/default/seed-101", [{"precision": "tf32"}],
        {"sq-over-transformer-cter-instance": "cognition/transformer/default/seed-101 was on cuda in tf32"},
    ),
    "a run has no provenance": (
        "provenance.json", "run=sst2/bert/ft/seed-102", [],
        {"minimal-impact-sst2": "sst2/bert/ft/seed-102 is not in provenance.json"},
    ),
    "an effect is shown early": (
        "claims.csv", f"claim={LATER}", [{"effect": "0.9"}],
        {LATER: "effect is 0.9, here empty"},
    ),
    "a value of a side is shown early": (
        "claim_sides.csv", f"claim={LATER} side=left", [{"seed": "201", "value": "95"}],
        {LATER: "left has other seeds or values in claim_sides.csv"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed_where_it_is_and_nowhere_else(
    fault: str, folder: Path, capsys: pytest.CaptureFixture
):
    file, where, changes, wanted = FAULTS[fault]
    edit(folder / file, dict(word.split("=") for word in where.split()), changes)
    different, lines = list_lines(folder, capsys)
    assert different and {name for name, line in lines.items() if "DIFFERENT" in line} == set(
        wanted
    )
    for name, text in wanted.items():
        assert text in lines[name]


def test_a_run_that_began_before_its_plan_is_noticed(folder: Path, capsys: pytest.CaptureFixture):
    if recompute_verdicts.find_commit_time(ROOT / "papers/lrf/analysis_plan.yaml") is None:
        pytest.skip("the history of the repository is not here")
    run = {"run": "cognition/lrf/plain/seed-101"}
    edit(folder / "provenance.json", run, [{"started": "2026-11-25T12:00:00+00:00"}])
    different, lines = list_lines(folder, capsys)
    assert not different and "start of 26 of 27 runs" in lines["lrf-over-transformer-cter-instance"]
    edit(folder / "provenance.json", run, [{"started": "2026-11-23T12:00:00+00:00"}])
    different, lines = list_lines(folder, capsys)
    text = "cognition/lrf/plain/seed-101 began before its plan was committed"
    assert different and text in lines["lrf-over-transformer-cter-instance"]


def test_a_later_plan_is_judged_when_its_last_seed_is_there(
    folder: Path, capsys: pytest.CaptureFixture
):
    add_later_seeds(folder, LATER_SEEDS[:-1])
    different, lines = list_lines(folder, capsys)
    assert not different and ": no verdict, equal" in lines[LATER]
    add_later_seeds(folder, LATER_SEEDS[-1:])
    different, lines = list_lines(folder, capsys)
    assert (
        different
        and "1 (0.813767 to 1), reproduced, DIFFERENT; verdict is no verdict, here reproduced"
        in lines[LATER]
    )
    assert "began" not in lines[LATER] and "not recorded" not in lines[LATER]
    edit(folder / "scores.csv", {"variant": "long", "split": "in_distribution"}, [{"value": "90"}])
    assert "0.813767 to 1), no verdict" in list_lines(folder, capsys)[1][LATER]


def test_a_plan_needs_its_lines_in_the_script(
    folder: Path, capsys: pytest.CaptureFixture, monkeypatch
):
    monkeypatch.delitem(recompute_verdicts.CLAIMS, "cv-six")
    different, lines = list_lines(folder, capsys)
    assert different and "it has no line in CLAIMS" in lines["cv-six"]


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_of_ranks_is_that_of_the_package(seed: int):
    generator = np.random.default_rng(seed)
    high, low = (
        np.round(100 * generator.beta(*shape, 12), seed % 2) for shape in ((0.4, 0.3), (0.3, 0.5))
    )
    chance = measure_superiority(list(high), list(low))
    found = recompute_verdicts.invert_rank_test(high, low, 0.975)
    np.testing.assert_allclose(found, (chance.value, *chance.compute_interval()), atol=1e-6)
