"""SQ-Transformer: displays and claims show what their names say, and printed numbers are in their
columns.
"""

import re
from functools import cache

import pytest

from tests.config.copies import ROOT
from tests.reporting.test_papers import printed_table
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.published_numbers import read_published

FOLDER = ROOT / "papers/sq_transformer"
JUMP, AROUND = "scan-jump-x2", "scan-around-right"
SCAN = (JUMP, AROUND)
# What the words of a column or panel say of its data, the first that occurs.
TASKS = {
    r"outside": {
        "JUMP outside": f"{JUMP}-clean",
        "AROUNDR outside": f"{AROUND}-clean",
        "COGS outside": "cogs-clean",
    },
    r"ADDJUMP x2|ADDJUMP 2x": JUMP,
    r"(\d+)x(?: primitives)?$": "scan-complexity-{}x",
    r"original primitives": "scan-complexity-1x",
    r"(?:n_a = |nₐ = |^)(10{,2})$": f"{JUMP}-na-{{}}",
    r"(?:n_a = |nₐ = |^)1000$": JUMP,
    r"JUMP|jump|^V-measure|^adjusted": JUMP,
    r"AROUNDR": AROUND,
    r"COGS": "cogs",
    r"CoGnition": "cognition",
    r"(En|De)-(En|De)": "wmt17-{}-{}",
    r"(En|Fr)-(En|Fr)": "wmt14-{}-{}",
}
# The data of displays whose columns and panels do not name them.
OF_DISPLAY = {
    "table2": "cognition",
    "table-cognition": "cognition",
    "text-c1": "cognition",
    "table6": "cognition",
}
OF_DISPLAY["table-compounds"] = "cognition-compounds"
OF_DISPLAY["table-compounds-odds"] = "cognition-compounds"
OF_DISPLAY |= {"table-cogs-types": "cogs", "table5": "cogs", "figure7": "cogs"}
OF_DISPLAY |= dict.fromkeys(
    ["table-codes", "table-variants", "figure3", "figure6", "figure-codes"], JUMP
)
PLAIN = ("transformer", "default")
ABLATIONS = {"VQ": "vq", "- SoVQ": "vq", "MMI": "mmi", "- Brown": "mmi"}
SAL = {"as the code": "sal", "words ask": "cross-query-word", "most of the text": "sal-as-written"}
SAL |= {"all of the text": "sal-text", "codes alone": "cross-query-systematic"}
OFFICIAL = {
    "SAL, official": "sal",
    "SAL, changed": "sal-entropy-3",
    "SQ-Transformer, H(Z) changed": "sal-entropy-3",
}
# Of SQ-Transformer, by rows that do not name it after its variant.
VARIANTS = {f"SQ-Transformer SAL, {name}": variant for name, variant in SAL.items()}
VARIANTS |= OFFICIAL | {f"SQ-Transformer {name}": variant for name, variant in OFFICIAL.items()}
VARIANTS |= {
    "SQ-Transformer SRL, all of the text": "srl-text",
    "w. SAL": "sal",
    "w. SRL": "srl",
    "None": "none",
    "Codes": "srl",
    "Codes of plain VQ": "srl-vq",
}
PLAIN_VARIANTS = dict.fromkeys(
    ["Transformer", "no quantisation", "Transformer, as the code"], "default"
)
PLAIN_VARIANTS["Transformer, as the text"] = "sinusoidal"
METRICS = {  # by what the name of a column holds, the first that it does; else exact match
    "CTER [Ii]nstance|CTER$": "cter_instance",
    "CTER [Aa]ggregate": "cter_aggregate",
    "zh": "bleu_zh",
    "-.. text": "bleu_detokenised",
    "-..$": "bleu_tokenised",
    "BLEU|^CoGnition$": "bleu_char",
    "structure": "structure_match",
}
SUBSETS = r"\b(?:NP|VP|PP)\b|\blexical\b|^structural$|^\w+_to_\w+$|^only_\w+$|^.p_recursion$"
# Of a table of several checkpoints of a run, by the end of a column's name; else the run's own is
# meant.
READINGS = {", chosen in distribution": "in_distribution", ", last": "last"}


@cache
def displays():
    return {
        name: display.make_json()
        for name, display in load_catalogue(ROOT).papers[FOLDER.name].displays.items()
    }


def task_of(display: str, name: str) -> str:
    """The data of a column, row or panel of this name."""
    if display in OF_DISPLAY:
        return OF_DISPLAY[display]
    for pattern, task in TASKS.items():
        if found := re.search(pattern, name):
            return (
                task[name]
                if isinstance(task, dict)
                else task.format(*map(str.lower, filter(None, found.groups())))
            )
    raise AssertionError(f"{display}: no data for {name}")


