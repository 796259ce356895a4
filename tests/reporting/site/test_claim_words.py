"""What is compared, in words; and the effect of each model, whose mean is that of the claim."""

from statistics import fmean

import pytest

from tests.reporting.site.conftest import RESULTS, ROOT
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.site.claim_words import (
    describe_comparison,
    explain_metrics,
    list_pair_effects,
    name_sides,
)
from workflow_scripts.reporting.site.measured_claims import MeasuredClaim, read_measured_claims


@pytest.fixture(scope="module")
def claims() -> dict[str, MeasuredClaim]:
    measured = read_measured_claims(load_catalogue(ROOT), RESULTS)
    return {f"{claim.row.paper}/{claim.row.claim}": claim for claim in measured}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cat/comp-over-bert-bird", "CAT_comp − BERT"),
        ("cat/minimal-impact-sst2", "CAT_mix − BERT"),  # the claim has BERT left
        ("lrf/lrf-over-transformer-cter-instance", "Transformer − LRF"),  # of errors
        ("lrf/lrf-over-matched-addjump", "LRF − “Transformer, matched”"),
        ("lrf/lrf-over-transformer-compounds", "log odds of Transformer − log odds of LRF"),
        ("lrf/fusion-not-collapsed-cogs", "“LRF, COGS layers” − 1.0"),
        (
            "sq_transformer/sal-success-addjump",
            "the share of seeds above 50, “SAL, changed” − Transformer",
        ),
        (
            "sq_transformer/sal-above-transformer-addjump",
            "the chance that a seed of “SAL, changed” is above one of Transformer",
        ),
        (
            "sq_transformer/divergence-falls-with-accuracy",
            "how far KL divergence falls while Accuracy rises: −(Kendall’s τ)",
        ),
        ("carma/accuracy-idm-six", "CARMA − FT, mean of 6 differences"),
        ("carma/cv-six", "ln(FT / CARMA), mean of 24 differences"),
    ],
)
def test_a_comparison_is_named(claims, name, text):
    assert describe_comparison(claims[name]) == text


def test_no_side_is_called_left_or_right_and_every_metric_has_a_meaning(claims):
    meanings = load_catalogue(ROOT).meanings
    for claim in claims.values():
        assert not {"left", "right", ""} & set(name_sides(claim))
        assert " left" not in describe_comparison(claim)
        metrics = explain_metrics(claim, meanings)
        assert metrics and {metric.name for metric in metrics} <= meanings.keys()


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("carma/accuracy-idm-six", "percent of outputs that are right as a whole"),
        (
            "carma/cap-first-sst-six",
            "percent of right answers that stay right under CAP, the pooling of each word's tokens",
        ),
        (
            "carma/cap-first-common-sst-six",
            "percent of right answers that stay right under CAP, the pooling of each word's tokens, "
            "on the items that all compared models had right before",
        ),
        (
            "carma/cap-first-all-sst-smollm",
            "percent of outputs that are right as a whole under CAP, the pooling of each word's "
            "tokens",
        ),
        (
            "carma/larger-gains-more-gpt2-l",
            "gain in the percent of outputs that are right as a whole",
        ),
    ],
)
def test_a_metric_is_described_with_its_items_and_its_intervention(claims, name, meaning):
    (metric,) = explain_metrics(claims[name], load_catalogue(ROOT).meanings)
    assert (metric.name, metric.meaning) == ("exact_match", meaning)


def test_the_mean_of_the_models_is_the_effect_of_the_claim(claims):
    names = {
        "carma/accuracy-idm-six": 6,
        "carma/accuracy-sst-six": 6,
        "carma/consistency-sst-six": 6,
        "carma/cap-first-sst-six": 6,
        "carma/cv-six": 24,
    }
    for name, count in names.items():
        claim = claims[name]
        pairs = list_pair_effects(claim)
        assert len(pairs) == count
        assert fmean(pair.effect for pair in pairs) == pytest.approx(claim.row.effect, rel=1e-4)
    first = list_pair_effects(claims["carma/accuracy-idm-six"])[0]
    assert first.name == "GPT2-S"
    assert first.effect == pytest.approx(first.left - first.right)
    published = list_pair_effects(claims["carma/consistency-sst-six"])
    assert fmean(pair.published for pair in published) == pytest.approx(
        claims["carma/consistency-sst-six"].row.published_effect, abs=0.005
    )


def test_a_claim_about_one_pair_has_no_list_of_effects(claims):
    assert list_pair_effects(claims["cat/comp-over-bert-bird"]) == []
