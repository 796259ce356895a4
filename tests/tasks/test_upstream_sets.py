"""The data sets that a user fetches, from files of upstream's format to scores: prepared,
fine-tuned on, evaluated.
"""

import importlib
import json

import pandas as pd
import pytest

from tests.config.as_json import resolve_data, resolve_evaluation, resolve_run
from tests.data import upstream_files
from tests.data.preparing import prepare_data, write_data
from tests.training.sentence_toy import SIZES, write_encoder
from tests.training.toy import run_main
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.tables.cells import make_cells

TABLES = ("table2", "table-paws", "table3", "table4", "table-squad", "table-few")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return upstream_files.write(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def init(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder") / "init", positions=64)


@pytest.mark.parametrize("task", upstream_files.FEWER)
def test_from_upstreams_files_to_the_scores_that_tables_show(tmp_path, sources, init, task):
    """At the paper's scale, but for the sizes of data and model, and two updates."""
    catalogue, run = load_catalogue(), Run(task, "bert", "ft", seed=1)
    data = resolve_data(catalogue, task, "full")
    assert set(data["sources"]) <= set(sources)
    data["options"] |= upstream_files.FEWER[task]
    module, given = (
        importlib.import_module(data["prepare"]),
        {name: sources[name] for name in data["sources"]},
    )
    made = prepare_data(module, data["options"], given)
    write_data(made, data, tmp_path / "data")

    spec = resolve_run(catalogue, run, "full")
    del spec["search"]
    spec["data"], spec["model"] = data, spec["model"] | SIZES | {"positions": 64}
    spec["problem"] |= {"longest": 64} | (
        {"stride": 8, "longest_question": 16} if task == "squad" else {}
    )
    spec["training"] |= {
        "max_steps": 2,
        "warmup_steps": 1,
        "validate_every": 2,
        "log_every": 1,
        "torch_threads": 1,
    }
    place = {"data": tmp_path / "data", "out": tmp_path / "run"}
    assert run_main("train", spec=spec, init=init, state=tmp_path / "state", **place) == 0
    place |= {"out": tmp_path / "run/eval", "run_dir": tmp_path / "run"}
    assert run_main("evaluate", settings=resolve_evaluation(catalogue, run, "full"), **place) == 0

    scores = pd.read_csv(tmp_path / "run/eval/scores.csv").query("readout == 'last'")
    found = set(scores[["split", "subset", "metric"]].itertuples(index=False, name=None))
    shown = {
        (cell.selection.split, cell.selection.subset, cell.selection.metric)
        for cell in cells_of(catalogue, task)
    }
    told = {
        row["metric"]
        for row in json.loads((tmp_path / "run/eval/evaluation.json").read_text()).get("absent", [])
    }
    assert {wanted for wanted in shown if wanted[2] not in told} <= found
    assert shown or task.endswith("pc")
    assert set(scores["protocol"]) == {made.protocol}


def cells_of(catalogue, task: str) -> list:
    """The cells of BERT on a task, that the tables of the paper show."""
    displays = catalogue.papers["cat"].displays
    evidence = Evidence("cat", "full", {}, {}, {})
    return [
        cell
        for name in TABLES
        for cell in make_cells(name, displays[name], evidence)
        if (cell.selection.task, cell.selection.method) == (task, "bert")
        and cell.selection.split is not None
    ]
