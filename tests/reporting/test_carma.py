"""CARMA: tables and claims measure what their names and statements say; printed numbers are in
their columns.
"""

import re
from collections import Counter
from functools import cache
from itertools import product

import pytest

from tests.config.copies import ROOT
from tests.config.filled import resolve_run
from workflow_scripts.common.run_names import name_weights
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.published_numbers import read_published

FOLDER = ROOT / "papers/carma"
MODELS = {
    "GPT2-S": "gpt2-small",
    "GPT2-L": "gpt2-large",
    "Gemma-2B": "gemma",
    "Llama-1B": "llama-small",
}
MODELS |= {"Llama-3B": "llama-large", "Qwen-0.5B": "qwen-small", "Qwen-3B": "qwen-large"}
METHODS = MODELS | {"GPT2-S fine tokens": "gpt2-small-fine"}
VARIANTS = {"CARMA": "carma", "FT": "ft", "Org": "ft@start"}
SIX = ("GPT2-S", "Gemma-2B", "Llama-1B", "Llama-3B", "Qwen-0.5B", "Qwen-3B")
# Depths of CAP by what columns call them: block 1 is the first that is pooled.
DEPTHS = {"first": 1, "1%": 1, "25%": "25%", "middle": "50%", "last": "100%"}
POOLED = ("table-cap", "table-item-sets", "text-5.1")
DISPLAYS = [
    "table1",
    "table4",
    "table5",
    "table-cv",
    "table-accuracy",
    "table-synonyms",
    "table-gains",
    "table-common",
]
DISPLAYS += ["table-cv-common", "text-5.2", "text-5.3", *POOLED]


@cache
def displays():
    return {
        name: display.make_json()
        for name, display in load_catalogue(ROOT).papers[FOLDER.name].displays.items()
    }


def selected(display: str, column: str) -> dict:
    """What a column of this name shows."""
    words = column.replace(",", "").split()
    wanted = {
        "task": "sst" if "SC" in words or display == "table5" else "idm",
        "split": "test",
        "subset": "all",
    }
    if "CAP" in words or display in POOLED:
        depth = next((DEPTHS[word] for word in words if word in DEPTHS), 1)
        wanted |= {
            "intervention": "cap",
            "layer": depth,
            "metric": "exact_match",
            "item_set": "own_correct",
        }
    elif {"25%", "40%", "CS", "CV"} & {*words}:
        kinds = {
            "CV": "cv",
            "from": "cv_low",
            "to": "cv_high",
            "noise": "cv_noise",
            "replaced": "realised_rate",
        }
        metric = next((kinds[word] for word in words if word in kinds), "consistency")
        wanted |= {
            "intervention": "synonyms",
            "rate": 0.4 if "40%" in words else 0.25,
            "metric": metric,
        }
        wanted["item_set"] = "all" if metric == "realised_rate" else "own_correct"
    elif "items" in words:
        wanted |= {"metric": "items", "readout": "vocabulary"}
    else:
        wanted["metric"] = "constrained" if "labels" in words else "exact_match"
    if "common" in words or display in ("table-common", "table-cv-common"):
        wanted |= {"item_set": "common_correct", "analysis": "item-sets"}
    if "all" in words:
        wanted["item_set"] = "all"
    if "over" in words:
        wanted["over"] = {"Original": "ft@start", "FT": "ft"}[words[-1]]
    elif display in ("table-gains", "text-5.1") or "NI" in words:
        wanted["over"] = "ft"
    if "NI" in words or ("over" in words and display != "text-5.1"):
        wanted["relative"] = True
    return wanted


@pytest.mark.parametrize("display", [*DISPLAYS, "table-parts"])
def test_a_column_shows_what_its_name_says(display):
    for column in displays()[display]["columns"]:
        shown = {
            name: value
            for name, value in column.items()
            if name not in ("column", "group", "unit", "decimals")
        }
        assert shown == selected(display, column["column"]), column["column"]


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_row_shows_the_model_and_version_of_its_name(display):
    for row in displays()[display]["rows"]:
        if "analysis" in row:  # of no model
            assert row["row"] in ("constant answer", "best constant answer")
            continue
        model, _, version = row["row"].rpartition(" ")
        if version not in VARIANTS:
            model, version = row["row"], "CARMA"
        assert name_weights(row["variant"], row.get("weights")) == VARIANTS[version]
        assert row.keys() <= {"row", "method", "variant", "weights"}
        assert row["method"] == METHODS[model]


