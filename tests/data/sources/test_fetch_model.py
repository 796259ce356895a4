"""Fetching models from a server that plays the hub, and from folders; a run that starts from one."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import huggingface_hub.constants
import pytest

from tests.data.file_server import serving
from tests.data.hub_server import HubServer, sha256
from tests.training.causal_toy import causal_spec, write_prompts, write_text
from workflow_scripts.__main__ import main
from workflow_scripts.commands.evaluate import hash_weights
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.models.causal_lm.model import Settings, build, load_causal_lm

ROOT = Path(__file__).parents[3]
OPEN, GATED = "openai-community/gpt2", "google/gemma-2b"
REVISION = load_repositories()[OPEN].revision
TOKEN = "hf_averysecretone"
SECRETS = (TOKEN, "hf_stranger")
TAKEN = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}
SHARDED = {
    "model.safetensors.index.json",
    *(f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)),
}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory) -> dict[str, dict[str, bytes]]:
    """A small real GPT-2, as one file of weights and as three, among files that are never taken."""
    from tokenizers import Tokenizer

    place = tmp_path_factory.mktemp("gpt2")
    write_text(place / "text")
    vocabulary = Tokenizer.from_file(str(place / "text/tokenizer.json")).get_vocab_size()
    sizes = {
        "family": "gpt2",
        "layers": 2,
        "heads": 2,
        "width": 32,
        "feed_forward": 64,
        "positions": 64,
    }
    model = build(Settings(**(sizes | {"dropout": 0.1})), vocabulary)
    found = {}
    for name, most in (("whole", "1GB"), ("sharded", "45KB")):
        model.save_pretrained(place / name, max_shard_size=most)
        shutil.copy(place / "text/tokenizer.json", place / name)
        found[name] = {path.name: path.read_bytes() for path in (place / name).iterdir()}
        found[name] |= dict.fromkeys(
            ("pytorch_model.bin", "run.py", "onnx/config.json"), b"never to be taken"
        )
    assert found["whole"].keys() >= TAKEN and found["sharded"].keys() >= SHARDED
    return found


@pytest.fixture
def hub(gpt2, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    with serving(HubServer) as server:
        server.add(OPEN, REVISION, gpt2["whole"])
        server.add(GATED, load_repositories()[GATED].revision, gpt2["whole"])
        server.gated, server.tokens = {GATED}, set(SECRETS)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def fetch(tmp_path, capfd):
    """`fetch-model NAME ...` as it is typed, into out/: its exit code and what it says, which is
    one line.
    """

    def run(name: str, *more: object) -> tuple[int, str]:
        code = main(["fetch-model", name, "--out", str(tmp_path / "out" / name), *map(str, more)])
        said = capfd.readouterr()
        assert said.out == "" and said.err.count("\n") == 1
        assert not any(secret in said.err for secret in SECRETS)
        return code, said.err

    return run


def held(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_whole_model(hub, fetch, gpt2, tmp_path):
    code, said = fetch(OPEN)
    assert code == 0 and f"from {hub.url}" in said
    found = held(tmp_path / "out" / OPEN)
    manifest = json.loads(found.pop("model.json"))
    assert found == {file: gpt2["whole"][file] for file in TAKEN}
    assert (manifest["name"], manifest["revision"]) == (OPEN, REVISION)
    assert manifest["files"] == {
        file: {"sha256": sha256(content), "bytes": len(content)} for file, content in found.items()
    }
    assert load_causal_lm(tmp_path / "out" / OPEN, "gpt2").config.n_layer == 2
    assert [
        path.name
        for path in (tmp_path / "out/openai-community").iterdir()
        if path.suffix != ".lock"
    ] == ["gpt2"]


def test_a_model_that_is_there_is_not_asked_for(hub, fetch, tmp_path):
    fetch(OPEN)
    hub.seen.clear()
    assert fetch(OPEN) == (0, f"{OPEN}: already there\n")
    assert not hub.seen
    (tmp_path / "out" / OPEN / "config.json").write_text("{}")
    assert "from http" in fetch(OPEN)[1]


LISTS_NOTHING = json.dumps({"name": OPEN, "revision": REVISION, "files": {}})


@pytest.mark.parametrize("content", ["[1]", '{"name": "gpt2"}', "{", LISTS_NOTHING])
def test_a_damaged_manifest_is_that_of_no_complete_model(hub, fetch, tmp_path, content):
    fetch(OPEN)
    (tmp_path / "out" / OPEN / "model.json").write_text(content)
    assert "from http" in fetch(OPEN)[1]


def test_somebodys_own_model_is_not_replaced(hub, fetch, tmp_path):
    """It has the names of a model's files, and no model.json."""
    fetch(OPEN)
    folder = tmp_path / "out" / OPEN
    (folder / "model.json").unlink()
    (folder / "model.safetensors").write_text("mine")
    code, said = fetch(OPEN)
    assert code == 1 and "which this command does not write; choose another --out" in said
    assert (folder / "model.safetensors").read_text() == "mine"


