import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.config.as_json import resolve_run
from tests.config.copies import ROOT, SEQ2SEQ, add_rule, edit, name_planned_seeds, remove_plans
from tests.training.toy import command, environment
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, hash_file
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.analysis_plan import PrimaryClaim
from workflow_scripts.config.display_schema import Claim
from workflow_scripts.config.loading import load_catalogue, load_config, read_catalogue
from workflow_scripts.config.requested import (
    hash_plans,
    list_decided_claims,
    list_requested_runs,
)
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import find_parent_run, resolve_training
from workflow_scripts.provenance.fingerprints import fingerprint_claims
from workflow_scripts.provenance.spec_fingerprints import fingerprint_training

TRANSFORMER, SAL = (
    ("scan-jump-x2", "transformer", "default"),
    ("scan-jump-x2", "sq-transformer", "sal"),
)


def test_seeds_of_the_configuration_replace_those_of_the_experiments():
    catalogue = load_catalogue(ROOT)
    runs = list_requested_runs(catalogue, load_config({"scale": "small", "seeds": [7]}, ROOT))
    assert {run.seed for run in runs} == {7}


def test_extra_runs_come_only_when_asked_for():
    catalogue = load_catalogue(ROOT)
    few = list_requested_runs(catalogue, load_config({"scale": "small"}, ROOT))
    many = list_requested_runs(catalogue, load_config({"scale": "small", "extra": True}, ROOT))
    assert set(few) < set(many)
    assert {run.task for run in few} == {
        "scan-jump-x2",
        "scan-around-right",
        "cogs",
        "cognition",
        "cognition-compounds",
    }


def test_a_run_comes_behind_the_one_that_it_starts_from():
    catalogue = load_catalogue(ROOT)
    runs = list(
        list_requested_runs(catalogue, load_config({"scale": "small", "papers": ["carma"]}, ROOT))
    )
    for run in runs:
        before = find_parent_run(catalogue, run, "small")
        assert (before is None) == (run.variant == "pretrain")
        assert before is None or runs.index(before) < runs.index(run)
    spec = resolve_run(catalogue, "idm/gpt2-small/ft/seed-21", "small")
    pretrained = resolve_run(catalogue, "text-bpe-4k/gpt2-small/pretrain/seed-1", "small")
    assert spec["init"] == {
        "run": "text-bpe-4k/gpt2-small/pretrain/seed-1",
        "spec": digest(pretrained),
    }


CELLS = {
    "left": "table1/SQ-Transformer/JUMP/exact_match",
    "right": "table1/Transformer/JUMP/exact_match",
}
SEEDS = [1, 2, 3, 4]


def plan(
    copy: Path,
    scale: str = "small",
    seeds: list[int] = SEEDS,
    measure: str = "difference",
    names_measure: bool = False,
    **entry: object,
) -> Path:
    """Write the only analysis plan, with one new claim about SCAN ADDJUMP; the experiments ask for
    its seeds.

    `names_measure`: the plan has the measure, not the claim.
    """
    folder = copy / "papers/sq_transformer"
    remove_plans(folder)
    claim = {
        "claim": "a-planned-one",
        "statement": "",
        "source": "",
        "relation": "greater",
        **CELLS,
    }
    if names_measure:
        entry["measure"] = measure
    else:
        claim["measure"] = measure
    edit(
        folder / "claims.yaml",
        lambda content: content["claims"].append(claim) if claim not in content["claims"] else None,
    )
    spread = {"sd": 1.0, "freedom": 9, "paired": False}
    primary = {
        "claim": "a-planned-one",
        "published": 8.0,
        "smallest": 2.0,
        "spread": spread,
    } | entry
    content = {
        "scale": scale,
        "written": "2026-01-31",
        "seeds": seeds,
        "pilots": {"seeds": [91, 92], "source": "scores.csv"},
        "quantile": 0.95,
        "primary": [primary],
        "stop": "all seeds, no more",
    }
    file = folder / "analysis_plan.yaml"
    file.write_text(yaml.safe_dump(content).replace("'2026-01-31'", "2026-01-31"))
    edit(folder / "experiments.yaml", lambda content: name_planned_seeds(content, [7]))
    for paper in ("sq_transformer", "recompose"):
        edit(copy / f"papers/{paper}/experiments.yaml", lambda content: ask(content, scale, seeds))
    read_catalogue.cache_clear()
    return file


