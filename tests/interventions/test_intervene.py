"""The intervene command on a small fine-tuned model: its scores, recomputed from its answers."""

import json
import shutil
import subprocess
import time
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.interventions.cap_logits import compute_cap_logits
from tests.training.causal_toy import (
    KINDS,
    TEMPLATE,
    causal_spec,
    definitions,
    write_prompts,
    write_text,
)
from tests.training.toy import (
    ROOT,
    assert_one_error,
    command,
    environment,
    flip_bit,
    here,
    name_parent,
    record_files,
    run_main,
)
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_csv
from workflow_scripts.common.progress import Reporter
from workflow_scripts.evaluation.scores import ScoreKey
from workflow_scripts.interventions.answer_scores import score_share
from workflow_scripts.interventions.candidates import build, read_candidates
from workflow_scripts.interventions.intervene import choose_blocks, intervene
from workflow_scripts.interventions.saved_answers import SavedAnswers
from workflow_scripts.interventions.settings import Intervention, Options
from workflow_scripts.interventions.synonym_resources import make_stand_in_resources
from workflow_scripts.interventions.synonyms import perturb
from workflow_scripts.models.causal_lm.model import compute_last_logits, load_causal_lm
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.reporting.committed.exported_items import average_draws
from workflow_scripts.reporting.committed.rescoring_answers import score_answers
from workflow_scripts.tasks.prompt.training_setup import encode_prompts, read_prompts
from workflow_scripts.tasks.run_spec import read_run_spec

SETTINGS = {"split": "test", "rates": [0.25, 0.5], "seeds": [1, 2, 3]}


def train(place: Path, name: str, spec: dict, data: str, *more: object) -> None:
    paths = {"data": place / data, "out": place / "runs" / name, "state": place / "state" / name}
    assert run_main("train", *more, spec=name_parent(spec, *more), **paths) == 0