def test_weights_in_several_files(hub, fetch, gpt2, tmp_path):
    hub.add(OPEN, REVISION, gpt2["sharded"])
    assert fetch(OPEN)[0] == 0
    folder = tmp_path / "out" / OPEN
    assert held(folder).keys() == (TAKEN - {"model.safetensors"}) | SHARDED | {"model.json"}
    assert load_causal_lm(folder, "gpt2").config.n_layer == 2
    digest = hash_weights(folder)
    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other/model-00002-of-00003.safetensors").write_bytes(b"other")
    assert len(digest) == 64 and hash_weights(tmp_path / "other") != digest


def test_a_shard_that_only_the_index_has(hub, fetch, gpt2, tmp_path):
    files = {file: content for file, content in gpt2["sharded"].items() if "00003-of" not in file}
    hub.add(OPEN, REVISION, files)
    code, said = fetch(OPEN)
    assert code == 1 and "lists model-00003-of-00003.safetensors, which is missing" in said
    assert not (tmp_path / "out" / OPEN).exists()


@pytest.mark.quick_faults
def test_a_killed_fetch_is_gone_on_with(hub, fetch, gpt2, tmp_path):
    hub.faults = [("stall", 50_000)]
    command = [
        sys.executable,
        "-m",
        "workflow_scripts",
        "fetch-model",
        OPEN,
        "--out",
        str(tmp_path / "out" / OPEN),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, env=os.environ)
    part = tmp_path / f"out/openai-community/.gpt2.{REVISION[:12]}.part/model.safetensors.part"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    received = part.stat().st_size
    assert 0 < received <= 50_000 and not (tmp_path / "out" / OPEN).exists()
    hub.requests.clear()
    assert fetch(OPEN)[0] == 0
    assert [asked for _, asked, _ in hub.requests] == [f"bytes={received}-"]
    assert held(tmp_path / "out" / OPEN)["model.safetensors"] == gpt2["whole"]["model.safetensors"]


def test_wrong_bytes_of_an_earlier_call_are_not_built_upon(hub, fetch, gpt2, tmp_path):
    part = tmp_path / f"out/openai-community/.gpt2.{REVISION[:12]}.part"
    part.mkdir(parents=True)
    (part / "model.safetensors.part").write_bytes(b"\1" * 1000)
    (part / "config.json").write_text("{}")
    assert fetch(OPEN)[0] == 0
    found = held(tmp_path / "out" / OPEN)
    assert all(found[file] == gpt2["whole"][file] for file in TAKEN)


def test_a_server_that_sends_other_bytes_than_it_lists(hub, fetch, gpt2, tmp_path):
    weights = gpt2["whole"]["model.safetensors"]
    hub.files[f"/storage/{sha256(weights)}"] = bytes(len(weights))
    code, said = fetch(OPEN)
    assert code == 1 and "another checksum, nothing was kept" in said
    assert not (tmp_path / "out" / OPEN).exists()