def ask(content: dict, scale: str, seeds: list[int]) -> None:
    """Take these seeds in every experiment on SCAN ADDJUMP."""
    for experiment in content["demo" if scale == "demo" else "experiments"]:
        if "scan-jump-x2" in experiment["task"]:
            experiment.setdefault("seeds", {})[scale] = seeds


def requested(copy: Path, paper: str = "sq_transformer", **given) -> dict[Run, list[str]]:
    content = {"scale": "small", "papers": [paper], "extra": True} | given
    return list_requested_runs(load_catalogue(copy), load_config(content, copy))


def test_a_primary_claim_is_decided_by_its_sides_and_its_controls(copy: Path):
    requirement = {"cell": "table1/SQ-Transformer/AROUNDR/exact_match", "at_least": 40.0}
    plan(copy, control={"floor": CELLS["right"], "requires": [requirement]}, seeds=SEEDS)
    paper = load_catalogue(copy).papers["sq_transformer"]
    (planned,) = paper.list_primary_claims()
    around = ("scan-around-right", "sq-transformer", "sal")
    assert paper.list_deciding_variants(planned.entry) == [SAL, TRANSFORMER, around]
    runs = paper.list_planned_runs(planned)
    assert runs == [Run(*variant, seed) for variant in (SAL, TRANSFORMER, around) for seed in SEEDS]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"threshold": 50.0, "smallest": 0.6},
            "threshold goes with measure success_rate, and only with it",
        ),
        ({"threshold": 50.0, "smallest": 50.0}, "smallest is 50.0; with a threshold it is a share"),
        ({"threshold": 50.0, "smallest": 0.5}, "smallest of a-planned-one is 0.5; where none of 4"),
        ({"smallest": 3.0}, "key 'primary.0': smallest is 3.0; it must be margin + q x published"),
    ],
)
def test_a_plan_that_does_not_fit_its_claims_is_one_line(copy: Path, entry: dict, message: str):
    plan(copy, **entry)
    with pytest.raises(UserError) as caught:
        load_catalogue(copy)
    assert "papers/sq_transformer/analysis_plan.yaml" in str(caught.value) and message in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("margin", "relation", "message"),
    [
        (2.0, "no_gain", "margin is 2; it is not above 0 for a claim of no gain"),
        (-2.0, "greater", "margin is -2; it is not below 0 but for a claim of no gain"),
    ],
)
def test_a_margin_has_the_sign_of_its_claim(copy: Path, margin: float, relation: str, message: str):
    file = plan(copy, margin=margin, smallest=margin, published=None)

    def change(content: dict) -> None:
        content["claims"][-1]["relation"] = relation

    edit(copy / "papers/sq_transformer/claims.yaml", change)
    read_catalogue.cache_clear()
    line = 1 + [text.strip() for text in file.read_text().splitlines()].index(f"margin: {margin}")
    with pytest.raises(UserError) as caught:
        load_catalogue(copy)
    assert str(caught.value) == f"{file}:{line}: claim 'a-planned-one': {message}"


@pytest.mark.parametrize("key", ["at_least", "measure"])
def test_a_primary_claim_leaves_to_its_plan_what_the_plan_says(copy: Path, key: str):
    plan(copy, measure="superiority", names_measure=True, published=1.0, margin=0.5, smallest=0.75)
    file = copy / "papers/sq_transformer/claims.yaml"
    claim = load_catalogue(copy).papers["sq_transformer"].claims_by_name["a-planned-one"]
    assert (claim.at_least, claim.margin, claim.measure) == (0.5, 0.5, "superiority")

    value = {"at_least": 0.5, "measure": "superiority"}[key]
    edit(file, lambda content: content["claims"][-1].update({key: value}))
    read_catalogue.cache_clear()
    line = len(file.read_text().splitlines())  # the last key of the last claim
    with pytest.raises(UserError) as caught:
        load_catalogue(copy)
    said = (
        f"claim 'a-planned-one' is primary: leave out {key}, which follows from analysis_plan.yaml"
    )
    assert str(caught.value) == f"{file}:{line}: {said}"


