"""Runs that start from a model of the Hugging Face hub: what is planned, and the rule that fetches
it.
"""

import json
import os
import re

import pytest

from tests.data.file_server import serving
from tests.data.hub_server import HubServer
from tests.workflow.projects import Project
from workflow_scripts.data.sources.declared import load_repositories

GATED = "google/gemma-2b"
REVISION = load_repositories()[GATED].revision
MANIFEST = f"results/downloads/models/{GATED}/model.json"
FILES = {"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": bytes(1000)}


@pytest.fixture
def project(project: Project) -> Project:
    """With one paper: the test is not about the others."""
    with project.edited("config.yaml") as config:
        config["papers"] = ["sq_transformer"]
    return project


@pytest.fixture
def from_hub(project: Project) -> Project:
    """The demo of one paper, in which all Transformers start from a model of the hub."""
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["transformer"]["init"] = {"hub": GATED, "revision": REVISION}
    return project


@pytest.mark.slow
def test_runs_have_the_models_manifest_among_their_inputs(from_hub):
    assert ("fetch_model", MANIFEST) in from_hub.planned()
    run = "results/demo/runs/scan-jump/transformer/default/seed-1/run.json"
    done = from_hub.make("-n", "-p", run)
    assert f"--init=results/downloads/models/{GATED} " in re.sub(
        r"\s+", " ", done.stdout + done.stderr
    )

    plan, why = from_hub.command("plan").stdout, from_hub.command("why", run).stdout
    assert ", 1 fetch_model" in plan and f"{GATED} of the Hugging Face hub, gated" in plan
    assert "fetch_model" in why


def test_a_commit_that_is_not_the_pinned_one_is_refused(from_hub):
    with from_hub.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["transformer"]["init"]["revision"] = "a" * 40
    done = from_hub.reproduce("-n")
    assert done.returncode != 0
    assert (
        f"init.revision is {'a' * 40}, in sources.yaml it is {REVISION}"
        in done.stdout + done.stderr
    )


def test_the_rule_fetches_with_the_environments_token_and_writes_it_nowhere(project, monkeypatch):
    token = "hf_averysecretone"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with serving(HubServer) as hub:
        hub.add(GATED, REVISION, FILES)
        hub.gated, hub.tokens = {GATED}, {token}
        done = project.make(MANIFEST, env=os.environ | {"HF_ENDPOINT": hub.url, "HF_TOKEN": token})
    assert json.loads((project.root / MANIFEST).read_text())["files"].keys() == FILES.keys()
    written = [project.root / "results", project.root / ".snakemake"]
    for file in (path for folder in written for path in folder.rglob("*") if path.is_file()):
        assert token.encode() not in file.read_bytes(), file
    assert token not in done.stdout + done.stderr


def test_without_network_a_model_comes_from_the_folder_of_the_configuration(
    project, tmp_path_factory
):
    models = tmp_path_factory.mktemp("models")
    (models / GATED).mkdir(parents=True)
    for file, content in FILES.items():
        (models / GATED / file).write_bytes(content)
    with project.edited("config.yaml") as config:
        config["models"]["local"] = str(models)
    project.make(MANIFEST, env=os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9"})
    assert (project.root / MANIFEST).with_name("model.safetensors").read_bytes() == FILES[
        "model.safetensors"
    ]
