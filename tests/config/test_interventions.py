"""What a run is asked that its model or its task does not have is refused before any job starts."""

from pathlib import Path

import pytest

from tests.config.as_json import resolve_run
from tests.config.copies import CAUSAL, add_rule
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_intervention

RUN = "idm/gpt2-small/carma/seed-21"  # 4 blocks at the small scale


def set_at_small(copy: Path, section: str, values: dict) -> None:
    add_rule(copy, CAUSAL, "gpt2-small", scale="small", **{section: values})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seeds", [1, 1], "1 is listed twice"),
        ("seeds", [], "at least 1 item"),
        ("blocks", 0, "a number of blocks is at least 1"),
        ("blocks", -2, "a number of blocks is at least 1"),
        ("blocks", [], "a list names one block or more, each 0 or above"),
        ("blocks", [-1], "a list names one block or more, each 0 or above"),
        ("blocks", [1, 1], "1 is listed twice"),
        (
            "blocks",
            "none",
            "blocks' is 'none'; input should be 'all'; or input should be a valid integer; or ",
        ),
        ("blocks", [1, "x"], "blocks.1' is 'x'; input should be a valid integer"),
        ("blocks", [1, 4], "the model has 4 blocks; name some of 0 to 3"),
        ("poolings", [], "at least 1 item"),
        ("poolings", ["max", "max"], "max is listed twice"),
        ("rates", [0.25, 0.25], "0.25 is listed twice"),
        ("rates", [0.25, 0.0], "rates.1' is 0.0; input should be"),
        ("rates", [0.25, 25.0], "rates.1' is 25.0; input should be"),
        ("split", "tset", "no split of the task; did you mean 'test'?"),
    ],
)
def test_an_intervention_that_cannot_be_is_one_line(
    copy: Path, key: str, value: object, message: str
):
    set_at_small(copy, "intervention", {key: value})
    catalogue = load_catalogue(copy)
    with pytest.raises(UserError) as caught:
        resolve_intervention(catalogue, parse_run(catalogue, RUN), "small")
    said = str(caught.value)
    assert f"settings of idm/gpt2-small/carma: key 'intervention.{key}" in said and message in said
    assert f"catalogue/{CAUSAL}:" in said and "gpt2-small.when" in said and "\n" not in said


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ({"last_block_mi": 4}, "last_block_mi 4 reads block 4"),
        ({"last_block_stability": 9}, "last_block_stability 9 reads block 9"),
        (
            {"last_block_stability": 3, "stability_pairs": "paper"},
            "last_block_stability 3 reads block 4",
        ),
    ],
)
def test_blocks_that_the_losses_read_are_blocks_of_the_model(copy: Path, values: dict, read: str):
    set_at_small(copy, "objective", values)
    catalogue = load_catalogue(copy)
    with pytest.raises(UserError) as caught:
        resolve_run(catalogue, RUN, "small")
    assert f"objective: {read}, but the model has 4 blocks (0 to 3); lower it" in str(caught.value)
    assert str(caught.value).startswith("catalogue/")
    # Fine-tuning alone reads none.
    assert resolve_run(catalogue, RUN.replace("carma", "ft"), "small")["objective"]["weight"] == 0
