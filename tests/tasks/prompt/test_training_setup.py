"""Causal language models from pre-training to interventions, by the commands that a user types."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import GPT2Config, GPT2LMHeadModel

from tests.interventions.cap_logits import compute_cap_logits
from tests.objectives.carma_cases import FAMILIES, language_model, prompts
from tests.training.causal_toy import (
    KINDS,
    TEMPLATE,
    causal_spec,
    definitions,
    write_prompts,
    write_text,
)
from tests.training.toy import assert_one_error, name_parent, record_files, run_main, stopping_at
from workflow_scripts.common.errors import UserError
from workflow_scripts.models.causal_lm.model import compute_last_logits, load_causal_lm
from workflow_scripts.tasks.prompt import training_setup as prompt
from workflow_scripts.tasks.prompt.training_setup import (
    OUTSIDE,
    assign_words,
    check_lengths,
    compute_answer_loss,
    encode_prompts,
    merge_groups,
    read_prompts,
)
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.training import loop


def train(place: Path, name: str, spec: dict, data: str, *more: object) -> int:
    """Run the train command in `place`; what it makes is in runs/NAME."""
    spec = name_parent(spec, *more)
    file = place / f"{name}.json"
    file.write_text(json.dumps(spec))
    out, state = (place / folder / name for folder in ("runs", "state"))
    return run_main("train", *more, spec=file, data=place / data, out=out, state=state)


@pytest.fixture(scope="module", params=FAMILIES)
def place(request, tmp_path_factory) -> Path:
    """A folder with data of both kinds, a pre-trained model of one family and one fine-tuned from
    it.
    """
    place = tmp_path_factory.mktemp(request.param)
    write_text(place / "text")
    write_prompts(place / "prompts")
    assert train(place, "pretrain", causal_spec("language_modelling", request.param), "text") == 0
    init = ("--init", place / "runs/pretrain/checkpoint")
    assert train(place, "ft", causal_spec("prompt", request.param), "prompts", *init) == 0
    return place


@pytest.fixture
def pretrained(tmp_path, capsys) -> Path:
    """The same data and a model that was hardly trained, which the test may change."""
    write_text(tmp_path / "text")
    write_prompts(tmp_path / "prompts")
    assert train(tmp_path, "pretrain", causal_spec("language_modelling", max_steps=2), "text") == 0
    capsys.readouterr()
    return tmp_path


def family_of(place: Path) -> str:
    return json.loads((place / "ft.json").read_text())["method"]


def load(place: Path, run: str = "ft") -> tuple[torch.nn.Module, Tokenizer, list[int]]:
    """Return (model in eval mode, tokenizer, ids before each text) of a run."""
    folder, family = place / f"runs/{run}/checkpoint", family_of(place)
    bos = [0] if family in ("llama", "gemma") else []
    return (
        load_causal_lm(folder, family).eval(),
        Tokenizer.from_file(str(folder / "tokenizer.json")),
        bos,
    )


def scores(
    place: Path, command: str, run: str, settings: dict, data: str, *more: object
) -> pd.DataFrame:
    """The score rows that `evaluate` or `intervene` writes for a run."""
    out = place / "scored" / command / run
    assert (
        run_main(
            command,
            *more,
            run_dir=place / "runs" / run,
            data=place / data,
            settings=settings,
            out=out,
        )
        == 0
    )
    return pd.read_csv(out / "scores.csv")


def test_a_checkpoint_is_a_model_of_the_family_that_hugging_face_reads(place):
    from transformers import AutoModelForCausalLM

    folder = place / "runs/ft/checkpoint"
    family = json.loads((folder / "config.json").read_text())["model_type"]
    theirs = AutoModelForCausalLM.from_pretrained(folder).eval()
    ours = load_causal_lm(folder, family).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    torch.testing.assert_close(
        theirs(ids).logits[:, -1], compute_last_logits(ours, ids, torch.tensor([3]))
    )


def test_the_activation_of_gpt2_is_one_kernel_and_the_same_function(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=50, n_positions=16)
    assert config.activation_function == "gelu_new"  # as on the hub
    theirs = GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    ours = load_causal_lm(tmp_path, "gpt2").eval()
    assert ours.config.activation_function == "gelu_pytorch_tanh"
    ids = torch.randint(50, (3, 9))
    torch.testing.assert_close(ours(ids).logits, theirs(ids).logits)


def test_fine_tuning_starts_from_the_parent_and_learns(place):
    history = pd.read_csv(place / "runs/ft/training.csv").query("name == 'valid_exact_match'")
    assert history["value"].max() > 90
    run = json.loads((place / "runs/ft/run.json").read_text())
    assert (
        len(run["init_digest"]) == 64
        and run["best_validation"]["exact_match"] == history["value"].max()
    )


@pytest.fixture
def seen(monkeypatch) -> list[list[int]]:
    """The rows of each batch that a training in this process makes."""
    made: list[list[int]] = []
    make_batch = prompt.Prompts.make_batch

    def record(prompts: prompt.Prompts, rows: np.ndarray) -> prompt.PromptBatch:
        made.append(rows.tolist())
        return make_batch(prompts, rows)

    monkeypatch.setattr(prompt.Prompts, "make_batch", record)
    return made


# Of the 68 training prompts of the toy data 8 have an answer of several tokens: 60 are 4 batches of
# 16, the last of 12.
EPOCH = [16, 16, 16, 12]
TRAINED = {
    "max_steps": None,
    "epochs": 3,
    "validate_every": "epoch",
    "warmup_steps": 4,
    "log_every": 1,
}


def test_prompts_are_shuffled_by_the_seed_of_the_run_alike_for_ft_and_carma(pretrained, seen):
    init = ("--init", pretrained / "runs/pretrain/checkpoint")
    order = {}
    for name, seed, weight in (
        ("ft", 3, 0.0),
        ("again", 3, 0.0),
        ("carma", 3, 0.5),
        ("other", 4, 0.0),
    ):
        seen.clear()
        spec = causal_spec("prompt", objective={"weight": weight}, **TRAINED, validation="none") | {
            "seed": seed
        }
        assert train(pretrained, name, spec, "prompts", *init) == 0
        order[name] = list(seen)
    assert order["ft"] == order["again"] == order["carma"] != order["other"]
    for batches in order.values():
        assert [len(batch) for batch in batches] == 3 * EPOCH
        epochs = [
            [row for batch in batches[first : first + 4] for row in batch] for first in (0, 4, 8)
        ]
        assert all(sorted(epoch) == list(range(60)) for epoch in epochs)
        assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    # Other examples share a batch, too.
    first, second = ({frozenset(batch) for batch in order[name][:4]} for name in ("ft", "other"))
    assert first.isdisjoint(second)


def test_epochs_count_the_prompts_that_the_tokenizer_leaves(pretrained):
    init = ("--init", pretrained / "runs/pretrain/checkpoint")
    assert train(pretrained, "ft", causal_spec("prompt", **TRAINED), "prompts", *init) == 0
    assert json.loads((pretrained / "runs/ft/run.json").read_text())["steps"] == 12
    history = pd.read_csv(pretrained / "runs/ft/training.csv")
    assert history.query("name == 'valid_exact_match'")["step"].tolist() == [4, 8, 12]
    # Four steps of warm-up from 0, then to 0 after the twelfth, as Hugging Face's linear schedule.
    rates = history.query("name == 'learning_rate'")["value"]
    expected = [0, 1 / 4, 2 / 4, 3 / 4, *(n / 8 for n in range(8, 0, -1))]
    assert rates.tolist() == pytest.approx([0.01 * rate for rate in expected])


@pytest.mark.parametrize("step", [3, 4, 6])
def test_a_run_in_epochs_that_is_stopped_ends_with_the_same_bytes(pretrained, monkeypatch, step):
    init = ("--init", pretrained / "runs/pretrain/checkpoint")
    spec = causal_spec("prompt", objective={"weight": 0.5}, **TRAINED)
    assert train(pretrained, "whole", spec, "prompts", *init) == 0
    with monkeypatch.context() as patched:
        patched.setattr(loop, "update_weights", stopping_at(step))
        with pytest.raises(SystemExit):
            train(pretrained, "stopped", spec, "prompts", *init)
    assert train(pretrained, "stopped", spec, "prompts", *init) == 0
    whole, stopped = (pretrained / "runs" / name for name in ("whole", "stopped"))
    for name in ("checkpoint/model.safetensors", "training.csv", "run.json"):
        assert (whole / name).read_bytes() == (stopped / name).read_bytes(), name
    assert json.loads((stopped / "record.json").read_text())["resumed"] == 1


def test_validation_is_of_one_prompt_at_a_time_and_the_surer_of_equal_weights_is_the_better(place):
    folder, spec = (
        place / "runs/ft/checkpoint",
        read_run_spec(causal_spec("prompt", family_of(place)), "spec"),
    )
    task = prompt.set_up_training(spec, place / "prompts", folder, torch.device("cpu"))
    prompts = read_prompts(spec, task.model.eval(), folder, place / "prompts", "valid")
    right, nats = [], []
    with torch.no_grad():
        for row, label in enumerate(prompts.label):
            batch = prompts.make_batch(np.array([row]))
            logits = compute_last_logits(task.model, batch.ids, batch.last)[0]
            right.append(logits.argmax() == label)
            nats.append(-float(logits.log_softmax(-1)[label]))
        found = task.validate(task.model)
    expected = {"exact_match": 100 * float(np.mean(right)), "cross_entropy": np.mean(nats)}
    assert found == pytest.approx(expected, rel=1e-4)
    assert task.tie_break_metric == "cross_entropy"


def test_scores_of_prompts_are_those_of_one_prompt_at_a_time(place):
    found = scores(place, "evaluate", "ft", {"splits": ["test"], "batch_tokens": 256}, "prompts")
    model, tokenizer, bos = load(place)
    among = torch.tensor([tokenizer.encode(label).ids[0] for label in KINDS])
    right = {"exact_match": [], "constrained": []}
    for content, label in definitions()[3::4]:
        ids = torch.tensor([bos + tokenizer.encode(TEMPLATE.format(content=content)).ids])
        logits, answer = model(ids).logits[0, -1], tokenizer.encode(label).ids[0]
        right["exact_match"].append(logits.argmax() == answer)
        right["constrained"].append(among[logits[among].argmax()] == answer)
    readouts = {"exact_match": "vocabulary", "constrained": "labels"}
    assert dict(zip(found["metric"], found["readout"], strict=True)) == readouts
    for metric, values in right.items():
        row = found[found["metric"] == metric].iloc[0]
        assert row["n"] == len(values)  # the answer of several tokens is left out
        assert row["value"] == pytest.approx(100 * float(np.mean(values)))


def test_perplexity_is_that_of_one_text_at_a_time(place):
    found = scores(
        place, "evaluate", "pretrain", {"splits": ["valid"], "batch_tokens": 256}, "text"
    )
    model, tokenizer, bos = load(place, "pretrain")
    nats, tokens = 0.0, 0
    with torch.no_grad():
        for content, word in definitions()[1::6]:
            ids = torch.tensor([*bos, *tokenizer.encode(f'{content} is called a "{word}').ids, 1])
            logits = model(ids[None]).logits[0, :-1]
            nats += float(torch.nn.functional.cross_entropy(logits, ids[1:], reduction="sum"))
            tokens += len(ids) - 1
    assert found.iloc[0]["metric"] == "perplexity"
    assert found.iloc[0]["value"] == pytest.approx(np.exp(nats / tokens), rel=1e-4)


def test_words_are_those_between_spaces(place):
    tokenizer = Tokenizer.from_file(str(place / "text/tokenizer.json"))
    contents = ["largish  mountaindwelling beast, seldomly", "café of old times"]
    prompts = encode_prompts(tokenizer, contents, ["hen", "hen"], TEMPLATE, bos=0)
    for content, ids, words in zip(contents, prompts.ids, prompts.words, strict=True):
        assert words[0] == OUTSIDE and ids[0] == 0
        pieces: dict[int, list[int]] = {}
        for token, word in zip(ids[1:].tolist(), words[1:].tolist(), strict=True):
            pieces.setdefault(word, []).append(token)
        read = [tokenizer.decode(tokens).strip() for tokens in pieces.values()]
        assert " ".join(filter(None, read)) == " ".join(TEMPLATE.format(content=content).split())


def test_groups_of_words_are_what_cap_pools(place):
    if not (place / "grouped").exists():
        write_prompts(place / "grouped", phrases=True)
    model, tokenizer, bos = load(place)
    spec, folder = (
        read_run_spec(causal_spec("prompt", family_of(place)), "spec"),
        place / "runs/ft/checkpoint",
    )
    plain, grouped = (
        read_prompts(spec, model, folder, place / name, "test") for name in ("prompts", "grouped")
    )
    for row, item in enumerate(grouped.items):
        assert np.array_equal(plain.ids[row], grouped.ids[row])
        # By hand: the tokens of the first word, those of the rest, and those of each word of the
        # template.
        content = definitions()[3::4][item][0]
        texts = [*content.split(" ", 1), *TEMPLATE.removeprefix("{content} ").split(" ")]
        sizes = [
            len(tokenizer.encode(f" {text}" if number else text).ids)
            for number, text in enumerate(texts)
        ]
        expected = [OUTSIDE] * len(bos) + [
            number for number, size in enumerate(sizes) for _ in range(size)
        ]
        found = grouped.words[row]
        assert len(found) == len(expected)
        assert np.array_equal(
            np.unique(found, return_inverse=True)[1], np.unique(expected, return_inverse=True)[1]
        )
    # Pooling a phrase is another thing than pooling its words, and the same as handing its tokens
    # over as one word.
    batch, words = grouped.make_batch(np.arange(8)), plain.make_batch(np.arange(8)).words
    by_phrase, by_word = (
        compute_cap_logits(model, batch.ids, w, [1], "mean") for w in (batch.words, words)
    )
    by_hand = torch.where((words > 0) & (words <= words.amax(1, keepdim=True) - 4), 1, words)
    assert not torch.allclose(by_phrase, by_word)
    torch.testing.assert_close(
        compute_cap_logits(model, batch.ids, by_hand, [1], "mean"), by_phrase
    )


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_the_first_word_of_a_group(runs, before):
    runs = [
        run for run, after in zip(runs, [*runs[1:], (None, 0)], strict=True) if run[0] != after[0]
    ]
    groups = [number for number, size in runs for _ in range(size)]
    count = before + len(groups) + 2
    found = merge_groups(groups, before, count)
    starts = np.cumsum([0] + [size for _, size in runs])[:-1] + before
    expected = [start for start, (_, size) in zip(starts, runs, strict=True) for _ in range(size)]
    assert found.tolist() == [*range(before), *expected, count - 2, count - 1]


def test_the_word_of_a_token_is_that_of_its_last_character():
    assert assign_words("ab cd  e", np.array([2, 3, 5, 6, 8, 0])).tolist() == [0, 1, 1, 2, 3, 0]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"init": None}, ["random weights", "remove --init"]),
        ({"model": {"template": ""}}, ["model.template is empty"]),
        ({"model": {"family": "llama"}}, ["holds a model of the family gpt2", "llama"]),
        (
            {"training": {"validation": {"split": "valid", "metric": "log_likelihood"}}},
            ["exact_match"],
        ),
    ],
)
def test_what_does_not_fit_is_one_line(capsys, pretrained, change, parts):
    spec = causal_spec("prompt")
    for section, values in change.items():
        spec[section] = {**spec[section], **values} if values else values
    assert (
        train(pretrained, "ft", spec, "prompts", "--init", pretrained / "runs/pretrain/checkpoint")
        == 1
    )
    assert_one_error(capsys.readouterr().err, *parts)
    assert not (pretrained / "runs/ft").exists()


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        (
            {
                "label": lambda t: [
                    "unspeakableness" if label == "hen" else label for label in t["label"]
                ]
            },
            [
                "valid.parquet: the answer 'unspeakableness', one of 4, is no single token",
                "set model.label_space",
            ],
        ),
        (
            {"groups": lambda t: [[0]] * len(t["content"])},
            ["valid.parquet: row 1 has 1 groups for", "each word"],
        ),
    ],
)
def test_prompts_that_cannot_be_read_are_one_line(capsys, pretrained, columns, parts):
    file = pretrained / "prompts/valid.parquet"
    table = pq.read_table(file).to_pydict()
    pq.write_table(
        pa.table(table | {name: change(table) for name, change in columns.items()}), file
    )
    init = pretrained / "runs/pretrain/checkpoint"
    assert train(pretrained, "ft", causal_spec("prompt"), "prompts", "--init", init) == 1
    assert_one_error(capsys.readouterr().err, *parts)


def test_another_configuration_of_the_parent_is_refused(capsys, pretrained):
    folder = pretrained / "runs/pretrain/checkpoint"
    spec = name_parent(causal_spec("prompt"), "--init", folder)
    spec["init"]["spec"] = "0"
    places = {"data": pretrained / "prompts", "out": pretrained / "runs/ft"}
    assert run_main("train", spec=spec, init=folder, **places) == 1
    assert_one_error(
        capsys.readouterr().err,
        f"{folder.parent / 'run.json'} has another configuration of {spec['init']['run']}",
        "train that run again",
    )


def test_a_tokenizer_without_offsets_is_one_line(capsys, pretrained):
    """A folder of the hub with the files of a slow tokenizer alone."""
    folder = pretrained / "runs/pretrain/checkpoint"
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    record_files(folder.parent)
    assert train(pretrained, "ft", causal_spec("prompt"), "prompts", "--init", folder) == 1
    assert_one_error(
        capsys.readouterr().err,
        "tokenizer.json does not exist",
        "a fast tokenizer, which has offsets",
    )


def test_a_tokenizer_with_more_tokens_than_the_model_is_one_line(capsys, pretrained):
    folder = pretrained / "runs/pretrain/checkpoint"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    embeddings = tokenizer.get_vocab_size()
    tokenizer.add_tokens(["beast", "fowl"])
    tokenizer.save(str(folder / "tokenizer.json"))
    record_files(folder.parent)
    assert train(pretrained, "ft", causal_spec("prompt"), "prompts", "--init", folder) == 1
    parts = (
        f"has {embeddings + 2} tokens, and the model embeddings of {embeddings}",
        "belongs to the model",
    )
    assert_one_error(capsys.readouterr().err, *parts)


def test_an_answer_may_have_a_space_before_it(tmp_path):
    write_text(tmp_path / "text")
    tokenizer = Tokenizer.from_file(str(tmp_path / "text/tokenizer.json"))
    contents, labels = ["a beast", "a fowl"], ["goat", "hen"]
    plain, spaced = (
        encode_prompts(tokenizer, contents, labels, TEMPLATE, None, space)
        for space in (False, True)
    )
    assert [tokenizer.decode([token]) for token in plain.label] == labels
    one_token = [
        row for row, label in enumerate(labels) if len(tokenizer.encode(f" {label}").ids) == 1
    ]
    assert spaced.items.tolist() == one_token
    assert [tokenizer.decode([token]) for token in spaced.label] == [
        f" {labels[row]}" for row in one_token
    ]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
def test_the_loss_is_the_mean_over_prompts_of_the_nats_of_their_answers(family, smoothing):
    model, batch = (
        language_model(family).eval(),
        prompts([[1, 2, 1, 3], [2], [1, 1, 1]], bos=True, more_padding=2),
    )
    loss, parts = compute_answer_loss(model, batch, smoothing)
    nats = []
    for ids, real, label in zip(batch.ids, batch.real, batch.label, strict=True):
        logs = model(ids[real][None]).logits[0, -1].log_softmax(-1)
        nats.append(-(1 - smoothing) * logs[label] - smoothing * logs.mean())
    torch.testing.assert_close(loss, sum(nats) / 3)
    assert parts["answer"] == loss and not parts["answer"].requires_grad


def test_prompts_that_are_longer_than_the_model_has_positions_are_one_line():
    """As those of the data, prompts with synonyms: a word may have more tokens than another."""
    config = GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=50, n_positions=4)
    model = GPT2LMHeadModel(config)
    prompts = SimpleNamespace(length=np.array([3, 4]))
    check_lengths(prompts, model, "synonyms/0.25/1")
    prompts.length[0] = 5
    message = "synonyms/0.25/1: a prompt has 5 tokens, more than the model's 4 positions"
    with pytest.raises(UserError, match=message):
        check_lengths(prompts, model, "synonyms/0.25/1")