def write_candidates(place: Path, contents: list[str]) -> None:
    (place / "candidates").mkdir()
    table = build(contents, make_stand_in_resources(), Options(resources="stand_in"))
    pq.write_table(table, place / "candidates/candidates.parquet")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a model fine-tuned on toy prompts, their candidates, and what the command made
    of them in out/.
    """
    place = tmp_path_factory.mktemp("intervened")
    write_text(place / "text")
    write_prompts(place / "prompts")
    train(
        place,
        "pretrain",
        causal_spec("language_modelling", "llama", max_steps=5, validate_every=5),
        "text",
    )
    init = ("--init", place / "runs/pretrain/checkpoint")
    # Stopped early, so that some answers are wrong.
    train(
        place,
        "ft",
        causal_spec("prompt", "llama", max_steps=12, validate_every=12),
        "prompts",
        *init,
    )
    # Where it would say `hen` it says a token that is no answer: only among the answers it is
    # right.
    checkpoint = place / "runs/ft/checkpoint"
    model, tokenizer = AutoModelForCausalLM.from_pretrained(checkpoint), load_tokenizer(checkpoint)
    with torch.no_grad():
        rows = model.get_input_embeddings().weight
        rows[tokenizer.token_to_id("<unk>")] = 1.01 * rows[tokenizer.token_to_id("hen")]
    model.save_pretrained(checkpoint)
    record_files(checkpoint.parent)
    contents = [content for content, _ in definitions()] + ["a thing of many tokens"]
    write_candidates(place, contents)
    assert call(place) == 0
    return place


def call(
    place: Path, run: str = "ft", data: str = "prompts", settings: dict | None = None, **more: Path
) -> int:
    paths = {
        "run_dir": place / "runs" / run,
        "data": place / data,
        "candidates": place / "candidates",
    }
    return run_main(
        "intervene", settings=SETTINGS | (settings or {}), **paths | {"out": place / "out"} | more
    )


@pytest.fixture
def scores(place) -> pd.DataFrame:
    return pd.read_csv(place / "out/scores.csv")


@pytest.fixture
def answers(place) -> pd.DataFrame:
    return pd.read_parquet(place / "out/answers.parquet")


def test_shares_are_those_of_the_answers(scores, answers):
    measured = scores[
        scores["metric"].str.fullmatch("exact_match|constrained|(constrained_)?consistency")
    ]
    assert measured["metric"].nunique() == 4
    assert set(measured["intervention"]) == {"cap", "synonyms"}
    assert set(measured["layer"].dropna()) == {1} and set(measured["pooling"].dropna()) == {
        "max",
        "mean",
        "sum",
    }
    where = ["intervention", "layer", "pooling", "rate", "intervention_seed", "readout"]
    for _, row in measured.iterrows():
        same = np.logical_and.reduce(
            [(answers[c] == row[c]) | (answers[c].isna() & pd.isna(row[c])) for c in where]
        )
        chosen = answers[same]
        if row["item_set"] == "own_correct":
            chosen = chosen[chosen["correct_before"]]
        assert row["n"] == len(chosen)
        assert row["value"] == pytest.approx(100 * chosen["correct"].mean())
    changed = answers.query("intervention == 'synonyms' and correct != correct_before")
    assert set(changed["intervention_seed"]) == set(SETTINGS["seeds"])


def test_scores_over_draws_follow_from_the_answers_alone(place, answers):
    """As an export has both: the mean over draws, and answers without the model."""
    expected = {}
    for row in average_draws(read_csv(place / "out/scores.csv")):
        names = {name: row[name] or None for name in ScoreKey._fields}
        layer, rate = names["layer"], names["rate"]
        key = ScoreKey(**names)._replace(
            layer=int(layer) if layer else None, rate=float(rate) if rate else None
        )
        if key.metric != "realised_rate":
            expected[key] = float(row["value"])
    assert {key.intervention for key in expected} == {"cap", "synonyms"}
    metrics = {key.metric for key in expected}
    assert metrics >= {"exact_match", "consistency", "cv", "constrained_cv_low"}
    assert score_answers(answers, "test") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("prefix", ["", "constrained_"])
def test_the_spread_of_consistency_is_across_seeds(scores, prefix):
    kept = scores[scores["metric"] == f"{prefix}consistency"]
    assert set(kept["item_set"]) == {"own_correct"} and len(kept) == len(SETTINGS["rates"]) * len(
        SETTINGS["seeds"]
    )
    for rate, values in kept.groupby("rate")["value"]:
        where = scores[scores["rate"] == rate].set_index("metric")["value"]
        assert where[f"{prefix}cv"] == pytest.approx(values.std(ddof=1) / values.mean())
        assert 0 <= where[f"{prefix}cv_low"] <= where[f"{prefix}cv"]


def test_the_realised_rate_is_the_share_of_words_that_changed(place, scores, answers):
    table = read_candidates(place / "candidates/candidates.parquet")
    prompts = pd.read_parquet(place / "prompts/test.parquet").set_index("item")
    items = list(dict.fromkeys(answers["item"]))
    contents, labels = (prompts.loc[items, column].tolist() for column in ("content", "label"))
    realised = scores[scores["metric"] == "realised_rate"].set_index(["rate", "intervention_seed"])[
        "value"
    ]
    assert len(realised) == 6
    for (rate, seed), value in realised.items():
        texts, _ = perturb(contents, table, rate, int(seed), items=items, labels=labels)
        changed = [
            np.mean([new != old for new, old in zip(text.split(), content.split(), strict=True)])
            for text, content in zip(texts, contents, strict=True)
        ]
        assert np.mean(np.array(changed) > 0) > 0.8
        assert value == pytest.approx(100 * np.mean(changed))


def test_answers_are_those_of_one_prompt_at_a_time(place, answers):
    """Before an intervention, under CAP and with synonyms; over the vocabulary and over the labels."""
    folder = place / "runs/ft/checkpoint"
    model = load_causal_lm(folder, "llama").eval()
    spec = read_run_spec(causal_spec("prompt", "llama"), "spec")
    prompts = read_prompts(spec, model, folder, place / "prompts", "test")
    rows = pd.read_parquet(place / "prompts/test.parquet").iloc[prompts.items]
    items, contents, labels = (rows[name].tolist() for name in ("item", "content", "label"))
    table = read_candidates(place / "candidates/candidates.parquet")
    texts, _ = perturb(contents, table, 0.5, 2, items=items, labels=labels)
    changed = encode_prompts(load_tokenizer(folder), texts, labels, TEMPLATE, bos=0)
    among, expected = np.unique(prompts.label), {}
    for row, (item, label) in enumerate(zip(items, prompts.label, strict=True)):
        plain, replaced = (found.make_batch(np.array([row])) for found in (prompts, changed))
        with torch.no_grad():
            before, synonyms = (
                compute_last_logits(model, batch.ids, batch.last)[0] for batch in (plain, replaced)
            )
        cap = compute_cap_logits(model, plain.ids, plain.words, [1], "mean")[0, 0]
        for intervention, after in (("cap", cap), ("synonyms", synonyms)):
            right = [bool(logits.argmax() == label) for logits in (before, after)]
            expected[item, intervention, "vocabulary"] = right
            right = [bool(among[logits[among].argmax()] == label) for logits in (before, after)]
            expected[item, intervention, "labels"] = right
    chosen = answers.query("pooling == 'mean' or (rate == 0.5 and intervention_seed == 2)")
    columns = ["item", "intervention", "readout", "correct_before", "correct"]
    found = {
        tuple(key): right
        for *key, before, after in chosen[columns].to_numpy()
        for right in [[before, after]]
    }
    assert found == expected
    # kept, lost, won and never right
    assert len({tuple(right) for right in expected.values()}) == 4
    assert any(
        expected[item, "cap", "labels"] > expected[item, "cap", "vocabulary"] for item in items
    )


def test_an_answer_of_the_same_text_is_right_where_the_evaluation_says_so(place, tmp_path):
    """The token that is said instead of `hen` is given the text `HEN`."""
    run = tmp_path / "run"
    shutil.copytree(place / "runs/ft", run)
    tokenizer_file = run / "checkpoint/tokenizer.json"
    tokenizer_file.write_text(tokenizer_file.read_text().replace("<unk>", "HEN"))
    record_files(run)
    evaluation = {"splits": ["test"], "batch_tokens": 2048}
    found = {}
    for match in ("token", "text"):
        spec = {
            "scale": None,
            "spec": json.loads((run / "run.json").read_text())["spec"],
            "evaluation": evaluation | {"match": match},
        }
        out = tmp_path / match
        assert call(place, run_dir=run, out=out, spec=spec) == 0
        assert json.loads((out / "intervention.json").read_text())["spec"]["evaluation"] == {
            "match": match
        }
        answers = pd.read_parquet(out / "answers.parquet")
        found[match] = answers.query("readout == 'vocabulary' and pooling == 'mean'")

    folder = run / "checkpoint"
    model, tokenizer = load_causal_lm(folder, "llama").eval(), load_tokenizer(folder)
    prompts = pd.read_parquet(place / "prompts/test.parquet").set_index("item")
    for _, answer in found["text"].iterrows():
        content, label = prompts.loc[answer["item"], ["content", "label"]]
        prompt = TEMPLATE.format(content=content)
        ids = torch.tensor([[0, *tokenizer.encode(prompt, add_special_tokens=False).ids]])
        with torch.no_grad():
            written = int(model(input_ids=ids).logits[0, -1].argmax())
        text = tokenizer.decode([written], skip_special_tokens=False)
        assert answer["correct_before"] == (text.strip().lower() == label)
    is_hen = found["text"]["item"].map(prompts["label"]) == "hen"
    right = {match: rows["correct_before"] for match, rows in found.items()}
    assert not right["token"][is_hen].any() and right["text"][is_hen].any()
    assert (right["token"] == right["text"])[~is_hen].all()
    assert found["text"]["correct"][is_hen].sum() > found["token"]["correct"][is_hen].sum()


def test_progress_counts_prompts_by_the_blocks_that_they_pass(place, tmp_path):
    """CAP before block 1 of 2 costs half a pass for each of three poolings, and one without CAP."""
    reporter = Reporter("toy", 0, "none")
    seen = []
    reporter.set_stage = lambda stage: seen.append((stage, reporter.done))
    intervene(
        spec=read_run_spec(causal_spec("prompt", "llama"), "spec"),
        checkpoint=place / "runs/ft/checkpoint",
        data=place / "prompts",
        settings=Intervention(**SETTINGS),
        match="token",
        candidates=place / "candidates/candidates.parquet",
        device=torch.device("cpu"),
        reporter=reporter,
        saved=SavedAnswers(tmp_path / "saved", {}, 60),
    )
    items = len(definitions()[3::4])
    cap = 1 + round(3 * 0.5)
    assert seen == [("pool words", 0), ("replace words", items * (1 + cap))]
    assert reporter.done == reporter.total == items * (1 + cap + 6)


@pytest.mark.quick_faults
def test_killed_interventions_continue_to_the_same_bytes(place, tmp_path):
    """Killed when CAP, the unchanged prompts and some with synonyms are answered."""
    whole, out, state = tmp_path / "whole", tmp_path / "out", tmp_path / "state"
    settings = SETTINGS | {"seeds": list(range(60))}
    assert call(place, settings=settings, out=whole) == 0
    options = {
        "run-dir": place / "runs/ft",
        "data": place / "prompts",
        "candidates": place / "candidates",
        "settings": f"{whole}.settings.json",
        "out": out,
        "state": state,
        "save-every": 0,
    }
    arguments = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    process = subprocess.Popen(
        command("intervene", *arguments), cwd=ROOT, env=environment(), stderr=subprocess.PIPE
    )
    while len(list(state.glob("answers-*"))) < 3:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert not out.exists()
    with redirect_stderr(StringIO()) as said:
        assert here("intervene", *arguments, "--progress", "lines") == 0
    items = len(definitions()[3::4])
    total = items * (3 + 1 + 2 * 60)  # of CAP, unchanged, of synonyms
    (resumed,) = [line for line in said.getvalue().splitlines() if "resumes after" in line]
    assert resumed.endswith(f" of {total:,} prompts")
    for name in ("answers.parquet", "scores.csv", "intervention.json"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert not state.exists() and not list(out.parent.glob("out.*/*"))


@pytest.mark.parametrize(
    ("count", "wanted", "blocks"),
    [
        (2, "all", [1]),
        (4, "all", [1, 2, 3]),
        (12, 5, [1, 4, 6, 8, 11]),
        (12, 1, [1]),
        (4, [0, 3], [0, 3]),
    ],
)
def test_blocks_are_spread_from_the_second_to_the_last(count, wanted, blocks):
    assert choose_blocks(count, wanted) == blocks


@pytest.mark.parametrize("blocks", ["all", 1, 5])
def test_one_block_has_none_before_which_words_are_pooled(blocks):
    with pytest.raises(UserError, match=r"has only block 0; set intervention\.blocks to \[0\]"):
        choose_blocks(1, blocks)
    assert choose_blocks(1, [0]) == [0]


@pytest.mark.parametrize("count", [2, 3, 7, 12, 30])
def test_a_number_of_blocks_is_that_many_different_ones_in_order(count):
    for number in range(1, 40):
        blocks = choose_blocks(count, number)
        assert len(blocks) == min(number, count - 1)
        assert blocks == sorted(set(blocks))
        assert blocks[0] == 1
        if number > 1:
            assert blocks[-1] == count - 1


def test_no_word_becomes_the_answer(place, tmp_path):
    """With a table in which the one synonym of each first word is the item's answer."""
    prompts = pd.read_parquet(place / "prompts/test.parquet")
    rows = [
        {"content": content, "positions": [0], "candidates": [[label]]}
        for content, label in zip(prompts["content"], prompts["label"], strict=True)
    ]
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"candidates": "{}"})
    pq.write_table(table, tmp_path / "candidates.parquet")
    assert call(place, candidates=tmp_path, out=tmp_path / "out") == 0
    scores = pd.read_csv(tmp_path / "out/scores.csv")
    realised = scores.loc[scores["metric"] == "realised_rate", "value"]
    assert len(realised) == 6 and not realised.any()


