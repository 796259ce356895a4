from pathlib import Path

import pytest

from tests.catalogue.copies import ROOT, edit
from workflow_scripts.catalogue.loading import load_catalogue, load_config
from workflow_scripts.catalogue.requested import requested_runs
from workflow_scripts.catalogue.task_specs import resolve_data
from workflow_scripts.errors import UserError


def test_wrong_options_of_data_are_refused_before_any_job(copy: Path):
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["demo"]["data"]["scan-jump"]["options"].update(limit={"train": "lots"}),
    )
    with pytest.raises(UserError, match=r"options of task scan-jump at scale demo: key 'limit\.train' is 'lots'"):
        resolve_data(load_catalogue(copy), "scan-jump", "demo")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            "workflow_scripts.data.cosg",
            "task cogs: `prepare` is .*, but there is no module workflow_scripts.data.cosg",
        ),
        ("data.cogs", "there is no module data;"),
        ("workflow_scripts.data.scan_grammar", "module workflow_scripts.data.scan_grammar has no `Options`"),
    ],
)
def test_a_module_that_prepares_nothing_is_named(copy: Path, module: str, message: str):
    edit(copy / "catalogue/tasks.yaml", lambda tasks: tasks["cogs"].update(prepare=module))
    with pytest.raises(UserError, match=message):
        resolve_data(load_catalogue(copy), "cogs", "demo")


def test_the_demo_needs_no_source_file():
    catalogue = load_catalogue(ROOT)
    runs = requested_runs(catalogue, load_config({"scale": "demo"}, ROOT))
    assert len(runs) <= 15
    assert not any(resolve_data(catalogue, run.task, "demo")["sources"] for run in runs)
