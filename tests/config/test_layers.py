import re
from pathlib import Path

import pytest

from tests.config.copies import CAUSAL, ROOT, SEQ2SEQ, add_rule, edit
from tests.config.filled import resolve_evaluation, resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.layers import drop_places, merge_settings
from workflow_scripts.config.loading import load_catalogue, read_catalogue

JUMP = "scan-jump-x2/transformer/default/seed-1"


@pytest.mark.parametrize("section", ["model", "problem", "training", "evaluation"])
def test_an_unknown_setting_is_refused_with_file_line_and_nearest(copy: Path, section: str):
    known = {
        "model": "layers",
        "problem": "label_smoothing",
        "training": "max_steps",
        "evaluation": "beam",
    }[section]
    wrong = known[:-1] + "x"
    add_rule(copy, SEQ2SEQ, "transformer", scale="small", **{section: {wrong: 1}})
    lines = (copy / "catalogue" / SEQ2SEQ).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if f"{wrong}:" in text)
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), JUMP, "small")
    key = f"unknown key '{section}.{wrong}'; did you mean '{known}'?"
    expected = f"catalogue/{SEQ2SEQ}:{line}: transformer.when.0: {key}"
    assert str(error.value) == expected


def test_later_layers_win_and_each_value_knows_where_it_comes_from():
    catalogue = load_catalogue(ROOT)
    sections = merge_settings(
        catalogue, parse_run(catalogue, "scan-jump-x2/transformer/sinusoidal/seed-1"), "small"
    )
    for section, key, value, place in (
        ("model", "positions", "sinusoidal", f"{SEQ2SEQ} transformer.variants.sinusoidal"),
        ("model", "width", 128, f"{SEQ2SEQ} backbone.when.3"),
        ("model", "name", "transformer", f"{SEQ2SEQ} transformer"),
        ("training", "max_steps", 15000, f"{SEQ2SEQ} scan-backbone.when.0"),
        ("evaluation", "beam", 1, "tasks/kinds.yaml seq2seq"),
        ("evaluation", "same_word", r"I_(WALK|LOOK|RUN|JUMP)\d*", "tasks/scan.yaml scan-jump"),
    ):
        found, where = sections[section][key]
        file, entry = place.split(" ")
        name, line, said = str(where).split(":")
        assert (found, said.strip()) == (value, entry)
        assert name == f"catalogue/{file}"
        assert key in (ROOT / name).read_text().splitlines()[int(line) - 1]


def test_an_entry_with_another_objective_inherits_no_key_of_the_first(copy: Path):
    """A key of the same name, such as `weight`, is not inherited either, nor one of a rule."""
    variants = {"own": {"title": "Own", "init": {"method": "gpt2-small"}}}
    entry = {"extends": "gpt2-small", "title": "Mine", "variants": variants}

    def add_entries(content: dict) -> None:
        content["mine"] = entry | {"objective": {"name": "structural_quantisation"}}
        content["lighter"] = entry | {"objective": {"weight": 0.1}}

    edit(copy / f"catalogue/{CAUSAL}", add_entries)
    catalogue = load_catalogue(copy)
    merged = merge_settings(catalogue, parse_run(catalogue, "sst/mine/own/seed-1"), "small")
    assert drop_places(merged["objective"]) == {"name": "structural_quantisation"}
    assert drop_places(merged["model"])["width"] == 128
    merged = merge_settings(catalogue, parse_run(catalogue, "sst/lighter/own/seed-1"), "small")
    objective = drop_places(merged["objective"])
    # The rules of the entry that it extends win over its own keys.
    assert objective == {
        "name": "carma",
        "weight": 0.4,
        "last_block_mi": 1,
        "last_block_stability": 1,
    }


def test_the_four_layers_in_their_order(copy: Path):
    """Task, method, variant; in an entry, what it extends, its own settings, then its rules, the
    lower line last.
    """
    steps = lambda count: {"training": {"max_steps": count}}  # noqa: E731
    run, expected = "cogs/sq-transformer/srl/seed-1", 100_000
    for number, change in enumerate(
        (
            lambda: add_rule(copy, "tasks/kinds.yaml", "seq2seq", scale="full", **steps(1)),
            lambda: edit(copy / f"catalogue/{SEQ2SEQ}", lambda it: it["backbone"].update(steps(2))),
            lambda: edit(
                copy / f"catalogue/{SEQ2SEQ}", lambda it: it["sq-transformer"].update(steps(3))
            ),
            lambda: add_rule(copy, SEQ2SEQ, "backbone", kind=["prompt", "seq2seq"], **steps(4)),
            lambda: add_rule(
                copy, SEQ2SEQ, "sq-transformer", task=["cog*"], scale="full", **steps(5)
            ),
            lambda: add_rule(copy, SEQ2SEQ, "sq-transformer", task="cogs", **steps(6)),
            lambda: edit(
                copy / f"catalogue/{SEQ2SEQ}",
                lambda it: it["sq-transformer"]["variants"]["srl"].update(steps(7)),
            ),
        ),
        start=1,
    ):
        assert resolve_run(load_catalogue(copy), run, "full")["training"]["max_steps"] == expected
        change()
        read_catalogue.cache_clear()
        expected = number
    assert resolve_run(load_catalogue(copy), run, "full")["training"]["max_steps"] == 7
    # srl-vq extends srl, with its settings; sal does not.
    assert (
        resolve_run(load_catalogue(copy), run.replace("srl", "srl-vq"), "full")["training"][
            "max_steps"
        ]
        == 7
    )
    assert (
        resolve_run(load_catalogue(copy), run.replace("srl", "sal"), "full")["training"][
            "max_steps"
        ]
        == 6
    )


