from pathlib import Path

import pytest

from tests.config.copies import ROOT, edit
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import requested_runs
from workflow_scripts.config.task_specs import data_origins, resolve_data


@pytest.mark.parametrize(
    ("scale", "file", "change", "said"),
    [
        (
            "demo",
            "scales.yaml",
            lambda it: it["demo"]["data"]["scan-jump"]["options"].update(limit={"train": "lots"}),
            r"key 'limit\.train' is 'lots'.* \(catalogue/scales.yaml demo\.data\.scan-jump\)$",
        ),
        (
            "small",
            "tasks.yaml",
            lambda it: it["scan-jump"]["options"].update(atomic_copies="x"),
            r"key 'atomic_copies' is 'x'.* \(catalogue/tasks.yaml scan-jump\)$",
        ),
    ],
)
def test_wrong_options_of_data_are_refused_before_any_job(copy: Path, scale: str, file: str, change, said: str):
    edit(copy / "catalogue" / file, change)
    with pytest.raises(UserError, match=f"options of task scan-jump at scale {scale}: {said}"):
        resolve_data(load_catalogue(copy), "scan-jump", scale)


def test_each_key_of_the_data_has_the_entry_that_sets_it():
    catalogue = load_catalogue(ROOT)
    demo, small = (data_origins(catalogue, "cogs", scale) for scale in ("demo", "small"))
    assert demo["sources"] == demo["protocol"] == "catalogue/scales.yaml demo.data.cogs"
    assert small["sources"] == small["prepare"] == "catalogue/tasks.yaml cogs"
    for scale, origins in (("demo", demo), ("small", small)):
        data = resolve_data(catalogue, "cogs", scale)
        assert origins.keys() == {*(data.keys() - {"options"}), *(f"options.{key}" for key in data["options"])}


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            "workflow_scripts.data.cosg",
            "task cogs: `prepare` is .*, but there is no module workflow_scripts.data.cosg",
        ),
        ("data.cogs", "there is no module data;"),
        (
            "workflow_scripts.data.datasets.scan_grammar",
            "module workflow_scripts.data.datasets.scan_grammar has no `Options`",
        ),
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