def test_superiority_is_named_in_the_plan_and_needs_no_spread_there(copy: Path):
    """In claims.yaml alone it would leave the plan's null at 0 in place of 0.5."""
    chance = {"published": 1.0, "margin": 0.5, "smallest": 0.75}
    plan(copy, measure="superiority", names_measure=True, spread=None, **chance)
    read_catalogue.cache_clear()
    claim = load_catalogue(copy).papers["sq_transformer"].claims_by_name["a-planned-one"]
    assert (claim.measure, claim.unit) == ("superiority", "chance")
    edit(copy / "papers/sq_transformer/claims.yaml", lambda content: content["claims"].pop())
    file = plan(copy, measure="superiority", published=8.0, smallest=2.0)
    with pytest.raises(UserError) as caught:
        load_catalogue(copy)
    advice = "claim 'a-planned-one': move `measure: superiority` here from claims.yaml"
    assert str(caught.value) == f"{file}:7: {advice}"


@pytest.mark.parametrize(
    "file",
    sorted((ROOT / "papers").glob("*/analysis_plan.yaml")),
    ids=lambda file: file.parent.name,
)
def test_claims_of_all_plans_have_the_margins_of_these(file: Path):
    """Read without the package. A plan writes the margin of a claim of no loss with its sign."""
    claims = load_catalogue(ROOT).papers[file.parent.name].claims_by_name
    for plan_file in (file, *sorted(file.parent.glob("plans/*.yaml"))):
        for entry in yaml.safe_load(plan_file.read_text())["primary"]:
            claim = claims[entry["claim"]]
            assert claim.at_least == abs(entry["margin"]) and claim.margin == entry["margin"]
            assert (claim.relation == "no_gain") == (entry["margin"] < 0)
            assert claim.measure == entry.get("measure", claim.measure)


def seeds_by_variant(paper: str) -> dict[tuple[str, str, str], list[int]]:
    runs = list_requested_runs(
        load_catalogue(ROOT),
        load_config({"scale": "small", "papers": [paper], "extra": True}, ROOT),
    )
    seeds: dict[tuple[str, str, str], list[int]] = {}
    for run in runs:
        seeds.setdefault(run.variant_key, []).append(run.seed)
    return {variant: sorted(of_variant) for variant, of_variant in seeds.items()}


def test_planned_seeds_are_those_of_the_claims_that_compare_a_variant():
    """Of two plans, and of a claim for which its plan names other seeds; numbers are copied from
    the plans by hand.
    """
    seeds = seeds_by_variant("sq_transformer")
    assert seeds["scan-jump-x2", "transformer", "default"] == [*range(101, 109)]
    # of a secondary claim
    assert seeds["scan-jump-x2", "sq-transformer", "sal"] == [*range(101, 109)]
    assert seeds["scan-around-right", "sq-transformer", "sal-entropy-3"] == [*range(101, 106)]
    assert seeds["scan-jump-x2", "sq-transformer", "sal-entropy-3-long"] == [*range(201, 213)]
    assert seeds["scan-jump-x2", "sq-transformer", "sal-long"] == [*range(201, 213)]
    assert seeds["cogs", "transformer", "default"] == [21, 22, 23]


def test_a_variant_that_no_claim_compares_has_the_seeds_of_the_only_plan():
    carma, cat = seeds_by_variant("carma"), seeds_by_variant("cat")
    assert (
        carma["idm", "gpt2-small", "lambda-0.1"]
        == carma["idm", "gpt2-small", "carma"]
        == [*range(101, 107)]
    )
    assert cat["paws", "cat", "cont"] == [*range(101, 110)]


def test_planned_seeds_without_a_plan_are_one_line(copy: Path):
    folder = copy / "papers/lrf"
    remove_plans(folder)
    read_catalogue.cache_clear()
    with pytest.raises(UserError) as caught:
        load_catalogue(copy)
    told = "seeds at small are `planned`, and no analysis plan is of that scale; name them"
    line = 1 + (folder / "experiments.yaml").read_text().splitlines().index("experiments:") + 1
    assert str(caught.value) == f"{folder / 'experiments.yaml'}:{line}: {told}"


