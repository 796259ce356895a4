from pathlib import Path

import pytest

from tests.config.copies import ROOT, edit
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.task_specs import merge_data, resolve_data


@pytest.mark.parametrize(
    ("scale", "change", "said"),
    [
        (
            "demo",
            lambda it: it["scan-jump"]["when"][0]["options"].update(limit={"train": "lots"}),
            r"scan-jump\.when\.0: .*key 'limit\.train' is 'lots'",
        ),
        (
            "small",
            lambda it: it["scan-jump"]["options"].update(atomic_copies="x"),
            r"scan-jump: .*key 'atomic_copies' is 'x'",
        ),
    ],
)
def test_wrong_options_of_data_are_refused_before_any_job(copy: Path, scale: str, change, said: str):
    edit(copy / "catalogue/tasks/scan.yaml", change)
    with pytest.raises(UserError, match=rf"^catalogue/tasks/scan.yaml:\d+: {said}"):
        resolve_data(load_catalogue(copy), "scan-jump", scale)


def test_each_key_of_the_data_has_the_entry_that_sets_it():
    catalogue = load_catalogue(ROOT)
    demo, small = (merge_data(catalogue, "cogs", scale) for scale in ("demo", "small"))
    assert str(demo["sources"][1]) == str(demo["protocol"][1])
    assert str(demo["sources"][1]).endswith("cogs.when.0")
    assert str(small["sources"][1]).startswith("catalogue/tasks/cogs.yaml:")
    for scale, found in (("demo", demo), ("small", small)):
        data = resolve_data(catalogue, "cogs", scale)
        expected = {key: data[key] for key in data if key not in ("task", "options")}
        expected |= {f"options.{key}": value for key, value in data["options"].items()}
        assert {key: value for key, (value, _) in found.items()} == expected


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("cosg", "task cogs: `prepare` is .*, but there is no module workflow_scripts.data.datasets.cosg"),
        ("contamination", "module workflow_scripts.data.datasets.contamination has no `Options`"),
    ],
)
def test_a_module_that_prepares_nothing_is_named(copy: Path, module: str, message: str):
    edit(copy / "catalogue/tasks/cogs.yaml", lambda tasks: tasks["cogs"].update(prepare=module))
    with pytest.raises(UserError, match=message):
        resolve_data(load_catalogue(copy), "cogs", "demo")


def test_the_demo_needs_no_source_file():
    catalogue = load_catalogue(ROOT)
    runs = list_requested_runs(catalogue, load_config({"scale": "demo"}, ROOT))
    assert len(runs) <= 15
    assert not any(resolve_data(catalogue, run.task, "demo")["sources"] for run in runs)