def test_passing_faults_of_the_hub_are_borne(hub, fetch):
    hub.statuses = [503, 429]
    assert fetch(OPEN)[0] == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda files: files.pop("tokenizer.json"), "has no tokenizer.json; pin another commit"),
        (lambda files: files.pop("config.json"), "has no config.json; pin another commit"),
        (
            lambda files: files.pop("model.safetensors"),
            "has no model.safetensors, only pytorch_model.bin, and a",
        ),
        (lambda files: files.clear(), "has no model.safetensors, so no weights"),
    ],
)
def test_a_missing_file(hub, fetch, gpt2, change, expected):
    files = dict(gpt2["whole"])
    change(files)
    hub.add(OPEN, REVISION, files)
    code, said = fetch(OPEN)
    assert code == 1 and f"{OPEN} at commit {REVISION} {expected}" in said
    assert not hub.requests


@pytest.mark.parametrize(
    ("name", "environment", "changes", "expected"),
    [
        ("openai-community/gpt", {}, {}, r"did you mean 'openai-community/gpt2'\?"),
        (
            OPEN,
            {},
            {"repositories": {OPEN: {"0" * 40: {}}}},
            f"{OPEN} has no commit {REVISION} at http",
        ),
        (OPEN, {}, {"repositories": {}}, f"has no model {OPEN}"),
        (OPEN, {"HF_TOKEN": TOKEN}, {"repositories": {}}, f"has no model {OPEN}"),
        (
            OPEN,
            {},
            {"statuses": [403]},
            "status 403; check HF_ENDPOINT and HF_TOKEN, or put the model at",
        ),
        (
            GATED,
            {},
            {},
            r"accept its licence \(Gemma terms\) at https://huggingface.co/google/gemma-2b, make a token",
        ),
        (
            GATED,
            {"HF_TOKEN": "hf_stranger"},
            {},
            r"has no access: accept the licence \(Gemma terms\)",
        ),
        (
            GATED,
            {"HF_TOKEN": TOKEN},
            {"tokens": set()},
            "does not know the token; correct or unset HF_TOKEN",
        ),
        (GATED, {"HF_TOKEN": f"{TOKEN} é"}, {}, "HF_TOKEN has characters"),
        (
            OPEN,
            {"HF_ENDPOINT": "http://127.0.0.1:9"},
            {},
            "127.0.0.1:9 cannot be reached .* models.local",
        ),
        (
            OPEN,
            {"HF_ENDPOINT": f"http://me:{TOKEN}@127.0.0.1"},
            {},
            "HF_ENDPOINT is not of the form",
        ),
    ],
)
def test_a_refusal_says_what_to_do(
    hub, fetch, monkeypatch, tmp_path, name, environment, changes, expected
):
    for attribute, value in changes.items():
        setattr(hub, attribute, value)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    code, said = fetch(name)
    assert code == 1 and re.search(expected, said)
    assert not (tmp_path / "out" / name).exists()


