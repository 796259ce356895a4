"""The evaluate command: predictions and scores against single-sentence decoding, and what it
refuses.
"""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.tasks.seq2seq.test_training_setup import decoded_alone
from tests.training.toy import (
    TARGET_WORDS,
    assert_one_error,
    assert_one_line_error,
    call,
    flip_bit,
    here,
    pair,
    record_files,
    run_main,
    toy_spec,
    write_data,
    write_split,
)
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import digest, hash_file
from workflow_scripts.common.progress import Reporter
from workflow_scripts.data.prepared import digest_data
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.tasks.seq2seq.checkpoint import load_run
from workflow_scripts.tasks.seq2seq.decoding import decode, decode_with_beam
from workflow_scripts.tasks.seq2seq.scoring import match_structures
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqEvaluation

SETTINGS = {"splits": ["test", "valid"], "beam": 1, "max_length": 12, "batch_tokens": 60}


@pytest.fixture
def place(trained, tmp_path) -> Path:
    """A copy of the trained run that the test may damage, with settings.json."""
    folder = shutil.copytree(trained, tmp_path / "place")
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    return folder


def options(place: Path, with_settings: bool = True, **other: Path) -> list[str]:
    """Options of the command for the copied run, with or without --settings."""
    values = {
        "run-dir": place / "out",
        "data": place / "data",
        "out": place / "eval",
        "progress": "none",
        **other,
    }
    values |= {"settings": place / "settings.json"} if with_settings else {}
    return [text for name, value in values.items() for text in (f"--{name}", str(value))]


def refused(capsys, place: Path, *parts: str, **other: Path) -> None:
    """Evaluating in this process is refused with one line that holds `parts`, and writes nothing."""
    assert main(["evaluate", *options(place, **other)]) == 1
    assert_one_error(capsys.readouterr().err, *parts)
    assert not (place / "eval").exists()


@torch.no_grad()
def test_predictions_and_scores_are_those_of_every_sentence_decoded_alone(place):
    result = call("evaluate", *options(place))
    assert result.returncode == 0 and result.stderr == ""
    predictions = pq.read_table(place / "eval/predictions.parquet").to_pylist()
    assert list(predictions[0]) == ["split", "readout", "row", "subset", "prediction", "correct"]

    torch.set_num_threads(1)
    model, _, _ = load_run(place / "out", place / "data")
    expected, scores = [], {}
    for split in SETTINGS["splits"]:
        rows = pq.read_table(place / "data" / f"{split}.parquet").to_pylist()
        for number, row in enumerate(rows):
            ids = decoded_alone(model, torch.tensor([*row["source_ids"], 2]), 12)
            prediction = " ".join(TARGET_WORDS[token] for token in ids if token != 2)
            found = {
                "split": split,
                "readout": None,
                "row": number,
                "subset": row["subset"],
                "prediction": prediction,
            }
            expected.append({**found, "correct": prediction == row["target"]})
        for subset in ("all", "both", "short", "long"):
            chosen = [
                e["correct"]
                for e in expected
                if e["split"] == split and subset in ("all", "both", e["subset"])
            ]
            scores[split, subset] = (pytest.approx(100 * sum(chosen) / len(chosen)), len(chosen))
    assert predictions == expected
    rows = read_scores(place / "eval/scores.csv")
    matches = [row for row in rows if row.metric == "exact_match"]
    assert {(row.split, row.subset): (row.value, row.n) for row in matches} == scores
    named = {
        "task": "toy",
        "method": "transformer",
        "variant": "default",
        "seed": 3,
        "protocol": "reduced",
    }
    assert all(row.has(named) for row in rows)