def codebooks_of(source: int, target: int, task: str) -> str:
    """The variant with these numbers of codes; the paper's choice is the one without a name."""
    if (source, target) == {JUMP: (6, 4), "cogs": (32, 16), "cognition": (64, 32)}[task]:
        return "sal" if task == JUMP else "srl"
    return f"target-codes-{target}" if task == JUMP else f"srl-codes-{source}-{target}"


def model_of(display: str, name: str, task: str) -> tuple[str, str]:
    """Method and variant of a row or panel of this name: SAL on SCAN and SRL elsewhere, if it does
    not say which.
    """
    if display == "table-long":
        method, variant = model_of("", name, task)
        return method, {"default": "long"}.get(variant, f"{variant}-long")
    if name in PLAIN_VARIANTS:
        return "transformer", PLAIN_VARIANTS[name]
    if name in VARIANTS:
        return "sq-transformer", VARIANTS[name]
    attention = "sal" if task.startswith("scan") and display != "text-5.3" else "srl"
    if sizes := re.fullmatch(r"(\d+) and (\d+) codes", name):
        return "sq-transformer", codebooks_of(int(sizes[1]), int(sizes[2]), task)
    if codes := re.fullmatch(r"(\d+) codes", name):
        return "sq-transformer", "sal" if codes[1] == "6" else f"codes-{codes[1]}"
    name = name.partition(",")[0]
    if name in ABLATIONS:
        return "sq-transformer", f"{attention}-{ABLATIONS[name]}"
    if name.split()[-1] in ("SAL", "SRL"):
        return "sq-transformer", name.split()[-1].lower()
    assert name in ("SQ-Transformer", "SoVQ"), name
    return "sq-transformer", attention


def test_a_column_is_of_the_data_and_the_metric_of_its_name():
    for name, display in displays().items():
        for column in display.get("columns", []):
            words = column["column"]
            assert column["task"] == task_of(name, words), (name, words)
            if "metric" not in column or "analysis" in column:
                continue
            readout = next(
                (reading for end, reading in READINGS.items() if words.endswith(end)), None
            )
            assert column.get("readout") == readout, (name, words)
            words = words.replace(", chosen in distribution", "")
            metric = next(
                (metric for kind, metric in METRICS.items() if re.search(kind, words)),
                "exact_match",
            )
            subset = re.search(SUBSETS, words)
            inside, cognition = "in distribution" in words, column["task"].startswith("cognition")
            split = (
                ("test" if cognition else "in_distribution")
                if inside
                else ("cg_test" if cognition else "test")
            )
            shown = column["metric"], column["subset"], column["split"]
            assert shown == (metric, subset[0] if subset else "all", split), (name, words)


AGREEMENTS = (("V-measure", "v_measure"), ("adjusted Rand", "adjusted_rand"))
# What columns of analyses show.
ANALYSED = {
    "text-5.3": {
        "CoGnition": "head_agreement_printed",
        "CoGnition one sequence": "printed_same_codes",
    },
    "text-c1": {
        "CoGnition": "pos_accuracy",
        "from nothing": "pos_accuracy_none",
        "from the word": "pos_accuracy_words",
    },
    "table-codes": {"codes against classes": "v_measure", "jump alone": "jump_alone"},
    "table-embeddings": {"COGS neighbours in the plane": "neighbours_same_class_tsne"},
    "table-clusters": {
        f"{of}{name}": metric for of in ("", "COGS ") for name, metric in AGREEMENTS
    },
}
ANALYSED["table-embeddings"] |= {f"{data} silhouette": "silhouette" for data in ("ADDJUMP", "COGS")}
ANALYSED["table-clusters"]["jump with verbs"] = "jump_with_verbs"


@pytest.mark.parametrize("display", ANALYSED)
def test_a_column_of_an_analysis_shows_what_its_name_says(display):
    found = {entry["column"]: entry.get("metric") for entry in displays()[display]["columns"]}
    assert found.items() >= ANALYSED[display].items()


def test_a_row_shows_the_model_of_its_name():
    for name, display in displays().items():
        tasks = {column["task"] for column in display.get("columns", []) if "task" in column}
        for row in display.get("rows", []):
            if "method" not in row or name == "text-fig8":
                assert (row.get("method", PLAIN[0]), row.get("variant", PLAIN[1])) == PLAIN
                continue
            variants = row["variant"]
            given = variants if isinstance(variants, dict) else dict.fromkeys(tasks, variants)
            assert given, (name, row["row"])
            for task, variant in given.items():
                assert (row["method"], variant) == model_of(name, row["row"], task), (
                    name,
                    row["row"],
                    task,
                )