@pytest.mark.parametrize(
    "display", ["figure2a", "figure2b", "figure3", "figure4", "figure6", "figure7"]
)
def test_a_series_is_of_the_model_and_version_of_its_name(display):
    entry = displays()[display]
    task, intervention = (
        entry["title"].rpartition(", ")[2],
        {"intervention": "cap"} if "CAP" in entry["title"] else {},
    )
    for run in entry["runs"]:
        names = {"panel": run["panel"], "series": run["series"]}
        variant = {"Original": "ft@start"}.get(run["series"]) or VARIANTS[run["series"]]
        model = {
            "task": {"IDM": "idm", "SC": "sst"}[task],
            "method": METHODS[run["panel"]],
            "variant": variant,
        }
        assert run == names | model | intervention
    if not intervention:
        assert [panel["metric"] for panel in entry["options"]["panels"]] == ["exact_match"]


def objective(variant: str) -> dict:
    return resolve_run(load_catalogue(ROOT), f"idm/gpt2-small/{variant}/seed-42", "full")[
        "objective"
    ]


def test_a_row_of_the_parts_has_the_settings_of_its_name():
    whole = objective("carma")
    changes = {"FT": {"weight": 0.0}, "CARMA": {}}
    changes |= {
        "MI alone": {"mi": 1.0, "stability": 0.0},
        "stability alone": {"mi": 0.0, "stability": 1.0},
    }
    for row in displays()["table-parts"]["rows"]:
        name = row["row"]
        if name.startswith("λ"):
            change = {"weight": float(name.removeprefix("λ = "))}
        elif gamma_eta := re.fullmatch(r"γ = (.+), η = (.+)", name):
            change = {"mi": float(gamma_eta[1]), "stability": float(gamma_eta[2])}
        elif name.endswith("third"):
            change = {"third": name.removesuffix(" third")}
        else:
            change = changes[name]
        assert objective(row["variant"]) == whole | change, name


def test_a_row_of_the_readings_has_the_settings_of_its_name():
    whole = objective("carma")
    equations = {"positives": "logsum", "negatives": 0, "stability_pairs": "paper"}
    assert objective("paper-equations") == whole | equations
    official = {"spans": "batch", "padding": True, "bos": True}
    assert objective("official-spans") == whole | official
    variants = {"FT": "ft", "CARMA": "carma", "equations": "paper-equations"}
    variants |= {"spans": "official-spans", "space": "label-space"}
    rows = displays()["table-readings"]["rows"]
    assert len(rows) == 2 * 7 * 3 + 4
    for row in rows:
        name = row["row"].replace("by word", "", 1).split()
        task = "idm-by-word" if "by word" in row["row"] else {"IDM": "idm", "SC": "sst"}[name[0]]
        shown = (row["task"], row["method"], row["variant"])
        assert shown == (task, METHODS[name[1]], variants[name[-1]])
    catalogue = load_catalogue(ROOT)
    spaced = resolve_run(catalogue, "sst/llama-small/label-space/seed-42", "full")
    plain = resolve_run(catalogue, "sst/llama-small/ft/seed-42", "full")
    assert spaced["model"] == plain["model"] | {"label_space": True}


def test_the_equations_have_the_layers_of_the_paper_for_every_model_and_task():
    """Appendix B.3: the ending layers, of Llama-3B on IDM 8 for stability and 12 for MI."""
    idm = {"GPT2-S": 3, "GPT2-L": 8, "Gemma-2B": 10, "Llama-1B": 7, "Qwen-0.5B": 5, "Qwen-3B": 10}
    sst = {"GPT2-S": 4, "GPT2-L": 12, "Gemma-2B": 10, "Llama-1B": 7, "Llama-3B": 8}
    sst |= {"Qwen-0.5B": 5, "Qwen-3B": 7}
    printed = {("idm", model): (last, last) for model, last in idm.items()}
    printed |= {("sst", model): (last, last) for model, last in sst.items()}
    printed["idm", "Llama-3B"] = (12, 8)
    for (task, model), blocks in printed.items():
        run = f"{task}/{MODELS[model]}/paper-equations/seed-42"
        found = resolve_run(load_catalogue(ROOT), run, "full")["objective"]
        assert (found["last_block_mi"], found["last_block_stability"]) == blocks, run
        assert found["first_block"] == 0


TASKS, RATES = {"IDM": "idm", "SC": "sst", "all": "all"}, {"25%": 0.25, "40%": 0.4}
METRICS = {"seeds": "sd_training_seeds", "draws": "sd_draws"}


def test_tables_of_the_audit_and_of_the_variances_show_what_their_names_say():
    displays_of_ours = load_catalogue(ROOT).papers["recompose"].displays
    shown = {name: display.make_json() for name, display in displays_of_ours.items()}
    for row in shown["table-audit"]["rows"]:
        task, _, rate = row["row"].partition(" ")
        where = {"rate": RATES[rate]} if rate else {"subset": "all"}
        assert row == {"row": row["row"], "task": TASKS[task]} | where
    for column in shown["table-variance"]["columns"]:
        task, rate, kind = column["column"].replace(",", "").split()
        wanted = {"group": task, "task": TASKS[task], "rate": RATES[rate], "metric": METRICS[kind]}
        assert column.items() >= wanted.items()
    for row in shown["table-variance"]["rows"]:
        model, _, version = row["row"].rpartition(" ")
        assert row["subset"] == f"{METHODS[model]} {VARIANTS[version]}"


