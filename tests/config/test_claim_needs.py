"""What single claims need, against lists that were read off the YAML files by hand."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.config.copies import ROOT, edit
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.claim_needs import ClaimNeeds
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import (
    check_named_claims,
    find_paper_needs,
    list_paper_runs,
    list_requested_runs,
    select_claim,
)

FIRST_PLAN = range(101, 110)
SIX = ("gemma", "gpt2-small", "llama-large", "llama-small", "qwen-large", "qwen-small")
# The six models of `small`, each pre-trained once.
PRETRAINED = {
    *(f"text-bpe-4k/{model}/pretrain/seed-1" for model in SIX if model != "gemma"),
    "text-unigram-4k/gemma/pretrain/seed-1",
}


def name_runs(variants: Iterable[str], seeds: Iterable[int]) -> set[str]:
    seeds = list(seeds)
    return {f"{variant}/seed-{seed}" for variant in variants for seed in seeds}


def needed(claim: str, scale: str = "small", **settings) -> tuple[set[str], ClaimNeeds]:
    catalogue = load_catalogue(ROOT)
    config = load_config({"scale": scale, "claims": [claim], **settings}, ROOT)
    runs = {str(run) for run in list_requested_runs(catalogue, config)}
    return runs, find_paper_needs(catalogue, config, claim.split("/")[0])


def intervened(needs: ClaimNeeds) -> set[str]:
    return set(map(str, needs.intervened_variants))


def test_a_primary_claim_needs_its_sides_and_the_cells_that_it_requires():
    """The plan requires a BLEU of `matched`, which the claim does not compare."""
    runs, needs = needed("lrf/lrf-over-transformer-cter-instance")
    variants = ("cognition/lrf/default", "cognition/lrf/plain", "cognition/lrf/matched")
    assert runs == name_runs(variants, FIRST_PLAN)
    assert not needs.analyses and not intervened(needs)


def test_a_primary_claim_needs_its_twin_of_the_same_sign_and_the_analysis_that_this_reads():
    """cap-first-common-sst-six reads item-sets, which analyses IDM, too. GPT-2 Large is run at
    `full` alone.
    """
    runs, needs = needed("carma/cap-first-sst-six")
    compared = [f"sst/{model}/{variant}" for model in SIX for variant in ("ft", "carma")]
    analysed = [f"idm/{model}/{variant}" for model in SIX for variant in ("ft", "carma")]
    assert runs == name_runs(compared + analysed, range(101, 107)) | PRETRAINED
    assert set(needs.analyses) == {"item-sets"}
    at_full = {
        f"{task}/gpt2-large/{variant}" for task in ("idm", "sst") for variant in ("ft", "carma")
    }
    assert intervened(needs) == {*compared, *analysed} | at_full


def test_a_claim_on_accuracy_needs_no_intervention():
    runs, needs = needed("carma/accuracy-idm-gemma-2b")
    assert runs == name_runs(["idm/gemma/ft", "idm/gemma/carma"], range(101, 107)) | {
        "text-unigram-4k/gemma/pretrain/seed-1"
    }
    assert not needs.analyses and not intervened(needs)


def test_a_claim_on_an_intervention_needs_it_on_its_own_variants_alone():
    """The published effect is a cell of text-5.1, whose row is CARMA's gain over FT."""
    runs, needs = needed("carma/cap-first-idm-llama-1b")
    variants = ["idm/llama-small/ft", "idm/llama-small/carma"]
    parent = {"text-bpe-4k/llama-small/pretrain/seed-1"}
    assert runs == name_runs(variants, range(101, 107)) | parent
    assert intervened(needs) >= {"idm/llama-small/ft", "idm/llama-small/carma"}
    assert {name.split("/")[1] for name in intervened(needs)} == {"llama-small"}


def test_a_claim_needs_the_gain_that_it_supposes():
    """`given`: cap-first-idm-llama-1b, on table-cap and with a published number of text-5.1."""
    runs, _ = needed("carma/capacity-ceiling-llama-3b-to-1b")
    variants = [
        f"idm/{model}/{variant}"
        for model in ("llama-large", "llama-small")
        for variant in ("ft", "carma")
    ]
    parents = {f"text-bpe-4k/{model}/pretrain/seed-1" for model in ("llama-large", "llama-small")}
    assert runs == name_runs(variants, range(101, 107)) | parents


def test_a_claim_on_an_analysis_needs_the_runs_that_this_analyses():
    runs, needs = needed("lrf/fusion-not-collapsed-cogs")
    assert set(needs.analyses) == {"attention-over-layers"}
    assert runs == name_runs(["cogs/lrf/default"], [21, 22, 23])


def test_extra_experiments_come_where_a_claim_compares_them():
    """`previous` is extra; the others are not, and other extra ones do not come."""
    runs, _ = needed("lrf/no-gain-layer-before-cogs")
    variants = ["cogs/lrf/default", "cogs/lrf/matched", "cogs/lrf/previous"]
    assert runs == name_runs(variants, [21, 22, 23])
    runs, _ = needed("lrf/lrf-over-matched-cogs")
    assert runs == name_runs(["cogs/lrf/default", "cogs/lrf/matched"], [21, 22, 23])