def test_answers_after_a_space_keep_it_with_synonyms(tmp_path):
    """Some answers are single tokens only after a space. If no word is replaced, nothing changes."""
    write_text(tmp_path / "text", space=" ")
    write_prompts(tmp_path / "prompts")
    train(
        tmp_path,
        "pretrain",
        causal_spec("language_modelling", max_steps=5, validate_every=5),
        "text",
    )
    tokenizer = load_tokenizer(tmp_path / "runs/pretrain/checkpoint")
    assert all(len(tokenizer.encode(f" {word}").ids) == 1 for word in KINDS)
    assert any(len(tokenizer.encode(word).ids) > 1 for word in KINDS)
    spec = causal_spec("prompt", max_steps=14, validate_every=14)
    spec["model"]["label_space"] = True
    train(tmp_path, "ft", spec, "prompts", "--init", tmp_path / "runs/pretrain/checkpoint")
    contents = [content for content, _ in definitions()] + ["a thing of many tokens"]
    write_candidates(tmp_path, contents)
    assert call(tmp_path, settings={"rates": [0.01]}) == 0
    answers = pd.read_parquet(tmp_path / "out/answers.parquet").query("intervention == 'synonyms'")
    assert answers["item"].nunique() == len(definitions()[3::4])
    assert (answers["correct"] == answers["correct_before"]).all() and answers[
        "correct"
    ].nunique() == 2