@pytest.mark.parametrize(
    ("paper", "analysis"), [("carma", "item-sets"), ("recompose", "variance-carma")]
)
def test_analyses_of_answers_are_over_both_tasks_and_versions_of_the_papers_models(paper, analysis):
    entry = load_catalogue(ROOT).papers[paper].analyses[analysis]
    found = Counter((run.task, run.method, run.variant, run.intervention) for run in entry.runs)
    assert found == Counter(
        product(("idm", "sst"), MODELS.values(), ("ft", "carma"), ("synonyms",))
    )


# Statement, and below it relation, least effect, and the cells: <left|right>.
CLAIMS = """
CARMA is more accurate than fine-tuning alone on {task}, {model}
    greater 0: table-accuracy/<{model} CARMA|{model} FT>/{task}/exact_match
CARMA loses no accuracy against fine-tuning alone on {task}, {model}
    no_gain 2: table-accuracy/<{model} FT|{model} CARMA>/{task}, vocabulary/exact_match
CARMA keeps as many right answers under synonyms as fine-tuning alone, {task}, {model}
    no_gain 2: {table}/<{model} FT|{model} CARMA>/25% CS/consistency
CARMA varies less over draws of synonyms than fine-tuning alone, {task}, {model}
    less 0: {table}/<{model} CARMA|{model} FT>/25% CV/cv
CARMA varies less over draws of synonyms for 40% of the words than fine-tuning alone, {task}, {model}
    less 0: {table}/<{model} CARMA|{model} FT>/40% CV/cv
CARMA falls further behind fine-tuning alone in ConsistSyn with 40% of the words than with 25%, {task}, {model}
    greater 0: table-gains/{model}/<{task} CS|{task} CS 40%>/consistency
Under CAP at the first block CARMA beats fine-tuning alone on {task} considerably, {model}
    greater 1.8: table-cap/<{model} CARMA|{model} FT>/{task} first/exact_match
Under CAP at the first block CARMA beats fine-tuning alone on {task}, {model}
    greater 0: table-cap/<{model} CARMA|{model} FT>/{task} first/exact_match
On items that both had right, CARMA beats fine-tuning alone under CAP at the first block, {task}, {model}
    greater 0: table-item-sets/<{model} CARMA|{model} FT>/{task}, common/exact_match
Under CAP at a quarter of the depth CARMA beats fine-tuning alone on {task} by far, {model}
    greater 5: table-cap/<{model} CARMA|{model} FT>/{task} 25%/exact_match
Under CAP at a quarter of the depth CARMA gains little over fine-tuning alone on {task}, {model}
    no_gain 2: table-cap/<{model} CARMA|{model} FT>/{task} 25%/exact_match
CARMA gains more under CAP at the first block than at the last, {task}, {model}
    greater 1: table-gains/{model}/{task} CAP, <first|last>/exact_match
{model} gains more accuracy from CARMA than {other} on {task}
    greater 0: table-gains/<{model}|{other}>/{task} accuracy/exact_match
Under CAP at the first block {model} gains little from CARMA, {task}
    no_gain 2: table-cap/<{model} CARMA|{model} FT>/{task} first/exact_match
Under CAP at the first block {model} gains no more from CARMA than {other}, {task}
    no_gain 0: table-gains/<{model}|{other}>/{task} CAP, first/exact_match
With finer tokens CARMA gains more under CAP at the first block, {task}, {model}
    greater 0: table-gains/<{model} fine tokens|{model}>/{task} CAP, first/exact_match
With finer tokens CARMA gains more accuracy, {task}, {model}
    greater 0: table-gains/<{model} fine tokens|{model}>/{task} accuracy/exact_match
"""

MEAN = "mean over six models"


