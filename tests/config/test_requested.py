from tests.config.copies import ROOT
from workflow_scripts.common.hashing import digest
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.run_specs import find_parent_run, resolve_run


def test_seeds_of_the_configuration_replace_those_of_the_experiments():
    catalogue = load_catalogue(ROOT)
    runs = list_requested_runs(catalogue, load_config({"scale": "small", "seeds": [7]}, ROOT))
    assert {run.seed for run in runs} == {7}


def test_extra_runs_come_only_when_asked_for():
    catalogue = load_catalogue(ROOT)
    few = list_requested_runs(catalogue, load_config({"scale": "small"}, ROOT))
    many = list_requested_runs(catalogue, load_config({"scale": "small", "extra": True}, ROOT))
    assert set(few) < set(many)
    assert {run.task for run in few} == {"scan-jump-x2", "scan-around-right", "cogs", "cognition"}


def test_a_run_comes_behind_the_one_that_it_starts_from():
    catalogue = load_catalogue(ROOT)
    runs = list(list_requested_runs(catalogue, load_config({"scale": "small", "papers": ["carma"]}, ROOT)))
    for run in runs:
        before = find_parent_run(catalogue, run, "small")
        assert (before is None) == (run.variant == "pretrain")
        assert before is None or runs.index(before) < runs.index(run)
    spec = resolve_run(catalogue, "idm/gpt2-small/ft/seed-21", "small")
    pretrained = resolve_run(catalogue, "text-bpe-4k/gpt2-small/pretrain/seed-1", "small")
    assert spec["init"] == {"run": "text-bpe-4k/gpt2-small/pretrain/seed-1", "spec": digest(pretrained)}