def test_the_token_goes_to_the_hub_only(hub, fetch, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert fetch(GATED)[0] == 0
    assert {bool(token) for _, path, token in hub.seen if not path.startswith("/storage/")} == {
        True
    }
    assert {token for _, path, token in hub.seen if path.startswith("/storage/")} == {None}
    assert not any(TOKEN.encode() in content for content in held(tmp_path / "out").values())


def test_files_of_somebody_else_are_not_replaced(hub, fetch, tmp_path):
    (tmp_path / "out" / OPEN).mkdir(parents=True)
    (tmp_path / "out" / OPEN / "thesis.txt").write_text("all of it")
    assert "contains thesis.txt, which this command does not write" in fetch(OPEN)[1]
    assert not hub.seen


@pytest.fixture
def local(gpt2, tmp_path) -> Path:
    """A folder <owner>/<name>/ with the model."""
    folder = tmp_path / "models" / OPEN
    folder.mkdir(parents=True)
    for file in TAKEN | {"pytorch_model.bin"}:
        (folder / file).write_bytes(gpt2["whole"][file])
    return folder


def test_a_model_of_a_folder(hub, fetch, local, tmp_path):
    code, said = fetch(OPEN, "--local", tmp_path / "models")
    assert code == 0 and f"on trust: nothing there says that it is the commit {REVISION}" in said
    assert not hub.seen
    folder = tmp_path / "out" / OPEN
    assert held(folder).keys() == TAKEN | {"model.json"}
    assert load_causal_lm(folder, "gpt2").config.n_layer == 2
    shutil.copytree(folder, tmp_path / "copied" / OPEN)
    shutil.rmtree(folder)
    code, said = fetch(OPEN, "--local", tmp_path / "copied")
    assert code == 0 and "checked against its model.json" in said
    shutil.rmtree(folder)
    (tmp_path / "copied" / OPEN / "config.json").write_text("{}")
    code, said = fetch(OPEN, "--local", tmp_path / "copied")
    assert code == 1 and "config.json differs from its sha256 in model.json" in said
    (tmp_path / "copied" / OPEN / "model.json").write_text(LISTS_NOTHING)
    code, said = fetch(OPEN, "--local", tmp_path / "copied")
    assert code == 1 and "config.json is not in model.json; copy the folder again" in said


@pytest.mark.parametrize("commit", [REVISION, "1" * 40])
def test_a_folder_that_the_hubs_own_tool_made(hub, fetch, tmp_path, commit, gpt2, capfd):
    hub.add(OPEN, commit, gpt2["whole"])
    folder = tmp_path / "models" / OPEN
    for file in TAKEN:
        huggingface_hub.hf_hub_download(
            OPEN,
            file,
            revision=commit,
            local_dir=folder,
            endpoint=hub.url,
            cache_dir=tmp_path / "cache",
            token=False,
        )
    capfd.readouterr()
    code, said = fetch(OPEN, "--local", tmp_path / "models")
    if commit == REVISION:
        assert code == 0 and "whose records name the pinned commit" in said
    else:
        assert code == 1 and f"is of the commit {commit}; get {REVISION} with: hf download" in said


def test_a_folder_without_the_model(hub, fetch, local, tmp_path):
    code, said = fetch(OPEN, "--local", tmp_path)
    assert code == 1 and f"{tmp_path / OPEN} does not exist" in said and "hf download" in said
    (local / "tokenizer.json").unlink()
    assert f"{local} has no tokenizer.json" in fetch(OPEN, "--local", tmp_path / "models")[1]


def test_a_run_starts_from_a_fetched_model(hub, fetch, gpt2, tmp_path, capfd):
    hub.add(OPEN, REVISION, gpt2["sharded"])
    fetch(OPEN)
    write_prompts(tmp_path / "prompts")
    spec = causal_spec("prompt", max_steps=1, warmup_steps=1, validate_every=1, log_every=1)
    spec["init"] = {"hub": OPEN, "revision": REVISION}

    def train() -> int:
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        paths = {
            "spec": "spec.json",
            "data": "prompts",
            "out": "run",
            "state": "state",
            "init": f"out/{OPEN}",
        }
        arguments = [
            part for option, path in paths.items() for part in (f"--{option}", str(tmp_path / path))
        ]
        return main(["train", *arguments, "--progress", "none"])

    assert train() == 0
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["steps"] == 1 and run["init_digest"] == hash_weights(tmp_path / "out" / OPEN)
    assert load_causal_lm(tmp_path / "run/checkpoint", "gpt2").config.n_layer == 2
    capfd.readouterr()
    spec["init"]["revision"] = "1" * 40
    assert train() == 1
    assert (
        f"contains {OPEN} at {REVISION}, but the run starts from {OPEN} at {'1' * 40}"
        in capfd.readouterr().err
    )
