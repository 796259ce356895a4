"""What judging reads of the runs besides their scores."""

from pathlib import Path

from workflow_scripts.common.files import write_json
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import run_folder
from workflow_scripts.config.requested import list_planned_runs
from workflow_scripts.reporting.claims.judging import find_other_precisions


def write_run(results: Path, name: str, **training: str) -> None:
    folder = results / run_folder(name)
    folder.mkdir(parents=True)
    write_json(folder / "run.json", {"spec": {"training": training}})


def test_a_claim_of_the_plan_knows_a_run_of_another_precision(tmp_path):
    paper = load_catalogue().papers["sq_transformer"]
    first, *_ = paper.plan.primary
    runs = list_planned_runs(paper, first)
    for run in runs[:-1]:
        write_run(tmp_path, str(run))  # the default, fp32
    assert find_other_precisions(paper, tmp_path) == {}
    write_run(tmp_path, str(runs[-1]), precision="tf32")
    assert find_other_precisions(paper, tmp_path) == {first.claim: "tf32"}


def test_the_precision_of_scored_weights_is_that_of_their_training(tmp_path):
    paper = load_catalogue().papers["cat"]
    claims = {entry.claim: list_planned_runs(paper, entry) for entry in paper.plan.primary}
    claim, run = next((claim, run) for claim, runs in claims.items() for run in runs if run.weights)
    write_run(tmp_path, f"{run.weights}/{run.method}/{run.training.variant}/seed-{run.seed}", precision="bf16")
    assert find_other_precisions(paper, tmp_path)[claim] == "bf16"