def test_a_claim_compares_what_its_statement_says():
    groups = {
        "{model}": rf"(?P<model>[\w.-]+B|GPT2-[SL]|{MEAN})",
        "{other}": r"(?P<other>[\w.-]+)",
        "{task}": "(?P<task>IDM|SC)",
    }
    patterns = [
        (
            re.sub(r"{\w+}", lambda found: groups[found[0]], text),
            asked,
            (before + left + after, before + right + after),
        )
        for text, asked, before, left, right, after in re.findall(
            r"^(\S.*)\n +(.*): (.*)<(.*)\|(.*)>(.*)$", CLAIMS, re.M
        )
    ]
    for claim in load_catalogue(ROOT).papers[FOLDER.name].claims:
        if claim.claim == "cv-six" or claim.claim.endswith("-smollm"):  # the next tests
            continue
        ((names, asked, sides),) = (
            (found.groupdict(), asked, sides)
            for pattern, asked, sides in patterns
            if (found := re.fullmatch(pattern, claim.statement))
        )
        names["table"] = {"IDM": "table4", "SC": "table5"}[names["task"]]
        assert f"{claim.relation} {abs(claim.margin):g}" == asked, claim.claim
        for stated, side in zip((claim.left, claim.right), sides, strict=True):
            if names["model"] == MEAN:
                assert stated == [side.format(**names | {"model": model}) for model in SIX], (
                    claim.claim
                )
            else:
                assert stated == side.format(**names), claim.claim


def test_the_claims_on_smollm_compare_its_two_trainings():
    claims = load_catalogue(ROOT).papers[FOLDER.name].claims
    found = {claim.claim: claim for claim in claims if claim.claim.endswith("-smollm")}
    no_loss, gain = (
        ("no_gain", "difference", 2, "FT", "CARMA"),
        ("greater", "log_odds", 0, "CARMA", "FT"),
    )
    wanted = {
        "accuracy": (no_loss, "SC, vocabulary/exact_match"),
        "consistency": (no_loss, "25% CS/consistency"),
    }
    for depth in ("first", "quarter"):
        wanted[f"cap-{depth}"] = (gain, f"CAP, {depth}/exact_match")
        wanted[f"cap-{depth}-common"] = wanted[f"cap-{depth}"]
        wanted[f"cap-{depth}-all"] = (gain, f"CAP, {depth}, all/exact_match")
    assert found.keys() == {f"{name}-sst-smollm" for name in wanted}
    for name, ((relation, measure, at_least, left, right), column) in wanted.items():
        claim = found[f"{name}-sst-smollm"]
        is_control = name.endswith(("-common", "-all"))
        table = "table-smollm-common" if name.endswith("-common") else "table-smollm"
        assert (claim.relation, claim.measure, abs(claim.margin)) == (relation, measure, at_least)
        assert (claim.left, claim.right) == (
            f"{table}/{left}/{column}",
            f"{table}/{right}/{column}",
        )
        assert (claim.kind == "control") == is_control
        assert claim.statement.endswith(", SmolLM2-135M")
    for table in ("table-smollm", "table-smollm-common"):
        cells = {cell["column"]: cell for cell in displays()[table]["columns"]}
        # A quarter of its depth: block 7 of 0 to 29.
        assert (cells["CAP, first"]["layer"], cells["CAP, quarter"]["layer"]) == (1, round(29 / 4))
        assert {cell["task"] for cell in cells.values()} == {"sst"}


def test_the_claim_on_cv_compares_the_same_items_of_six_models_two_tasks_and_two_rates():
    claim = load_catalogue(ROOT).papers[FOLDER.name].claims_by_name["cv-six"]
    assert (claim.relation, claim.measure, claim.margin) == ("less", "log_ratio", 0)
    places = {
        f"{model} {{}}/{task} {rate} CV/cv"
        for model in SIX
        for task in ("IDM", "SC")
        for rate in ("25%", "40%")
    }
    wanted = {
        tuple(f"table-cv-common/{place.format(version)}" for version in ("CARMA", "FT"))
        for place in places
    }
    assert len(claim.left) == 24 and set(zip(claim.left, claim.right, strict=True)) == wanted


@pytest.mark.parametrize("display", ["table1", "table4", "table5"])
def test_the_two_numbers_of_a_printed_line_stand_side_by_side(display, paper_texts):
    """A line has version, task, rate, ConsistSyn and CV; that it is the model's, another test says."""
    text = re.sub(r"</?b>", "", (paper_texts / "carma.txt").read_text(encoding="utf-8"))
    lines = re.findall(
        r"^[^\t\n]*\t(CARMA|FT|Org)\t(IDM|SC)\t(\d+%)\t([\d.]+)\t([\d.]+)$", text, re.MULTILINE
    )
    published = read_published(FOLDER / "published.csv").items()
    cells = {key[1:]: number.printed for key, number in published if key[0] == display}
    found = Counter()
    for (row, column, metric), printed in cells.items():
        if metric == "consistency":
            task, rate = {"table4": "IDM", "table5": "SC"}.get(display), column[:3]
            if display == "table1":
                task, rate = column.split()[0], "25%"
            cv = cells[row, column.replace("CS", "CV"), "cv"]
            found[row.split()[-1], task, rate, printed, cv] += 1
    assert found and found <= Counter(lines)