@pytest.mark.parametrize(
    ("file", "entry", "change", "said"),
    [
        (
            SEQ2SEQ,
            "scan-backbone",
            {"extends": "transformer"},
            "extends 'transformer', which extends this entry",
        ),
        (SEQ2SEQ, "roberta", {"kinds": None}, "key 'roberta.kinds' is missing"),
        (SEQ2SEQ, "roberta", {"when": [{"model": {}}]}, "a rule needs task, kind or scale"),
        (
            SEQ2SEQ,
            "roberta",
            {"when": [{"scale": ["demo", "smal"]}]},
            "no scale 'smal'; did you mean 'small'?",
        ),
        (
            SEQ2SEQ,
            "roberta",
            {"when": [{"kind": "seq2sec"}]},
            "no kind 'seq2sec'; did you mean 'seq2seq'?",
        ),
        ("tasks/cogs.yaml", "cogs", {"prepare": None}, "key 'cogs.prepare' is missing"),
        ("tasks/cogs.yaml", "cogs", {"extends": "cogs-clean"}, "which extends this entry"),
    ],
)
def test_a_wrong_entry_is_one_line_with_its_file(copy: Path, file, entry, change, said):
    edit(copy / "catalogue" / file, lambda entries: entries[entry].update(change))
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    assert any(
        re.search(rf"{file}:\d+: .*{re.escape(said)}", line)
        for line in str(error.value).splitlines()
    )


def test_an_entry_in_two_files_is_refused(copy: Path):
    edit(copy / "catalogue" / CAUSAL, lambda entries: entries.update(cat={"abstract": True}))
    with pytest.raises(
        UserError, match=r"encoders.yaml:\d+: cat: 'cat' is in catalogue/methods/causal.yaml, too"
    ):
        load_catalogue(copy)


@pytest.mark.parametrize(
    ("section", "key", "value", "place"),
    [
        ("training", "learning_rate", -1, f"{SEQ2SEQ} sq-transformer"),
        ("model", "dropout", 1.5, f"{SEQ2SEQ} sq-transformer"),
        ("model", "source_codes", "six", f"{SEQ2SEQ} sq-transformer.variants.sal"),
        ("evaluation", "beam", 0, "tasks/scan.yaml scan-jump-x2"),
    ],
)
def test_a_wrong_value_is_named_with_the_line_that_sets_it(copy: Path, section, key, value, place):
    file, entry = place.split(" ")

    def change(content: dict) -> None:
        for name in entry.split("."):
            content = content[name]
        content.setdefault(section, {})[key] = value

    edit(copy / "catalogue" / file, change)
    catalogue, run = (
        load_catalogue(copy),
        parse_run(load_catalogue(copy), "scan-jump-x2/sq-transformer/sal/seed-1"),
    )
    with pytest.raises(UserError, match=rf"^catalogue/{file}:\d+: {entry}: .*{key}.* is .*{value}"):
        resolve_run(catalogue, run, "full")
        resolve_evaluation(catalogue, run, "full")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            {"model": {"heads": 5}},
            r"width 128 is not a multiple of heads 5 \(model.width: catalogue/\S+:\d+: "
            r"backbone.when.3; model.heads: catalogue/\S+:\d+: transformer.when.0\)$",
        ),
        (
            {"model": {"heads": 5, "width": 128}},
            r"of heads 5 \(model.width: \S+: transformer.when.0; "
            r"model.heads: \S+: transformer.when.0\)$",
        ),
        ({"model": {"name": "none"}}, r"^catalogue/methods/seq2seq.yaml:\d+: transformer.when.0: "),
        (
            {"objective": {"name": "my"}},
            "key 'objective.name' is 'my'; known: carma, compositional, struct",
        ),
        ({"objective": {"weight": 0.2}}, "unknown key 'objective.weight'"),
    ],
)
def test_a_wrong_model_is_named_with_every_entry_that_makes_it_so(
    copy: Path, rule: dict, said: str
):
    add_rule(copy, SEQ2SEQ, "transformer", scale="small", **rule)
    with pytest.raises(UserError, match=said):
        resolve_run(load_catalogue(copy), JUMP, "small")


def test_an_unknown_scale_is_refused_with_the_nearest():
    with pytest.raises(
        UserError, match=r"no scale 'smal' in catalogue/scales\.yaml; did you mean 'small'"
    ):
        resolve_run(load_catalogue(ROOT), "cogs/transformer/default/seed-1", "smal")


def test_a_rule_can_set_what_one_method_takes_on_one_task_at_one_scale():
    """The same keys are unknown to the method's other tasks, which have no such objective."""
    catalogue = load_catalogue(ROOT)
    for task, expected in (("pairs-wordpiece", 10.0), ("wikipedia-bookcorpus", 1.0)):
        spec = resolve_run(catalogue, f"{task}/cat/pretrain/seed-1", "small")
        assert spec["objective"]["decomposition"] == expected
    assert resolve_run(catalogue, "paws/cat/mix/seed-1", "small")["objective"] == {}


def test_an_extended_method_has_the_rules_and_variants_of_its_base():
    """`bert-matched` copies `bert`, rules of its scale included, and changes the width of its
    feed-forward parts.
    """
    catalogue = load_catalogue(ROOT)
    for scale, size in (("demo", 172), ("small", 1320), ("full", 5760)):
        ours, theirs = (
            resolve_run(catalogue, f"paws/{name}/ft/seed-1", scale)["model"]
            for name in ("bert-matched", "bert")
        )
        assert ours == theirs | {"feed_forward": size}
    assert (
        catalogue.methods["bert-matched"].variants.keys()
        == catalogue.methods["bert"].variants.keys()
    )
