"""LRF: displays and claims show what their names say; numbers of other publications agree with each
other.
"""

import re
from functools import cache
from itertools import product
from statistics import mean

import pytest

from tests.config.copies import ROOT
from tests.reporting.test_sq_transformer import borne_out, claims
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.published_numbers import read_published

FOLDER = ROOT / "papers/lrf"
VARIANTS = {
    "Transformer": "plain",
    "Transformer, matched": "matched",
    "LRF": "default",
    "one head": "heads-1",
}
VARIANTS |= {
    "layer before alone": "previous",
    "mean of earlier layers": "uniform",
    "8 heads": "heads-8",
}
VARIANTS |= {
    "encoder alone": "encoder",
    "decoder alone": "decoder",
    "no residual and norm": "no-residual",
}
VARIANTS |= {
    "shared by all layers": "shared",
    "current layer too": "with-current",
    "output starts at zero": "zero-init",
}
VARIANTS |= {"relative positions": "relative", "relative positions, matched": "relative-matched"}
ROBERTA = {
    "": "plain",
    "LRF": "lrf",
    "LRF in the encoder": "encoder",
    "LRF in the decoder": "decoder",
}
ROBERTA |= {"layer before alone": "previous"}
TASKS = {
    "CoGnition": "cognition",
    "COGS": "cogs",
    "JUMP": "scan-jump-x2",
    "AROUNDR": "scan-around-right",
}
OF_DISPLAY = {
    "table-cognition": "cognition",
    "table-phrases": "cognition",
    "table-seeds": "cognition",
}
OF_DISPLAY |= {
    "text-1": "cognition",
    "table-cogs": "cogs",
    "table-compounds": "cognition-compounds",
}
OF_DISPLAY["table-compounds-odds"] = "cognition-compounds"


@cache
def displays():
    return {
        name: display.make_json()
        for name, display in load_catalogue(ROOT).papers[FOLDER.name].displays.items()
    }


@cache
def published():
    return read_published(FOLDER / "published.csv")


def model_of(name: str) -> tuple[str, str]:
    """Method and variant of a row of this name."""
    if name.startswith("RoBERTa"):
        return "roberta", ROBERTA[name.removeprefix("RoBERTa").removeprefix(", ")]
    if name == "SQ-Transformer SRL":
        return "sq-transformer", "srl"
    return "lrf", VARIANTS[name.removeprefix("LRF, ")]


def test_a_row_shows_the_model_of_its_name():
    for display, entry in displays().items():
        for row in entry.get("rows", []):
            if "method" in row:
                given = (
                    row["variant"].values()
                    if isinstance(row["variant"], dict)
                    else [row["variant"]]
                )
                assert {(row["method"], variant) for variant in given} == {model_of(row["row"])}, (
                    display,
                    row["row"],
                )


def test_means_over_the_splits_of_cfq_are_of_the_models_of_their_rows():
    analysis = load_catalogue(ROOT).papers[FOLDER.name].analyses["cfq-means"]
    assert all((run.method, run.variant) == model_of(run.series) for run in analysis.runs)
    for name, scores in analysis.options["means"].items():
        kind = "-official" if name.endswith("official") else ""
        assert [score["task"] for score in scores] == [
            f"cfq-mcd{number}{kind}" for number in (1, 2, 3)
        ]
        places = {(score["split"], score["subset"], score["metric"]) for score in scores}
        assert places == {("test", "all", "exact_match")}


# what an interval is over, and how its metric says it
OVER = {
    "seeds and compounds": "both",
    "seeds": "seeds",
}


def test_a_column_shows_what_its_name_says():
    kinds = {"[Ii]nstance": "cter_instance", "[Aa]ggregate": "cter_aggregate", "BLEU zh": "bleu_zh"}
    kinds |= {
        "BLEU char": "bleu_char",
        "[Ss]tructure": "structure_match",
        "undecided": "fusion_entropy",
    }
    kinds |= {
        f"over {over}, {end}": f"log_odds_{end}_{short}"
        for over, short in OVER.items()
        for end in ("low", "high")
    }
    kinds |= {"log odds ratio": "log_odds"}
    kinds |= {"layers|(en|de)coder": "fused_layers", "mean": "mean"}
    for display, entry in displays().items():
        for column in entry.get("columns", []):
            if "task" not in column:
                continue
            name, where = column["column"], (display, column["column"])
            if found := re.match(r"(MCD[123]|mean)( official)?$", name):
                wanted = f"cfq-{found[1].lower().replace('mean', 'mcd1')}{(found[2] or '').replace(' ', '-')}"
            else:
                data = column.get("group") if name.startswith("CTER") else name.split()[0]
                wanted = OF_DISPLAY.get(display) or TASKS[data]
            assert column["task"] == wanted, where
            assert column["metric"] == next(
                (m for k, m in kinds.items() if re.search(k, name)), "exact_match"
            ), where
            subsets = {
                word for word in name.split() if word in ("NP", "VP", "PP", "lexical", "structural")
            }
            if "fused" in column["metric"]:
                subsets = {word for word in name.split() if word in ("encoder", "decoder")}
            assert {column.get("subset", "all")} == (subsets or {"all"}), where
            if "analysis" not in column:
                translated = column["task"].startswith("cognition")
                inside, outside = ("test", "cg_test") if translated else ("in_distribution", "test")
                assert column["split"] == (inside if "in distribution" in name else outside), where


