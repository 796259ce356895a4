"""The prepare command, as it is typed."""

import argparse
import hashlib
import importlib
import json

import pyarrow.parquet
import pytest

from tests.config.as_json import resolve_data
from workflow_scripts.commands import prepare
from workflow_scripts.commands.named_specs import set_job_spec
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.data_spec import read_data_spec
from workflow_scripts.data.datasets import scan
from workflow_scripts.data.sources.declared import load_sources, select_sources
from workflow_scripts.provenance.spec_fingerprints import fingerprint_data

SPEC = {
    "task": "scan-jump",
    "prepare": "workflow_scripts.data.datasets.scan",
    "options": {"set": "add_jump", "from": "upstream"},
    "sources": ["scan/tasks_train_addprim_jump.txt", "scan/tasks_test_addprim_jump.txt"],
    "protocol": "paper",
}


def run(*words: object) -> None:
    parser = argparse.ArgumentParser()
    prepare.add_arguments(parser)
    args = parser.parse_args([str(word) for word in words])
    set_job_spec("prepare", args)
    prepare.main(args)


@pytest.fixture
def spec_file(tmp_path):
    def make(**changes):
        file = tmp_path / "spec.json"
        file.write_text(json.dumps(SPEC | changes))
        return file

    return make


def test_made_up_data_load_with_hugging_face_datasets(tmp_path, monkeypatch):
    from datasets import load_dataset

    monkeypatch.setattr("socket.create_connection", None)  # nothing may be asked of the hub
    prompt, text = ["item", "content", "label", "subset"], ["source", "ids"]
    for task, columns in {
        "idm": prompt,
        "sst": prompt,
        "text-bpe-1k": text,
        "text-unigram-4k": text,
    }.items():
        run("--task", task, "--scale", "demo", "--out", tmp_path / task)
        rows = json.loads((tmp_path / task / "dataset.json").read_text())["splits"]
        files = {split: str(tmp_path / task / f"{split}.parquet") for split in rows}
        loaded = load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))
        assert {split: table.num_rows for split, table in loaded.items()} == {
            k: v["rows"] for k, v in rows.items()
        }
        assert loaded["train"].column_names == columns
        assert loaded["train"].to_list() == pyarrow.parquet.read_table(files["train"]).to_pylist()


def test_every_task_of_the_catalogue_has_valid_options():
    catalogue = load_catalogue()
    for scale in catalogue.scales:
        for task in catalogue.tasks:
            spec = resolve_data(catalogue, task, scale)
            settings = parse_as(
                importlib.import_module(spec["prepare"]).Options,
                spec["options"],
                f"{task} at {scale}",
            )
            if spec["prepare"] == "workflow_scripts.data.datasets.scan":
                scan.resolve_renaming(settings)
            declared = select_sources(spec["sources"], load_sources())
            assert (settings.origin == "upstream") == bool(declared), (task, scale)


def test_from_a_spec_with_the_digests_of_the_sources(tmp_path, spec_file, mirror):
    run("--spec", spec_file(), "--downloads", mirror, "--out", tmp_path / "data")
    summary, record = (
        json.loads((tmp_path / "data" / name).read_text())
        for name in ("dataset.json", "record.json")
    )
    for name in SPEC["sources"]:
        assert (
            record["data_digest"][name] == hashlib.sha256((mirror / name).read_bytes()).hexdigest()
        )
    assert record["fingerprint"] == str(fingerprint_data(read_data_spec(SPEC, "spec")))
    assert record["spec"] == summary["spec"] == SPEC
    assert summary["splits"]["train"]["rows"] == 14_670
    assert summary["vocabulary"] == {"source": 17, "target": 10}  # as in the paper


def test_a_missing_source_says_how_to_get_it(tmp_path, spec_file):
    with pytest.raises(
        UserError,
        match=r"addprim_jump.txt does not exist; .* fetch scan/tasks_train_addprim_jump.txt$",
    ):
        run("--spec", spec_file(), "--downloads", tmp_path, "--out", tmp_path / "data")


def test_a_source_that_is_not_the_pinned_one(tmp_path, spec_file):
    (tmp_path / "scan").mkdir()
    for name in SPEC["sources"]:
        (tmp_path / name).write_text("IN: jump OUT: I_JUMP\n")
    digest = hashlib.sha256(b"IN: jump OUT: I_JUMP\n").hexdigest()
    with pytest.raises(
        UserError, match=f"wrong sha256: expected e3c78485.*, actual {digest}; get it again"
    ):
        run("--spec", spec_file(), "--downloads", tmp_path, "--out", tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--task", "scan-jump"), "--task needs --scale, e.g. --scale demo"),
        (("--task", "scan-jmup", "--scale", "demo"), "did you mean 'scan-jump'?"),
        (("--task", "scan-jump", "--scale", "dmeo"), "did you mean 'demo'?"),
    ],
)
def test_wrong_arguments(tmp_path, words, message):
    with pytest.raises(UserError) as caught:
        run(*words, "--out", tmp_path / "data")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "task",
    [
        "bird",
        "cfq-mcd1",
        "cogs",
        "idm",
        "pairs-wordpiece",
        "paws",
        "sst",
        "stsb",
        "text-bpe-1k",
        "wmt14-fr-en",
    ],
)
def test_made_again_over_itself_and_over_nothing_else(tmp_path, task):
    words = ("--task", task, "--scale", "demo", "--out", tmp_path / "data")
    run(*words)
    made = hash_files(tmp_path / "data")
    run(*words)
    again = hash_files(tmp_path / "data")
    assert made.pop("record.json") != again.pop("record.json") and made == again
    (tmp_path / "data/thesis.tex").write_text("all of it")
    with pytest.raises(
        UserError, match=r"data contains thesis\.tex, which this command does not write"
    ):
        run(*words)
    assert (tmp_path / "data/thesis.tex").read_text() == "all of it"