def test_further_checkpoints_are_scored_as_the_own_one_with_their_weights(trained, tmp_path):
    """As if each of them were the only one; the rows say by `readout` which it is."""
    shutil.copytree(trained / "data", tmp_path / "data")
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    kept = ["test", "last"]
    places = {name: tmp_path / name for name in ("data", "out", "state")}
    assert (
        run_main("train", spec=toy_spec(max_steps=75, also_keep=kept), device="cpu", **places) == 0
    )
    # In so short a training the last weights may be best everywhere: other ones must give other
    # outputs.
    file = tmp_path / "out/checkpoint/test.safetensors"
    other = {
        name: tensor + 0.1 * torch.randn_like(tensor) for name, tensor in load_file(file).items()
    }
    save_file(other, file)
    record_files(tmp_path / "out")
    assert here("evaluate", *options(tmp_path), "--device", "cpu") == 0
    rows = read_scores(tmp_path / "eval/scores.csv")
    found = pq.read_table(tmp_path / "eval/predictions.parquet").to_pylist()
    assert {row.readout for row in rows} == {row["readout"] for row in found} == {None, *kept}
    assert {row.readout for row in rows if row.metric == "examples"} == {None}

    matches = set()
    for readout in (None, *kept):
        alone = shutil.copytree(tmp_path / "out", tmp_path / f"alone-{readout}")
        run = json.loads((alone / "run.json").read_text())
        del run["spec"]["training"]["also_keep"]
        run["spec_digest"] = digest(run["spec"])
        (alone / "run.json").write_text(json.dumps(run))
        if readout:
            (alone / f"checkpoint/{readout}.safetensors").replace(
                alone / "checkpoint/model.safetensors"
            )
        record_files(alone)
        out = tmp_path / f"eval-{readout}"
        assert (
            here(
                "evaluate", *options(tmp_path, **{"run-dir": alone, "out": out}), "--device", "cpu"
            )
            == 0
        )
        expected = pq.read_table(out / "predictions.parquet").to_pylist()
        assert [row | {"readout": None} for row in found if row["readout"] == readout] == expected
        scored = [
            row for row in read_scores(out / "scores.csv") if not readout or row.unit != "count"
        ]
        assert [row._replace(readout=None) for row in rows if row.readout == readout] == scored
        matches.add(tuple(row["prediction"] for row in expected))
    assert len(matches) > 1
    evaluated = json.loads((tmp_path / "eval/evaluation.json").read_text())
    digests = {name: hash_file(tmp_path / f"out/checkpoint/{name}.safetensors") for name in kept}
    assert evaluated["kept_sha256"] == digests


def test_sizes_and_unknown_words_are_counted_and_repeated_sentences_share_a_prediction(
    trained, tmp_path
):
    data = shutil.copytree(trained / "data", tmp_path / "data")
    rows = [(*pair("ab"), ""), ("z a", "A Z", ""), (*pair("ab"), ""), ("a b", "B Z", "")]
    write_split(data / "test.parquet", rows)
    out = shutil.copytree(trained / "out", tmp_path / "out")
    run = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**run, "data_digest": digest_data(data)}))
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS | {"splits": ["test"]}))
    assert here("evaluate", *options(tmp_path), "--device", "cpu") == 0

    scores = {
        row.metric: row for row in read_scores(tmp_path / "eval/scores.csv") if row.subset == "all"
    }
    assert scores["examples"].value == 4 and scores["out_of_vocabulary_tokens"].value == 3
    predictions = pq.read_table(tmp_path / "eval/predictions.parquet")["prediction"].to_pylist()
    assert predictions[0] == predictions[2] == predictions[3]


def test_every_sentence_gets_its_own_beam_search(trained):
    torch.set_num_threads(1)
    model, vocabulary, _ = load_run(trained / "out", trained / "data")
    table = pq.read_table(trained / "data/test.parquet")
    settings = Seq2SeqEvaluation(**{**SETTINGS, "beam": 4})
    with Reporter("run", len(table), "none") as reporter:
        found = decode(model, table, vocabulary["target"], settings, torch.device("cpu"), reporter)
    for row, text in list(zip(table["source_ids"].to_pylist(), found, strict=True))[:20]:
        ids = decode_with_beam(model, torch.tensor([[*row, 2]]), 4, 12)[0].tolist()
        assert text == " ".join(TARGET_WORDS[token] for token in ids if token not in (0, 2))