def test_a_run_on_text_has_no_prompts_to_change(capsys, place):
    assert call(place, "pretrain", "text") == 1
    assert_one_error(
        capsys.readouterr().err,
        "interventions need a task of kind prompt",
        "toy-text is language_modelling",
    )


@pytest.mark.parametrize("command", ["intervene", "train"])
def test_a_flipped_bit_of_a_checkpoint_ends_what_would_use_it(capsys, place, tmp_path, command):
    run = {"intervene": "ft", "train": "pretrain"}[command]
    shutil.copytree(place / f"runs/{run}", tmp_path / "run")
    flip_bit(tmp_path / "run/checkpoint/model.safetensors")
    out = tmp_path / "out"
    if command == "intervene":
        assert call(place, run_dir=tmp_path / "run", out=out) == 1
    else:
        names = {
            "data": place / "prompts",
            "init": tmp_path / "run/checkpoint",
            "state": tmp_path / "state",
        }
        spec = name_parent(causal_spec("prompt", "llama"), "--init", names["init"])
        assert run_main("train", spec=spec, out=out, **names) == 1
    assert_one_error(
        capsys.readouterr().err,
        "checkpoint/model.safetensors: expected sha256 ",
        "by run.json, found ",
    )
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"run"}


def test_a_file_that_was_put_into_a_checkpoint_costs_no_training(capsys, place, tmp_path):
    shutil.copytree(place / "runs/ft", tmp_path / "run")
    added = tmp_path / "run/checkpoint/notes.txt"
    added.write_text("the best one")
    assert call(place, run_dir=tmp_path / "run", out=tmp_path / "out") == 1
    assert_one_error(
        capsys.readouterr().err, f"{added} is not a file of the training", "move it elsewhere"
    )


def test_candidates_that_differ_from_their_checksum_end_the_command(capsys, place, tmp_path):
    """The table can be read: only its checksum shows that it was exchanged."""
    write_candidates(tmp_path, [content for content, _ in definitions()])
    folder = tmp_path / "candidates"
    record = {"files": {"candidates.parquet": hash_file(place / "candidates/candidates.parquet")}}
    (folder / "candidates.json").write_text(json.dumps(record))
    assert call(place, candidates=folder, out=tmp_path / "out") == 1
    assert_one_error(
        capsys.readouterr().err, f"{folder / 'candidates.parquet'} does not match its checksum"
    )
    assert not (tmp_path / "out").exists()


def test_a_share_of_no_answers_is_none():
    assert score_share(np.array([], bool)) == (None, "percent", 0)
    assert score_share(np.array([True, False, True])) == (pytest.approx(200 / 3), "percent", 3)
