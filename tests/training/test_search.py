"""The search of learning rate and batch size: what is tried, what is chosen, what a run takes, and
a killed search.
"""

import json
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.training.sentence_toy import sentence_spec, write_encoder, write_pairs
from tests.training.toy import (
    ROOT,
    assert_one_error,
    command,
    environment,
    run_main,
    toy_spec,
)
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.training.search import count_examples, find_best

GRID = {"seed": 1, "learning_rate": [1e-7, 0.003], "batch_sentences": [50, 16], "epochs": 6}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Data, an encoder, the spec of the search, and a search that ran through."""
    place = tmp_path_factory.mktemp("search")
    write_pairs(place / "data")
    write_encoder(place / "init")
    (place / "spec.json").write_text(json.dumps(sentence_spec(steps=1000) | {"search": GRID}))
    assert main(["search", *arguments(place, place / "whole")]) == 0
    return place


def arguments(place: Path, where: Path) -> list[str]:
    options = {"spec": place / "spec.json", "data": place / "data", "init": place / "init", "out": where / "out",
               "state": where / "state", "progress": "none", "save-every": 0.05}  # fmt: skip
    return [str(part) for name, value in options.items() for part in (f"--{name}", value)]


def test_every_pair_is_tried_and_the_best_by_validation_is_chosen(place):
    tried = pd.read_csv(place / "whole/out/search.csv")
    assert list(zip(tried["batch_sentences"], tried["learning_rate"], strict=True)) == [
        (50, 1e-7), (50, 0.003), (16, 1e-7), (16, 0.003)
    ]  # fmt: skip
    # Six passes over 200 items, whatever the batch.
    assert tried["max_steps"].tolist() == [24, 24, 75, 75]
    content = json.loads((place / "whole/out/chosen.json").read_text())
    best = tried.loc[tried["value"].idxmax()]  # the first of equal ones
    assert content["best"]["value"] == best["value"] > 80 and best["learning_rate"] == 0.003
    assert content["chosen"] == {
        "learning_rate": 0.003,
        "batch_sentences": best["batch_sentences"],
        "max_steps": best["max_steps"],
        "warmup_steps": round(best["max_steps"] / 100),  # as many of the steps as of the spec's
        "validate_every": {50: 2, 16: 7}[best["batch_sentences"]],
    }
    assert not (place / "whole/state").exists() or not any((place / "whole/state").iterdir())


def test_the_best_is_the_first_of_equal_ones():
    assert [find_best([0.5]), find_best([1, 3, 2, 3]), find_best([2.0, 2.0])] == [0, 1, 0]


@pytest.mark.parametrize(
    ("when", "how", "pairs"),
    [
        pytest.param(
            "done.json", signal.SIGKILL, (1, 2, 3), id="a pair is done", marks=pytest.mark.faults
        ),
        pytest.param(
            "0.003-50/step-*", signal.SIGKILL, (1, 2, 3), id="the second", marks=pytest.mark.slow
        ),
        pytest.param(
            "1e-07-50/step-*",
            signal.SIGTERM,
            (0,),
            id="stopped in the first",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_killed_search_goes_on_where_it_was(place, tmp_path, when, how, pairs):
    """Killed as soon as a pair is done, or its state is saved; asked to stop within the first one."""
    process = subprocess.Popen(
        command("search", *arguments(place, tmp_path)), cwd=ROOT, env=environment()
    )
    state, deadline = tmp_path / "state", time.monotonic() + 120
    while not any(state.glob(when)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(how)
    process.wait()
    done = json.loads((state / "done.json").read_text())
    before = done["pairs"]
    assert len(before) in pairs
    assert main(["search", *arguments(place, tmp_path)]) == 0
    kept, whole = (pd.read_csv(where / "out/search.csv") for where in (tmp_path, place / "whole"))
    # not trained again
    assert kept["seconds"].tolist()[: len(before)] == [row["seconds"] for row in before]
    assert kept.drop(columns="seconds").equals(whole.drop(columns="seconds"))
    record = json.loads((tmp_path / "out/record.json").read_text())
    assert record["resumed"] == 1
    assert record["seconds"] > done["costs"]["seconds"] > sum(row["seconds"] for row in before)
    assert record["gpu_seconds"] == 0


def test_a_state_of_another_search_is_refused(place, tmp_path, capsys):
    (tmp_path / "state").mkdir()
    content = dict.fromkeys(("spec_digest", "data_digest", "code_digest", "init_digest"), "0") | {
        "pairs": []
    }
    (tmp_path / "state/done.json").write_text(json.dumps(content))
    assert main(["search", *arguments(place, tmp_path)]) == 1
    assert_one_error(
        capsys.readouterr().err, "done.json was made with another spec; delete", "to start again"
    )


def test_a_kind_of_task_without_counted_examples_has_no_epochs_in_a_search():
    spec = read_run_spec(toy_spec(), "spec")
    with pytest.raises(UserError, match="kind seq2seq have no epochs in a search; give the length"):
        count_examples(spec, Path("data"), None)


def train(place: Path, tmp_path: Path, *more: object, **changes) -> int:
    spec = sentence_spec(steps=1000) | {"search": GRID, "seed": 5} | changes
    folders = {
        "data": place / "data",
        "init": place / "init",
        "out": tmp_path / "out",
        "state": tmp_path / "state",
    }
    return run_main("train", *more, spec=spec, **folders)


def test_a_run_of_another_seed_takes_what_was_chosen(place, tmp_path):
    assert train(place, tmp_path, "--search", place / "whole/out/chosen.json") == 0
    run = json.loads((tmp_path / "out/run.json").read_text())
    chosen = json.loads((place / "whole/out/chosen.json").read_text())["chosen"]
    assert run["chosen"] == chosen and run["steps"] == chosen["max_steps"] < 1000
    history = pd.read_csv(tmp_path / "out/training.csv")
    assert history.query("name == 'learning_rate'")["value"].max() <= 0.003


@pytest.mark.parametrize(
    ("given", "changes", "message"),
    [
        (False, {}, "needs the chosen.json of its search; pass --search"),
        (
            True,
            {"search": GRID | {"learning_rate": [0.1]}},
            "is from another configuration of same/bert/ft",
        ),
        (True, {"protocol": "paper"}, "run the search again"),
    ],
)
def test_a_run_whose_search_is_missing_or_another_is_refused(
    place, tmp_path, capsys, given, changes, message
):
    more = ("--search", place / "whole/out/chosen.json") if given else ()
    assert train(place, tmp_path, *more, **changes) == 1
    assert_one_error(capsys.readouterr().err, message)


def test_a_spec_without_a_search(place, tmp_path, capsys):
    folders = {
        "data": place / "data",
        "init": place / "init",
        "out": tmp_path / "out",
        "state": tmp_path / "state",
    }
    assert run_main("search", spec=sentence_spec(), **folders) == 1
    assert_one_error(capsys.readouterr().err, "key 'search' must have values")
