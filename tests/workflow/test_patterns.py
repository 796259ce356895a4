"""Names in targets are those of the catalogue, and seeds are those that a run can have."""

import re

import pytest

from workflow_scripts.workflow.patterns import SEED_LIMIT, match_numbers_below


@pytest.mark.parametrize("limit", [10, 203, 1000, 4096])
def test_the_numbers_below_a_limit_match_and_no_others(limit: int):
    pattern = re.compile(match_numbers_below(limit))
    matched = [number for number in range(20_000) if pattern.fullmatch(str(number))]
    assert matched == list(range(limit))


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("0", True),
        ("7", True),
        ("999999999", True),
        ("1000000000", True),
        ("2147483647", True),
        ("2147483648", False),
        ("9999999999", False),
        ("99999999999", False),
        ("01", False),
        ("", False),
        ("-1", False),
        ("٣", False),
    ],
)
def test_a_seed_is_written_without_zeros_and_below_the_limit(text: str, matches: bool):
    pattern = match_numbers_below(SEED_LIMIT)
    assert bool(re.fullmatch(pattern, text)) == matches
