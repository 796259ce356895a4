"""What judging reads of the runs besides their scores."""

from dataclasses import replace
from pathlib import Path

from workflow_scripts.common.files import write_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.analysis_plan import FirstPlan, LaterPlan
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.judging import find_departures


def write_run(results: Path, name: str, device: str = "cpu", **training: str) -> None:
    folder = results / "runs" / name
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "run.json", {"spec": {"training": training}})
    write_json(folder / "record.json", {"device": device})


def test_a_claim_of_the_plan_knows_a_run_of_another_precision(tmp_path):
    paper = load_catalogue().papers["sq_transformer"]
    first, *others = paper.list_primary_claims("small")
    runs = paper.list_planned_runs(first)
    for run in runs[:-1]:
        write_run(tmp_path, str(run))  # the default, fp32
    assert find_departures(paper, [first, *others], ScaleFolder(tmp_path)) == {}
    write_run(tmp_path, str(runs[-1]), precision="tf32")
    said = "a run was trained in tf32; the plan says fp32"
    assert find_departures(paper, [first, *others], ScaleFolder(tmp_path)) == {first.name: said}


def test_the_precision_of_scored_weights_is_that_of_their_training(tmp_path):
    paper = load_catalogue().papers["cat"]
    claims = paper.list_primary_claims("small")
    claim, run = next(
        (one, run) for one in claims for run in paper.list_planned_runs(one) if run.weights
    )
    write_run(
        tmp_path,
        f"{run.weights}/{run.method}/{run.training.variant}/seed-{run.seed}",
        precision="bf16",
    )
    assert "trained in bf16" in find_departures(paper, claims, ScaleFolder(tmp_path))[claim.name]


def test_a_later_plan_names_the_device(tmp_path):
    paper = load_catalogue().papers["lrf"]
    planned, *_ = paper.list_primary_claims("small")
    content = {name: value for name, value in planned.plan if name != "quantile"}
    entries = [
        entry.model_copy(update={"measure": "difference", "base_rate": 90.0})
        for entry in planned.plan.primary
    ]
    content |= {"primary": entries, "unit": "a training", "device": "cuda", "seen": "nothing"}
    later = replace(planned, plan=LaterPlan(**content))
    for run in paper.list_planned_runs(planned):
        write_run(tmp_path, str(run), device="cuda")
    assert find_departures(paper, [later], ScaleFolder(tmp_path)) == {}
    write_run(tmp_path, str(run), device="cpu")
    said = "a run was trained on cpu; the plan says cuda"
    assert find_departures(paper, [later], ScaleFolder(tmp_path)) == {planned.name: said}
    assert isinstance(planned.plan, FirstPlan)  # which names no device
    assert find_departures(paper, [planned], ScaleFolder(tmp_path)) == {}