def test_a_trend_needs_every_point_of_the_curve():
    runs, needs = needed("sq_transformer/divergence-falls-with-accuracy")
    tasks = [f"scan-complexity-{size}x/transformer/default" for size in (1, 2, 20, 200)]
    assert runs == name_runs(tasks, [21, 22, 23])
    assert set(needs.analyses) == {"attention-complexity"}


def test_given_weights_need_the_trainings_that_made_them():
    """CAT and BERT fine-tuned on PAWS are scored on BiRD; they start from pre-trainings."""
    runs, _ = needed("cat/comp-over-bert-bird")
    variants = [
        *("bird/bert/ft@paws", "bird/cat/comp@paws"),
        *("paws/bert/ft", "paws/cat/comp"),
        *("pairs-wordpiece/bert/pretrain", "pairs-wordpiece/cat/pretrain"),
    ]
    assert runs == name_runs(variants, FIRST_PLAN)


def test_seeds_of_the_configuration_replace_those_of_a_claim():
    runs, _ = needed("lrf/lrf-over-matched-cogs", seeds=[7])
    assert runs == name_runs(["cogs/lrf/default", "cogs/lrf/matched"], [7])


def test_several_claims_need_what_each_of_them_needs():
    catalogue = load_catalogue(ROOT)
    names = ["lrf/lrf-over-matched-cogs", "carma/accuracy-idm-gemma-2b"]
    config = load_config({"scale": "small", "papers": ["cat"], "claims": names}, ROOT)
    assert config.papers == ["lrf", "carma"]
    apart = set().union(*(needed(name)[0] for name in names))
    assert {str(run) for run in list_requested_runs(catalogue, config)} == apart
    assert {run.method for run in list_paper_runs(catalogue, config, "lrf", "small")} == {"lrf"}
    assert not list_paper_runs(catalogue, config, "cat", "small")
    alone = select_claim(config, "lrf", "lrf-over-matched-cogs")
    assert set(map(str, list_requested_runs(catalogue, alone))) == needed(names[0])[0]


@pytest.mark.parametrize("scale", ["demo", "small", "full"])
def test_what_a_claim_needs_is_among_what_its_paper_requests(scale: str):
    catalogue = load_catalogue(ROOT)
    measured = 0
    for key, paper in catalogue.papers.items():
        everything = load_config({"scale": scale, "papers": [key], "extra": True}, ROOT)
        requested = set(list_requested_runs(catalogue, everything))
        for claim in paper.claims:
            config = load_config({"scale": scale, "claims": [f"{key}/{claim.claim}"]}, ROOT)
            try:
                runs = set(list_requested_runs(catalogue, config))
            except UserError:
                continue
            measured += 1
            assert runs and runs <= requested
    assert measured > {"demo": 5, "small": 150, "full": 200}[scale]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["lrf"], "key 'claims.0' is 'lrf'; write <paper>/<claim>, such as "),
        ([], "key 'claims' is []"),
        (["lrf/a", "lrf/a"], "lrf/a is listed twice"),
        (["lfr/lrf-over-matched-cogs"], "key 'claims' names 'lfr'; did you mean 'lrf'?"),
        (
            ["lrf/lrf-over-matched-cog"],
            "has no claim 'lrf-over-matched-cog'; did you mean 'lrf-over-matched-cogs'?",
        ),
        (
            ["lrf/lrf-over-matched-mcd1"],
            "claim lrf/lrf-over-matched-mcd1 is not measured at demo, but at small and full: ./reproduce --claim lrf/lrf-over-matched-mcd1 --scale small",
        ),
    ],
)
def test_a_claim_that_is_not_there_is_one_line(names: list[str], message: str):
    with pytest.raises(UserError) as caught:
        config = load_config({"scale": "demo", "claims": names}, ROOT)
        list_requested_runs(load_catalogue(ROOT), config)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_claim_of_sides_with_no_common_scale_is_measured_at_no_scale(copy: Path):
    def split_sides(content: dict) -> None:
        content["demo"] = [{"task": "cfq-mcd1", "ours": {"lrf": ["default"]}}]
        for entry in content["experiments"]:
            if "mcd1" in str(entry["task"]) and "lrf" in entry.get("ours", {}):
                entry["ours"]["lrf"] = ["matched"]
        others = {"task": ["cfq-mcd2", "cfq-mcd3"], "ours": {"lrf": ["default"]}}
        content["experiments"].append(others)

    edit(copy / "papers/lrf/experiments.yaml", split_sides)
    config = load_config({"scale": "demo", "claims": ["lrf/lrf-over-matched-mcd1"]}, copy)
    with pytest.raises(UserError, match="is measured at no scale"):
        check_named_claims(load_catalogue(copy), config)
