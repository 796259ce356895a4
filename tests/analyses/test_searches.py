"""What the analysis says of a search is what its files say."""

import pandas as pd
import pytest

from workflow_scripts.analyses.searches import analyse
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import write_json

TRIED = pd.DataFrame({"learning_rate": [1e-5, 3e-5, 1e-5, 3e-5], "batch_sentences": [64, 64, 32, 32]})
TRIED = TRIED.assign(max_steps=[10, 10, 20, 20], best_step=[5, 10, 20, 15], metric="accuracy", seconds=1.0)
TRIED["value"] = [61.5, 70.0, 66.0, 69.0]


def run(results, variant, seed, chosen=True) -> TrainedRun:
    folder = results / f"runs/{variant}-{seed}"
    made = TrainedRun("paws", "cat", variant, seed, "reduced", folder, results / "data/paws")
    picked = {"learning_rate": 3e-5, "batch_sentences": 64}
    write_json(made.folder / "run.json", {"run": str(made), "chosen": picked if chosen else None})
    if chosen:
        folder = results / f"search/paws/cat/{variant}"
        spec = {"seed": 1, "protocol": "paper", "model": {"name": "cat", "readout": variant}}
        best = {"value": 70.0, "metric": "accuracy"}
        write_json(folder / "chosen.json", {"spec": spec, "chosen": picked, "best": best})
        TRIED.to_csv(folder / "search.csv", index=False)
    return made


def test_what_was_chosen_and_how_far_the_pairs_lie_apart(tmp_path):
    runs = [run(tmp_path, "mix", 4), run(tmp_path, "mix", 5), run(tmp_path, "comp", 4, chosen=False)]
    found = analyse(runs, {})
    values = {row["metric"]: (row["value"], row["unit"]) for row in found.scores}
    expected = {"learning_rate": (pytest.approx(3.0), "10^-5"), "batch_sentences": (64.0, "sentences")}
    assert values == expected | {"best": (70.0, "percent"), "range": (8.5, "points")}
    # Once for all seeds of the variant, under that of the search.
    places = {(row["seed"], row["variant"], row["readout"], row["n"], row["protocol"]) for row in found.scores}
    assert places == {(1, "mix", "mix", 4, "paper")}
    assert found.notes == ["paws/cat/comp: trained without a search"]
    assert found.files["pairs"][list(TRIED)].equals(TRIED) and set(found.files["pairs"]["seed"]) == {1}


def test_without_a_search_there_is_nothing(tmp_path):
    found = analyse([run(tmp_path, "mix", 4, chosen=False)], {})
    assert not found.scores and not found.files