def values(display: str, row: str) -> dict[str, float]:
    return {
        key[2]: number.value for key, number in published().items() if key[:2] == (display, row)
    }


SEEDS = [f"seed {'7' * count or 1}" for count in range(6)]
BY_PHRASE = [
    f"{phrase} {kind}" for phrase in ("NP", "VP", "PP") for kind in ("instance", "aggregate")
]


def test_the_transformer_of_cognitions_authors_is_the_mean_of_its_seeds_and_of_three_types_of_compounds():
    """As many sentences, and compounds, are of each type."""
    seeds = [values("table-seeds", seed) for seed in SEEDS]
    printed = values("table-cognition", "Transformer") | values("table-phrases", "Transformer")
    for found, kind in product([*seeds, printed], ("instance", "aggregate")):
        types = mean(found[f"{phrase} {kind}"] for phrase in ("NP", "VP", "PP"))
        assert found[f"CTER {kind}"] == pytest.approx(types, abs=0.03)
    for column in (*BY_PHRASE, "CTER instance", "CTER aggregate", "BLEU zh"):
        assert printed[column] == pytest.approx(mean(seed[column] for seed in seeds), abs=0.06), (
            column
        )


def test_printed_means_of_cfq_are_those_of_the_three_splits():
    for row in {key[1] for key in published() if key[0] == "table-cfq"}:
        found = values("table-cfq", row)
        kind = " official" if "mean official" in found else ""
        splits = mean(found[f"MCD{number}{kind}"] for number in (1, 2, 3))
        assert len(found) == 4 and found[f"mean{kind}"] == pytest.approx(splits, abs=0.1), row
        # In every publication MCD1 is the easiest.
        assert found[f"MCD1{kind}"] == max(found.values())


def test_the_introductions_improvements_are_those_over_the_transformer():
    """Lower by about 30% and 20%."""
    ours, theirs = values("text-1", "LRF"), values("table-cognition", "Transformer")
    for kind in ("instance", "aggregate"):
        less = 100 * (1 - ours[f"CTER {kind}"] / theirs[f"CTER {kind}"])
        assert ours[f"less by {kind}"] == pytest.approx(less, abs=0.5)


def test_printed_numbers_bear_the_claims_out():
    found = {claim.claim: borne_out(claim, published()) for claim in claims(FOLDER)}
    decided = {name: outcome for name, outcome in found.items() if outcome is not None}
    assert decided == {
        f"lrf-over-transformer-cter-{kind}": True for kind in ("instance", "aggregate")
    }


RIGHT = {"matched": "Transformer, matched", "transformer": "Transformer", "roberta": "RoBERTa"}


def test_a_claim_compares_what_its_name_says():
    for claim in claims(FOLDER):
        left = claim.left.split("/")
        lower = left[-1].startswith("cter")
        if found := re.match("lrf-over-([a-z]+)-", claim.claim):
            right = claim.right.split("/")
            assert (left[1], right[1]) == (
                "RoBERTa, LRF" if found[1] == "roberta" else "LRF",
                RIGHT[found[1]],
            )
            assert (left[0], left[2:]) == (right[0], right[2:]) and claim.relation == (
                "less" if lower else "greater"
            )
        elif claim.claim.startswith("no-gain"):
            # The gain is that of fewer errors, or of more right outputs.
            sides = ["LRF, layer before alone", "Transformer, matched"]
            right = claim.right.split("/")
            assert [left[1], right[1]] == (sides[::-1] if lower else sides) and left[2:] == right[
                2:
            ]
            assert claim.relation == "no_gain" and claim.given
        else:
            assert claim.claim.startswith("fusion-not-collapsed") and (left[1], claim.right) == (
                "LRF",
                1,
            )
            assert (left[-1], claim.relation) == ("fused_layers", "greater")
