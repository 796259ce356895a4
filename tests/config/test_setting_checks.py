"""All lines that `lint` prints about a method in a file that the user has added."""

import os
import re
from pathlib import Path

import pytest

from tests.config.copies import edit
from workflow_scripts.config.checker import find_problems
from workflow_scripts.config.loading import read_catalogue

MINE = "catalogue/methods/mine.yaml"
SEQ2SEQ = "catalogue/methods/seq2seq.yaml"


@pytest.fixture(autouse=True)
def uncached():
    read_catalogue.cache_clear()
    yield
    read_catalogue.cache_clear()


def write_method(project: Path, *lines: str) -> None:
    """Write an entry that extends the Transformer."""
    text = "\n  ".join(["mine:", "extends: transformer", "title: Mine", *lines])
    (project / MINE).write_text(f"{text}\n")


def request(project: Path, scale: str, task: str = "scan-jump-x2") -> None:
    """Ask for the variant `default` of the method at a scale."""
    entry = {"task": task, "ours": {"mine": ["default"]}, "seeds": {scale: [1]}}
    part = "demo" if scale == "demo" else "experiments"
    if part == "experiments":
        entry["at"] = scale
    edit(
        project / "papers/lrf/experiments.yaml",
        lambda content: content[part].append(entry),
    )


def find_line(project: Path, text: str) -> int:
    """Return the line of the first settings of the backbone with this text."""
    lines = (project / SEQ2SEQ).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_key_that_a_rule_of_another_file_replaces_is_named_once(copy: Path):
    write_method(
        copy,
        "model: {dropout: 0.3}",
        "training: {learning_rate: 0.0001}",
        "variants: {default: {title: as it is}}",
    )
    assert find_problems(copy) == []  # nothing asks for it
    for scale, task in (("demo", "cogs"), ("demo", "scan-jump-x2"), ("small", "scan-jump-x2")):
        request(copy, scale, task)
    read_catalogue.cache_clear()
    demo = f"{SEQ2SEQ}:{find_line(copy, 'dropout: 0.0}')}: backbone.when.4"
    small = f"{SEQ2SEQ}:{find_line(copy, 'dropout: 0.1}')}: backbone.when.3"
    rate = f"{SEQ2SEQ}:{find_line(copy, 'learning_rate: 0.002')}: scan-backbone.when.0"
    advice = "put it under a variant, or in a rule of mine.when"
    assert find_problems(copy) == [
        f"{MINE}:4: mine: key 'model.dropout' has no effect at demo on cogs, scan-jump-x2 and at "
        f"small on scan-jump-x2: {demo} and {small} set it; {advice}",
        f"{MINE}:5: mine: key 'training.learning_rate' has no effect at small on scan-jump-x2: "
        f"{rate} sets it; {advice}",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["variants: {default: {title: slow, training: {learning_rate: 0.0001}}}"],
        [
            "when: [{scale: small, training: {learning_rate: 0.0001}}]",
            "variants: {default: {title: slow}}",
        ],
        ["training: {learning_rate: 0.002}", "variants: {default: {title: the same rate}}"],
    ],
)
def test_a_variant_and_a_rule_of_ones_own_have_an_effect(copy: Path, lines: list[str]):
    write_method(copy, *lines)
    request(copy, "small")
    assert find_problems(copy) == []


def test_a_wrong_value_that_a_rule_replaces_is_refused(copy: Path):
    write_method(copy, "model: {dropout: 1.5}", "variants: {default: {title: as it is}}")
    request(copy, "demo")
    said = "key 'model.dropout' is 1.5; input should be less than or equal to 0.99"
    assert find_problems(copy) == [f"{MINE}:4: mine: {said}"]


def test_wrong_keys_and_wrong_values_of_a_file_are_named_at_once(copy: Path):
    write_method(
        copy,
        "protocol: papr",
        "when:",
        "  - {scale: demo, training: {betas: [2, 0.9]}}",
        "variants:",
        "  default: {titel: as it is}",
        "  slow: {title: slow, training: {lerning_rate: 0.001}}",
        "  wide: {title: 5, model: {witdh: 64}}",
        "  long: {title: long, training: {max_steps: many}}",
        "  wild: {model: {dropout: 1.5}, training: {learning_rate: -1}}",
    )
    request(copy, "demo")
    problems = [line.partition(f"{MINE}:")[2] for line in find_problems(copy)]
    assert sorted(problems, key=lambda line: int(line.split(":")[0])) == [
        "4: key 'mine.protocol' is 'papr'; input should be 'paper', 'reduced' or 'stand_in'",
        "6: mine.when.0: key 'training.betas.0' is 2; input should be less than 1",
        "8: unknown key 'mine.variants.default.titel'; did you mean 'title'?",
        "9: mine.variants.slow: unknown key 'training.lerning_rate'; did you mean 'learning_rate'?",
        "10: key 'mine.variants.wide.title' is 5; input should be a valid string",
        "10: mine.variants.wide: unknown key 'model.witdh'; did you mean 'width'?",
        "11: mine.variants.long: key 'training.max_steps' is 'many'; input should be a valid "
        "integer",
        "12: key 'mine.variants.wild.title' is missing",
        "12: mine.variants.wild: key 'model.dropout' is 1.5; input should be less than or equal to "
        "0.99",
        "12: mine.variants.wild: key 'training.learning_rate' is -1; input should be greater than "
        "0",
    ]


