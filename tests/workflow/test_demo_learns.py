"""What docs/adding.md says of the demo: on SCAN a model learns commands that it is not trained on."""

from pathlib import Path

from workflow_scripts.__main__ import main
from workflow_scripts.analyses.constant_answers import analyse
from workflow_scripts.analyses.options.constant_answers import Options
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import read_scores

TASK = "scan-jump-x2"
SEED = 31  # of no table, and not among those with which the settings of the demo were chosen


def test_a_fresh_seed_is_right_on_half_of_the_commands_in_distribution(tmp_path: Path):
    data, folder = tmp_path / TASK, tmp_path / "run"
    run = f"{TASK}/transformer/default/seed-{SEED}"
    places = ["--data", str(data), "--device", "cpu"]
    assert main(["prepare", "--task", TASK, "--scale", "demo", "--out", str(data)]) == 0
    assert main(["train", "--run", run, "--scale", "demo", "--out", str(folder), *places]) == 0
    scores_of = ["--run-dir", str(folder), "--out", str(folder / "eval"), *places]
    settings = ["--run", run, "--scale", "demo"]
    assert main(["evaluate", *settings, *scores_of]) == 0

    (accuracy,) = (
        row.value
        for row in read_scores(folder / "eval/scores.csv")
        if (row.split, row.metric, row.readout) == ("in_distribution", "exact_match", None)
    )
    trained, held_out = (
        set(read_table(data, split, ["source"])["source"].to_pylist())
        for split in ("train", "in_distribution")
    )
    assert len(held_out) == 200 and not held_out & trained
    words = {word for command in trained for word in command.split()}
    assert all(set(command.split()) <= words for command in held_out)
    constant_answers = analyse(
        [TrainedRun(TASK, "transformer", "default", SEED, "reduced", folder, data)],
        Options(splits=["in_distribution"]),
    )
    best_constant = max(row.value for row in constant_answers.scores)
    assert accuracy >= 50 > 5 > best_constant > 0