def test_a_panel_shows_the_data_and_the_model_of_its_name():
    for name, display in displays().items():
        for run in display.get("runs", []):
            task = task_of(name, run["panel"])
            series = run.get("series", run["panel"])
            if name in ("figure1", "figure5", "figure8"):
                model = PLAIN
            else:
                model = model_of(name, "SoVQ" if name == "figure4" else series, task)
            assert (run["task"], run["method"], run["variant"]) == (task, *model), (
                name,
                run["panel"],
            )


@pytest.mark.parametrize("display", ["table1", "table2", "table3", "table4"])
def test_printed_numbers_stand_in_the_columns_of_the_paper(display, paper_texts):
    text = (paper_texts / "sq_transformer.txt").read_text(encoding="utf-8")
    published = read_published(FOLDER / "published.csv").items()
    by_place = {}
    for key, number in published:
        if key[0] == display:
            # The paper has one column for all BLEU; one number in it is of the zh tokeniser.
            by_place[key[1], key[2].removesuffix(" (zh)")] = number.printed
    shown = displays()[display]
    columns = [
        column["column"]
        for column in shown["columns"]
        if column["column"] in {key[1] for key in by_place}
    ]
    rows = [row["row"] for row in shown["rows"] if row["row"] in {key[0] for key in by_place}]
    found = [[by_place.get((row, column), "-") for column in columns] for row in rows]
    lines = printed_table(text, FOLDER, display)
    printed = [
        [re.sub(r"<sup>.*?</sup>|<[^>]*>|\*", "", cell).strip() for cell in row] for row in lines
    ]
    assert found == [row for row in printed if any(row)]


def claims(folder):
    return load_catalogue(ROOT).papers[folder.name].claims


def borne_out(claim, published) -> bool | None:
    """Whether printed numbers fulfil a claim; None where one of its sides is not printed."""
    given = (claim.left, claim.right)
    sides = [
        side if isinstance(side, float) else published.get(tuple(side.split("/"))) for side in given
    ]
    values = [side if isinstance(side, float | None) else side.value for side in sides]
    if None in values or claim.relation == "falls_with":
        return None
    gain = (values[0] - values[1]) * (-1 if claim.relation == "less" else 1)
    return gain <= -claim.margin if claim.relation == "no_gain" else gain > claim.margin


def test_the_papers_own_numbers_support_its_claims():
    published = read_published(FOLDER / "published.csv")
    found = {claim.claim: borne_out(claim, published) for claim in claims(FOLDER)}
    assert False not in found.values(), found
    assert sum(outcome is True for outcome in found.values()) == 22, found


# What is on a side of a claim, by the words of its name: `<left>-over-<right>-<data>`.
LEFT = {
    "sq": "SQ-Transformer( SRL)?",
    "sal": "w. SAL",
    "srl": "w. SRL|SQ-Transformer",
    "sovq": "w. S[AR]L",
    "brown": "w. S[AR]L",
}
LEFT |= {"codes": "Codes", "clusters": "SoVQ", "embeddings": "SoVQ", "neighbours": "SoVQ"}
RIGHT = {
    "transformer": "Transformer",
    "sal": "w. SAL",
    "srl": "w. SRL",
    "vq": "- SoVQ|VQ|Codes of plain VQ",
}
RIGHT |= {"mmi": "- Brown", "ordinary": "None"}
LOWER_IS_BETTER = ("cter_instance", "cter_aggregate", "attention_kl")


def test_a_claim_compares_what_its_name_says():
    named = 0
    for claim in claims(FOLDER):
        left, right = (side.split("/") for side in (claim.left, claim.right))
        if found := re.fullmatch(r"(\w+)-over-([a-z]+).*", claim.claim):
            named += 1
            assert re.fullmatch(LEFT[found[1]], left[1]) and re.fullmatch(
                RIGHT[found[2]], right[1]
            ), claim.claim
            assert left[0] == right[0] and left[2:] == right[2:], claim.claim
            assert claim.relation == ("less" if left[-1] in LOWER_IS_BETTER else "greater"), (
                claim.claim
            )
        elif claim.claim.startswith("no-gain"):
            assert (left[1], right[1]) == ("SQ-Transformer SRL", "Transformer") and left[
                2:
            ] == right[2:], claim.claim
            assert claim.relation == "no_gain", claim.claim
    assert named == 27