def test_settings_that_do_not_go_together_lead_with_the_variant_and_a_task_of_its_runs(copy: Path):
    """No paper asks for the variant. Heads of two are a rule of the project's, at demo."""
    write_method(copy, "variants: {default: {title: a}, big: {title: b, model: {width: 65}}}")
    request(copy, "demo")
    mine = f"{MINE}:4: mine.variants.big"
    heads = f"{SEQ2SEQ}:{find_line(copy, 'heads: 2,')}: backbone.when.4"
    assert find_problems(copy) == [
        f"{mine}: settings of scan-jump-x2/mine/big: key 'model': width 65 is not a multiple of "
        f"heads 2 (model.heads: {heads}; model.width: {mine})"
    ]


def test_a_name_of_a_model_that_is_no_text_is_one_line(copy: Path):
    write_method(copy, "model: {name: [lrf]}", "variants: {default: {title: as it is}}")
    request(copy, "demo")
    (problem,) = find_problems(copy)
    assert problem.startswith(f"{MINE}:4: mine: settings of scan-jump-x2/mine/default: key ")
    assert problem.endswith("key 'model.name' is ['lrf']; did you mean 'lrf'?")


def test_a_method_that_only_extends_another_has_all_its_variants(copy: Path):
    """One of them is right on SCAN at small alone, where a paper asks for that of the base."""
    (copy / MINE).write_text("mine: {extends: transformer, title: Mine}\n")
    assert find_problems(copy) == []
    read_catalogue.cache_clear()
    request(copy, "demo", "cogs")
    assert find_problems(copy) == []


def test_a_list_may_select_a_variant_without_the_one_that_it_extends(copy: Path):
    (copy / MINE).write_text("mine: {extends: sq-transformer, title: Mine, variants: [srl-vq]}\n")
    assert find_problems(copy) == []
    methods = read_catalogue(str(copy), os.getcwd()).methods
    assert list(methods["mine"].variants) == ["srl-vq"]
    base = methods["sq-transformer"].variants["srl-vq"]
    assert methods["mine"].variants["srl-vq"] == base
    assert [block.place.entry[-1] for block in base.blocks] == ["srl", "srl-vq"]


def test_candidates_of_a_method_are_refused_since_all_methods_on_a_task_share_them(copy: Path):
    interventions = "{split: valid, poolings: [max], candidates: {top: 1}}"
    variant = f"{{title: x, init: {{method: gpt2-small}}, intervention: {interventions}}}"
    (copy / MINE).write_text(
        f"mine:\n  extends: gpt2-small\n  title: Mine\n  variants:\n    ft: {variant}\n"
    )
    where = f"{MINE}:5: mine.variants.ft"
    rule = "has no effect here: all methods on a task share it; set it in catalogue/tasks, in an "
    assert find_problems(copy) == [
        f"{where}: key 'intervention.{key}' {rule}entry that extends the task"
        for key in ("split", "candidates")
    ]


def test_a_method_of_another_kind_is_named_once_with_the_experiment(copy: Path):
    for scale in ("demo", "small"):
        entry = {"task": "cogs", "ours": {"bert": ["ft"]}, "seeds": {scale: [1]}}
        part = "demo"
        if scale != "demo":
            part = "experiments"
            entry["at"] = scale
        edit(copy / "papers/lrf/experiments.yaml", lambda it, e=entry, p=part: it[p].append(e))
    (problem,) = find_problems(copy)
    assert re.fullmatch(
        r"\S+papers/lrf/experiments\.yaml:\d+: settings of cogs/bert/ft: cogs is of the kind "
        r"seq2seq, and bert is for .*; name another task or method",
        problem,
    )


def test_a_claim_of_config_yaml_that_does_not_exist_is_a_problem(copy: Path):
    file = copy / "config.yaml"
    text = file.read_text()
    file.write_text(f"{text}\nclaims: [lrf/lrf-over-matched-cog]\n")
    line = len(file.read_text().splitlines())
    assert find_problems(copy) == [
        f"{file}:{line}: papers/lrf/claims.yaml has no claim 'lrf-over-matched-cog'; "
        "did you mean 'lrf-over-matched-cogs'?"
    ]


def test_a_method_with_an_underscore_may_need_memory_of_its_own(copy: Path):
    (copy / MINE).write_text("my_method: {extends: transformer, title: Mine}\n")
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["small"]["jobs"].update(
            memory_of={"my_method": 3000}, large_gpu=["my_method"]
        ),
    )
    assert find_problems(copy) == []