def test_the_longest_output_is_by_the_length_of_the_source_with_its_end(trained):
    torch.set_num_threads(1)
    model, vocabulary, _ = load_run(trained / "out", trained / "data")
    table = pq.read_table(trained / "data/test.parquet").slice(0, 40)
    settings = Seq2SeqEvaluation(**{**SETTINGS, "max_length_ratio": 0.5, "max_length": 1})
    found = decode(model, table, vocabulary["target"], settings, torch.device("cpu"))
    for row, text in zip(table["source_ids"].to_pylist(), found, strict=True):
        ids = decoded_alone(model, torch.tensor([*row, 2]), (len(row) + 1) // 2 + 1)
        assert text == " ".join(TARGET_WORDS[token] for token in ids if token != 2)


@pytest.mark.parametrize(
    ("change", "parts"),
    [({"width": 16}, ["[12, 32]", "[12, 16]"]), ({"layers": 2}, ["the file has no "])],
)
def test_a_checkpoint_of_another_model_is_refused(capsys, place, change, parts):
    file = place / "out/checkpoint/config.json"
    config = json.loads(file.read_text())
    config["model"] |= change
    file.write_text(json.dumps(config))
    record_files(place / "out")
    refused(capsys, place, "model.safetensors belongs to another configuration", *parts)


@pytest.mark.parametrize(
    ("old", "new"), [('"dropout": 0.1', '"dropout": 0.2'), ('"torch_threads"', '"threads"')]
)
def test_an_edited_spec_is_refused(capsys, place, old, new):
    path = place / "out/run.json"
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    refused(capsys, place, str(path), "its spec has another digest")


def test_other_data_are_refused(capsys, place):
    write_data(place / "other", seed=1)
    refused(capsys, place, "was trained on other data than", data=place / "other")


def test_weights_with_a_flipped_bit_are_refused(capsys, place):
    path = place / "out/checkpoint/model.safetensors"
    flip_bit(path)
    refused(capsys, place, str(path))


def test_a_folder_with_other_files_is_not_replaced(capsys, place):
    refused(capsys, place, "contains dataset.json", "another --out", out=place / "data")


def test_a_run_of_a_spec_file_needs_settings(place):
    result = call("evaluate", *options(place, with_settings=False))
    assert_one_line_error(result, "was trained from a spec file", "--settings")


def test_a_run_is_scored_as_its_spec_file_says(place, tmp_path):
    job_spec = {"scale": "demo", "spec": toy_spec(max_steps=150), "evaluation": SETTINGS}
    (tmp_path / "spec.json").write_text(json.dumps(job_spec))
    words = [*options(place, with_settings=False), "--spec", str(tmp_path / "spec.json")]
    assert main(["evaluate", *words]) == 0
    by_settings = (place / "eval/scores.csv").read_bytes()
    shutil.rmtree(place / "eval")
    assert main(["evaluate", *options(place)]) == 0
    assert (place / "eval/scores.csv").read_bytes() == by_settings


def test_a_spec_file_of_another_run_is_refused(capsys, place, tmp_path):
    job_spec = {"scale": "demo", "spec": toy_spec() | {"seed": 4}, "evaluation": SETTINGS}
    (tmp_path / "spec.json").write_text(json.dumps(job_spec))
    assert (
        main(
            [
                "evaluate",
                *options(place, with_settings=False),
                "--spec",
                str(tmp_path / "spec.json"),
            ]
        )
        == 1
    )
    assert_one_error(
        capsys.readouterr().err,
        "holds toy/transformer/default/seed-3",
        "the spec is of toy/transformer",
    )


def test_structure_is_right_when_only_the_verbs_are_wrong():
    target = "I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP"
    outputs = {
        target: True,
        "I_TURN_LEFT I_WALK2 I_TURN_LEFT I_RUN": True,
        "I_TURN_LEFT I_JUMP I_TURN_RIGHT I_JUMP": False,
        "I_TURN_LEFT I_JUMP I_TURN_LEFT": False,
        "": False,
    }
    right = match_structures(list(outputs), [target] * len(outputs), r"I_(WALK|LOOK|RUN|JUMP)\d*")
    assert right.tolist() == list(outputs.values())