def test_a_gain_is_decided_by_both_of_its_variants():
    """`carma` over `ft` of the same seed; a star matches whatever the display has."""
    paper = load_catalogue(ROOT).papers["carma"]
    sides = {"left": "table-gains/Gemma-2B/*/exact_match", "right": 0.0, "relation": "greater"}
    claim = Claim(claim="gains", statement="It gains", source="Table 1", unit="points", **sides)
    spread = {"sd": 1.0, "freedom": 9, "paired": True}
    entry = PrimaryClaim(claim="gains", published=8.0, smallest=2.0, spread=spread)
    found = replace(paper, claims=[claim]).list_deciding_variants(entry)
    assert set(found) == {
        (task, "gemma", variant) for task in ("idm", "sst") for variant in ("carma", "ft")
    }


@pytest.mark.parametrize("seeds", [[1, 2, 3], [1, 2, 3, 4, 5], [5, 6, 7, 8]])
def test_other_seeds_than_the_planned_ones_are_one_line(copy: Path, seeds: list[int]):
    """One missing, one too many, all others. At another scale, or with seeds of config.yaml, it is
    no error.
    """
    plan(copy)
    edit(
        copy / "papers/sq_transformer/experiments.yaml",
        lambda content: ask(content, "small", seeds),
    )
    read_catalogue.cache_clear()
    with pytest.raises(UserError) as caught:
        requested(copy)
    assert "papers/sq_transformer/experiments.yaml" in str(caught.value) and "a-planned-one" in str(
        caught.value
    )
    assert (
        str(seeds) in str(caught.value)
        and str(SEEDS) in str(caught.value)
        and "\n" not in str(caught.value)
    )
    assert requested(copy, scale="demo") and requested(copy, seeds=[7])


def make_extra(content: dict, methods: set[str]) -> None:
    """Move what these methods train on SCAN ADDJUMP to an experiment of extra runs."""
    for experiment in list(content["experiments"]):
        for key in ("methods", "ours"):
            if "scan-jump-x2" in experiment["task"] and key in experiment:
                asked = experiment[key]
                moved = {name: asked.pop(name) for name in methods & asked.keys()}
                rest = {
                    name: experiment[name] for name in experiment if name not in ("methods", "ours")
                }
                if moved:
                    content["experiments"].append(rest | {"methods": moved, "extra": True})
    content["experiments"] = [
        experiment
        for experiment in content["experiments"]
        if experiment.get("methods") or experiment.get("ours")
    ]


def test_a_claim_may_not_be_decided_by_extra_runs_on_one_side_alone(copy: Path):
    plan(copy)
    edit(
        copy / "papers/sq_transformer/experiments.yaml",
        lambda content: make_extra(content, {"transformer"}),
    )
    read_catalogue.cache_clear()
    assert requested(copy)
    with pytest.raises(UserError, match=r"at small has the seeds \[\]"):
        requested(copy, extra=False)


def test_a_claim_may_be_decided_by_extra_runs_which_are_not_asked_for_without_extra(copy: Path):
    plan(copy)
    methods = {"transformer", "sq-transformer"}
    edit(
        copy / "papers/sq_transformer/experiments.yaml",
        lambda content: make_extra(content, methods),
    )
    read_catalogue.cache_clear()
    assert Run(*TRANSFORMER, SEEDS[0]) in requested(copy)
    assert Run(*TRANSFORMER, SEEDS[0]) not in requested(copy, extra=False)
    plan(copy, seeds=[*SEEDS, 5])
    edit(
        copy / "papers/sq_transformer/experiments.yaml",
        lambda content: ask(content, "small", SEEDS),
    )
    read_catalogue.cache_clear()
    with pytest.raises(UserError, match="write `planned` for them"):
        requested(copy, extra=False)


def test_verdicts_are_given_anew_when_the_plan_changes_and_not_when_a_comment_does(copy: Path):
    def facts() -> str:
        read_catalogue.cache_clear()
        return str(fingerprint_claims(load_catalogue(copy), ["sq_transformer"], "small", []))

    file = plan(copy)
    planned = facts()
    file.write_text("# a comment\n" + file.read_text())
    assert facts() == planned
    plan(copy, smallest=4.0)
    assert facts() != planned


