"""Full-size models, which tests cannot train, must at least be right: each is built without memory
for its weights, and its jobs ask for resources.
"""

import json
from pathlib import Path

import pytest
import torch

from tests.models.small_models import count_parameters
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.specs import resolve_run
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.run_spec import HubModel
from workflow_scripts.workflow.job_specs import resolve_run_job_spec

ROOT = Path(__file__).parents[2]
CATALOGUE = load_catalogue(ROOT)
VOCABULARY = 30522  # of bert-base-uncased; that of seq2seq tasks is made of their data
# roberta-base: its vocabulary, and its parameters without those of the pooler, as its authors' file
# holds them.
ROBERTA, ROBERTA_PARAMETERS = 50265, 124_645_632 - (768 * 768 + 768)


def distinct_models() -> list[Run]:
    """A run of each distinct model of the scale `full`, with its seed left open."""
    config = load_config({"scale": "full", "papers": list(CATALOGUE.papers)}, ROOT)
    found = {}
    for run in list_requested_runs(CATALOGUE, config):
        spec = resolve_run(CATALOGUE, run, "full")
        found.setdefault(
            json.dumps([spec.kind, spec.model.to_json()], sort_keys=True), run._replace(seed=0)
        )
    return list(found.values())


@pytest.mark.parametrize("run", distinct_models(), ids=str)
def test_each_model_can_be_built_and_its_jobs_ask_for_memory(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(ROOT)
    spec = resolve_run(CATALOGUE, run, "full")
    module, settings = import_model(spec.model.name), spec.model.settings
    hub = load_repositories()[spec.origin.hub] if isinstance(spec.origin, HubModel) else None
    with torch.device("meta"):
        if spec.kind == "seq2seq":
            model = module.build(
                settings, source_vocabulary=ROBERTA if hub else 5000, target_vocabulary=4000
            )
            if hub:
                assert count_parameters(model.roberta) == ROBERTA_PARAMETERS
        elif spec.kind == "prompt":
            # the hub's own; ours are shorter
            positions = {"positions": 1024} if settings.family == "gpt2" else {}
            model = module.build(settings.model_copy(update=positions), hub.vocabulary)
            assert count_parameters(model) == hub.parameters
        else:
            model = module.build(settings, VOCABULARY)
    assert all(parameter.is_meta for parameter in model.parameters())
    # Weights, gradients and Adam's two moments, in float32, pass through the host's memory when a
    # state is saved.
    needed = 4 * 4 * count_parameters(model) / 1e6
    job_spec = resolve_run_job_spec(CATALOGUE, run, "full")
    assert job_spec.resources.memory > needed
    # A card of 40 GB, of which 2 GB are left for activations.
    assert job_spec.resources.large_gpu == (needed > 38e3)
