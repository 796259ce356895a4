"""What the terminal shows of claims.csv: for a reader who has not seen it before."""

import csv
import re

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_csv
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.claim_rows import CLAIM_COLUMNS
from workflow_scripts.reporting.claims.claim_table import (
    print_claims,
    print_claims_alone,
    shorten_reason,
)


def row(claim, verdict="inconclusive", **more):
    entry = dict.fromkeys(CLAIM_COLUMNS, "") | {
        "paper": "cat",
        "claim": claim,
        "kind": "paper",
        "role": "exploratory",
    }
    entry |= {
        "relation": "greater",
        "unit": "points",
        "at_least": "0",
        "quantile": "0.975",
        "verdict": verdict,
    }
    return entry | more


def measured(claim, verdict, **more):
    return row(
        claim, verdict, **({"effect": "5.5", "ci_low": "1", "ci_high": "10", "n_seeds": "5"} | more)
    )


ROWS = [
    measured(
        "new",
        "reproduced",
        role="primary",
        quantile="0.98333",
        n_seeds="9",
        n_planned="9",
        paper="carma",
    ),
    measured(
        "small", "reproduced", role="primary", n_planned="5", reason="smaller than of interest"
    ),
    row(
        "lucky",
        "inconclusive",
        role="primary",
        effect="0.5",
        unit="share of seeds",
        n_seeds="8",
        n_planned="8",
    ),
    row("waits", "no verdict", role="primary", reason="4 of 6 seeds", n_seeds="4", n_planned="6"),
    measured("no-loss", "reproduced", relation="no_gain", at_least="2"),
    measured("open", "inconclusive"),
    measured("own", "not reproduced", kind="control"),
    row(
        "floor",
        "no verdict",
        reason="a control fails: the better side, 50.0, is not beyond 75.1 (d/Constant/J/m)",
    ),
    row("given", "no verdict", reason="says nothing while new is inconclusive"),
    row("absent", "not run", reason="not measured at small"),
]


@pytest.fixture
def printed(tmp_path, capsys):
    """The lines that are printed of some rows, without what fills the columns."""

    def lines(rows):
        with open(tmp_path / "claims.csv", "w", newline="") as stream:
            writer = csv.DictWriter(stream, CLAIM_COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        print_claims(tmp_path / "claims.csv", "small")
        return [re.sub(" +", " ", line).strip() for line in capsys.readouterr().out.splitlines()]

    return lines


def test_a_claim_alone_says_where_it_is_primary(tmp_path, capsys):
    """Plans name a scale: at others the same claim is exploratory."""
    rows = [row("comp-over-bert-bird"), row("comp-over-bert-paws")]
    rows.append(row("mix-over-bert-bird", role="primary"))
    write_csv(tmp_path / "claims.csv", CLAIM_COLUMNS, rows)
    print_claims_alone(tmp_path / "claims.csv", "demo", load_catalogue().papers)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cat/")]
    assert said == [
        "cat/comp-over-bert-bird at demo: exploratory claim, primary at small",
        "cat/comp-over-bert-paws at demo: exploratory claim",
        "cat/mix-over-bert-bird at demo: primary claim",
    ]


def test_primary_claims_come_first_each_verdict_has_its_scale_and_kinds_are_counted_apart(printed):
    assert printed(ROWS) == [
        "Primary claims at small: named in the analysis plans before their seeds were run",
        "claim effect (interval) claimed seeds verdict at small",
        "carma",
        "new +5.5 points (96.7%: 1.0 to 10.0) > 0 9 of 9 reproduced",
        "cat",
        "small +5.5 points (95%: 1.0 to 10.0) > 0 5 of 5 reproduced: smaller than of interest",
        "lucky +0.50 share of seeds > 0 8 of 8 inconclusive",
        "waits > 0 4 of 6 planned: 4 of 6 seeds run, no verdict yet",
        "",
        "Exploratory claims at small that are decided",
        "claim effect (interval) claimed seeds verdict at small",
        "cat",
        "no-loss +5.5 points (95%: 1.0 to 10.0) > −2 5 reproduced",
        "own (ours) +5.5 points (95%: 1.0 to 10.0) > 0 5 not reproduced",
        "",
        "Effects are in the claimed direction: a positive one is as the paper says (docs/results.md).",
        "",
        "1 primary claim of carma at small: 1 reproduced",
        "3 primary claims of cat at small: 1 reproduced, 1 inconclusive, 1 planned",
        "5 exploratory claims of the papers at small: 1 reproduced, 1 inconclusive, 2 no verdict, 1 not run",
        "1 control of ours at small: 1 not reproduced",
        "no verdict: a control fails (1); a gain that the claim supposes is not reproduced (1)",
        "planned: seeds of the analysis plan are still to be run, no verdict yet",
        "not run: small does not measure it, or its runs are not done yet",
    ]


def test_no_name_is_broken_where_there_is_room(printed):
    name = "a-claim-with-a-name-of-more-than-forty-letters"
    reason = "less than the margin of 8 and half of all that is said"
    lines = printed(
        [measured(name, "not reproduced", reason=reason, role="primary", n_planned="5")]
    )
    assert f"{name} +5.5 points (95%: 1.0 to 10.0) > 0 5 of 5 not reproduced:" in lines[3]


def test_nothing_is_said_of_what_there_is_not(printed):
    assert printed([row("open")]) == ["1 exploratory claim of the papers at small: 1 inconclusive"]


def test_reasons_are_counted_without_what_is_special_to_a_claim():
    assert (
        shorten_reason("a control is not measured: d/Constant/J/m") == "a control is not measured"
    )
    for reason in ("generated data", "5 of 6 seeds have a value"):
        assert shorten_reason(reason) == reason


def test_a_verdict_that_is_none_is_refused(printed):
    with pytest.raises(UserError, match=r"not a complete claims\.csv"):
        printed([row("open", "perhaps")])