def test_a_plan_names_its_runs_and_changes_no_spec(copy: Path):
    run, other = Run(*TRANSFORMER, 2), Run("scan-around-right", "transformer", "default", 2)
    before = fingerprint_training(resolve_training(load_catalogue(copy), run, "small"))
    file = plan(copy)
    catalogue = load_catalogue(copy)
    assert hash_plans(catalogue, run, "small") == {
        "sq_transformer/analysis_plan.yaml": hash_file(file)
    }
    ((paper, planned),) = list_decided_claims(catalogue, run, "small")
    assert (paper, planned.name) == ("sq_transformer", "a-planned-one")
    assert hash_plans(catalogue, run, "demo") == {}
    assert hash_plans(catalogue, Run(*TRANSFORMER, 5), "small") == {}
    assert hash_plans(catalogue, other, "small") == {}
    assert str(fingerprint_training(resolve_training(catalogue, run, "small"))) == str(before)


@pytest.mark.slow
def test_a_training_records_the_plan_that_names_it(copy: Path):
    """A comment changes the recorded sum, and nothing by which Snakemake would train again."""
    name, made = "scan-jump-x2/transformer/default/seed-1", {}
    assert (
        main(["prepare", "--task", "scan-jump-x2", "--scale", "demo", "--out", str(copy / "data")])
        == 0
    )
    add_rule(copy, SEQ2SEQ, "transformer", scale="demo", training=few_steps())
    for out in ("without", "with", "commented"):
        if out == "with":
            file = plan(copy, "demo")
        elif out == "commented":
            file.write_text(file.read_text() + "# a word more\n")
        line = command(
            "train",
            "--run",
            name,
            "--scale",
            "demo",
            "--data",
            "data",
            "--out",
            out,
            "--device",
            "cpu",
        )
        subprocess.run([*line, "--progress", "none"], cwd=copy, env=environment(), check=True)
        record = json.loads((copy / out / "record.json").read_text())
        expected = (
            {} if out == "without" else {"sq_transformer/analysis_plan.yaml": hash_file(file)}
        )
        assert record["analysis_plans"] == expected
        made[out] = (copy / out / "run.json").read_bytes(), record["fingerprint"]
    assert made["without"] == made["with"] == made["commented"]


def few_steps() -> dict:
    return {"max_steps": 4, "warmup_steps": 1, "validate_every": 4, "log_every": 2}


def test_seeds_planned_by_another_paper_are_those_of_its_plans():
    catalogue = load_catalogue(ROOT)
    config = Config.model_validate({"scale": "small", "papers": ["lrf", "recompose"]})
    seeds: dict[tuple[str, str, str], list[int]] = {}
    for run in list_requested_runs(catalogue, config):
        seeds.setdefault(run.variant_key, []).append(run.seed)
    assert sorted(seeds["cognition", "sq-transformer", "srl"]) == [*range(101, 109)]
    assert sorted(seeds["cognition-compounds", "sq-transformer", "srl"]) == [*range(201, 207)]
    assert sorted(seeds["idm", "gemma", "carma"]) == [*range(101, 107)]


@pytest.mark.parametrize(
    ("planner", "problem"),
    [
        ("carmen", "seeds are planned by 'carmen'; did you mean 'carma'"),
        ("cat", "no plan of cat at small compares cognition/sq-transformer/srl; name its seeds"),
    ],
)
def test_seeds_that_another_paper_does_not_plan_are_one_line(
    copy: Path, planner: str, problem: str
):
    file = copy / "papers/lrf/experiments.yaml"
    file.write_text(file.read_text().replace("planned: sq_transformer", f"planned: {planner}"))
    read_catalogue.cache_clear()
    config = Config.model_validate({"scale": "small", "papers": ["lrf"]})
    with pytest.raises(UserError, match=problem) as raised:
        list_requested_runs(load_catalogue(copy), config)
    line = file.read_text().partition(f"planned: {planner}")[0].count("\n") + 1
    assert str(raised.value).startswith(f"{file}:{line}: ")
