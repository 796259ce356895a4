"""`given` of a claim names another claim, which does not need this one itself."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.config.copies import edit
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue, read_catalogue

NO_GAIN, GAIN = "no-gain-layer-before-cognition", "lrf-over-matched-cogs-structure"


@pytest.fixture(autouse=True)
def uncached():
    read_catalogue.cache_clear()
    yield
    read_catalogue.cache_clear()


def name_given(**given: str) -> Callable[[dict], None]:
    """Return an edit that gives claims of LRF other claims."""

    def change(content: dict) -> None:
        for claim in content["claims"]:
            name = claim["claim"].replace("-", "_")
            if name in given:
                claim["given"] = given[name]

    return change


def list_problems(copy: Path) -> list[str]:
    with pytest.raises(UserError) as error:
        load_catalogue(copy)
    return [line.partition(": ")[2] for line in str(error.value).splitlines()]


def test_a_claim_is_not_given_itself(copy: Path):
    edit(
        copy / "papers/lrf/claims.yaml",
        name_given(no_gain_layer_before_cognition=NO_GAIN),
    )
    assert list_problems(copy) == [
        f"key '{NO_GAIN}.given' names '{NO_GAIN}', this claim; name another claim"
    ]


def test_two_claims_are_not_given_each_other(copy: Path):
    edit(
        copy / "papers/lrf/claims.yaml",
        name_given(no_gain_layer_before_cognition=GAIN, lrf_over_matched_cogs_structure=NO_GAIN),
    )
    assert sorted(list_problems(copy)) == [
        f"key '{GAIN}.given' names '{NO_GAIN}', which is given this claim; name another claim",
        f"key '{NO_GAIN}.given' names '{GAIN}', which is given this claim; name another claim",
    ]
