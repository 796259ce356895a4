"""Recompute each primary claim from the committed scores: python tests/recompute_verdicts.py
[results/reference/small].

Nothing is imported from workflow_scripts, and CLAIMS was written by reading claims.yaml and
displays.yaml. A new plan needs lines there, too.
"""

import csv
import json
import subprocess
import sys
from collections import defaultdict
from datetime import datetime
from itertools import product
from math import inf, nan
from pathlib import Path

import numpy as np
import yaml
from scipy import special, stats

ROOT = Path(__file__).resolve().parents[1]
# Claim | measure, paired if both sides start from the same weights | columns of scores.csv or
# analyses.csv of both | of the side said to be higher (right of error rates and "no loss") | of the
# other | of cells that the plan requires
CLAIMS = """
accuracy-idm-six | paired difference | six task=idm metric=exact_match | variant=carma | variant=ft
accuracy-sst-six | paired difference | six task=sst metric=exact_match | variant=carma | variant=ft
cap-first-sst-six | paired difference | six cap item_set=own_correct | variant=carma | variant=ft
cap-first-common-sst-six | paired difference | six cap common | variant=carma | variant=ft
cv-six | paired log_ratio | six cv common | variant=ft | variant=carma
comp-over-bert-bird | difference | bird | method=cat variant=comp@paws readout=comp | bert variant=ft@paws
mix-over-bert-bird | difference | bird | method=cat variant=mix@paws readout=mix | bert variant=ft@paws
minimal-impact-sst2 | difference | task=sst2 metric=accuracy | method=cat variant=mix readout=mix | bert variant=ft
lrf-over-transformer-cter-instance | difference | cter method=lrf | variant=plain | variant=default | bleu lrf
lrf-over-matched-cter-instance | difference | cter method=lrf | variant=matched | variant=default | bleu lrf
sq-over-transformer-cter-instance | difference | cter | plain | method=sq-transformer variant=srl | bleu
sal-success-addjump | success_rate | jump | sal | plain
sal-success-aroundright | success_rate | around | sal | plain
sal-above-transformer-addjump | superiority | jump | sal-long | long | jump split=in_distribution
sal-above-transformer-aroundright | superiority | around | sal-long | long | around split=in_distribution
lrf-over-transformer-compounds | log_odds | new method=lrf | variant=plain | variant=default | new-bleu method=lrf
lrf-over-matched-compounds | log_odds | new method=lrf | variant=matched | variant=default | new-bleu method=lrf
srl-over-transformer-compounds | log_odds | new | plain | method=sq-transformer variant=srl | new-bleu
accuracy-sst-smollm | paired difference | smollm metric=exact_match | variant=carma | variant=ft | smollm metric=exact_match
cap-quarter-sst-smollm | paired log_odds | smollm quarter item_set=own_correct | variant=carma | variant=ft | smollm metric=exact_match
cap-quarter-common-sst-smollm | paired log_odds | smollm quarter smollm-common | variant=carma | variant=ft
"""
CLAIMS = {
    name: columns for name, *columns in (line.split(" | ") for line in CLAIMS.strip().splitlines())
}
# A comma parts cells, a slash what a cell is the mean of. Columns that are not named are empty.
SHORT = {
    "six": "method=gpt2-small,gemma,llama-small,llama-large,qwen-small,qwen-large readout=vocabulary",
    "cap": "task=sst metric=exact_match intervention=cap layer=1 pooling=max/mean/sum",
    "cv": "task=idm,sst metric=cv intervention=synonyms rate=0.25,0.4",
    "common": "paper=carma analysis=item-sets item_set=common_correct",
    "bird": "task=bird metric=pearson",
    "bert": "method=bert readout=last",
    "cter": "task=cognition split=cg_test metric=cter_instance",
    "bleu": "task=cognition split=test metric=bleu_zh",
    "new": "task=cognition-compounds split=cg_test metric=cter_instance",
    "new-bleu": "task=cognition-compounds split=test metric=bleu_zh",
    "lrf": "method=lrf variant=default,plain,matched",
    "jump": "task=scan-jump-x2 metric=exact_match readout=last",
    "around": "task=scan-around-right metric=exact_match readout=last",
    "sal": "method=sq-transformer variant=sal-entropy-3",
    "sal-long": "method=sq-transformer variant=sal-entropy-3-long",
    "plain": "method=transformer variant=default",
    "long": "method=transformer variant=long",
    "smollm": "task=sst method=smollm readout=vocabulary",
    "quarter": "metric=exact_match intervention=cap layer=7 pooling=max/mean/sum",
    "smollm-common": "paper=carma analysis=item-sets-smollm item_set=common_correct",
}
COLUMNS = [
    "task",
    "method",
    "variant",
    "metric",
    "split",
    "subset",
    "paper",
    "analysis",
    "intervention",
    "layer",
]
COLUMNS += ["pooling", "rate", "intervention_seed", "item_set", "readout"]
# Of these claims the runs with a text in their names were on a CPU, and all others on a GPU; the
# reason is reported.
ON_CPU = {
    "sal-success-addjump": ("/seed-101", "seed 101 of both sides: the first run of a seed counts"),
    "sal-success-aroundright": (
        "scan-around-right/transformer/",
        "all of the Transformer, none of SAL, as the claim's caveat says",
    ),
}


def read(file):
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def gather(name, scores, seeds):
    """Of a claim: its two sides and the required cells, all cells x seeds; its runs; all seeds that
    are there.
    """
    _, both, high, low, *required = CLAIMS[name]
    parts, runs, there = [], set(), set()
    for text in (
        f"{both} {high}",
        f"{both} {low}",
        *(f"{side} {cells}" for cells in required for side in (high, low)),
    ):
        words = " ".join(
            SHORT.get(word, word) for word in ["split=test", "subset=all", *text.split()]
        )
        named, cells = dict(word.split("=") for word in words.split()), []
        for values in product(*(named.get(column, "").split(",") for column in COLUMNS)):
            found, wanted = defaultdict(list), [value.split("/") for value in values]
            for row in scores[values[:3]]:
                if all(
                    row.get(column, "") in value
                    for column, value in zip(COLUMNS, wanted, strict=True)
                ):
                    found[int(row["seed"])].append(float(row["value"] or nan))
            rows = max(map(len, wanted))  # a seed with fewer or more rows is incomplete
            cells.append(
                [
                    np.mean(found[seed]) if len(found.get(seed, ())) == rows else nan
                    for seed in seeds
                ]
            )
            runs |= {"/".join(values[:3]) + f"/seed-{seed}" for seed in seeds}
            there |= {seed for seed in found if found[seed]}
        parts.append(np.array(cells))
    return parts[:2], parts[2:], runs, there


def invert_rank_test(high, low, quantile):
    """The chance that a seed of `high` is above one of `low`, and the ends of all chances that are
    not rejected.
    """
    m, n, wins = len(high), len(low), (np.sign(high[:, None] - low) + 1) / 2
    value, a, b = wins.mean(), wins.mean(1).var(ddof=1) / m, wins.mean(0).var(ddof=1) / n
    freedom = (a + b) ** 2 / (a**2 / (m - 1) + b**2 / (n - 1)) if a + b else m + n - 2
    p = np.append(np.linspace(0, 1, 4_000_001), np.clip(value, 0.5 / (m * n), 1 - 0.5 / (m * n)))
    variance = p * (1 - p) * (1 + ((m + n) / 2 - 1) * ((1 - p) / (2 - p) + p / (1 + p))) / (m * n)
    reach = stats.t.ppf(quantile, freedom) * np.sqrt(max(1, (a + b) / variance[-1]) * variance)
    kept = p[:-1][(abs(value - p) <= reach)[:-1]]
    return value, kept[0], kept[-1]


def judge(entry, quantile, sides, required, twin):
    """Effect, ends of its interval, verdict. `twin` is the sides of a claim with the same sign."""
    measure, control, low_end, high_end = (
        CLAIMS[entry["claim"]][0],
        entry.get("control", {}),
        nan,
        nan,
    )
    change = {"log_ratio": np.log, "log_odds": lambda percent: special.logit(percent / 100)}
    high, low = (change.get(measure.split()[-1], np.asarray)(side).mean(0) for side in sides)
    if not np.isfinite([*high, *low]).all():
        return nan, nan, nan, "no verdict"
    if measure == "success_rate":
        (a, m), (b, n) = (
            (int((side > entry["threshold"]).sum()), len(side)) for side in (high, low)
        )
        effect, p = a / m - b / n, stats.fisher_exact([[a, m - a], [b, n - b]], "greater").pvalue
        above, upper = p <= 1 - quantile, stats.beta.ppf(quantile, a + 1, m - a) if a < m else 1
    else:
        if measure == "superiority":
            effect, low_end, high_end = invert_rank_test(high, low, quantile)
        else:
            test = (
                stats.ttest_rel(high, low)
                if "paired" in measure
                else stats.ttest_ind(high, low, equal_var=False)
            )
            effect, (low_end, high_end) = (
                high.mean() - low.mean(),
                test.confidence_interval(2 * quantile - 1),
            )
        above, upper = low_end > entry.get("margin", 0), high_end
    verdict = (
        "reproduced" if above else "not reproduced" if upper < entry["smallest"] else "inconclusive"
    )
    worse, better = sorted((side.mean(0) for side in sides), key=np.mean)
    lowest = better.mean() - stats.t.ppf(quantile, len(better) - 1) * stats.sem(better)
    distance = entry["smallest"] - entry.get("margin", 0) if "difference" in measure else 0
    passed = lowest > control.get("floor", -inf) + distance
    passed &= control.get("perfect", inf) - worse.mean() >= entry.get("published", 0) / 2
    passed &= all(
        cells.mean(1).min() >= need["at_least"]
        for cells in required
        for need in control["requires"]
    )
    if twin and verdict == "reproduced":
        better, worse = (change.get(measure.split()[-1], np.asarray)(side) for side in twin)
        passed &= (better.mean() - worse.mean()) * effect > 0
    return effect, low_end, high_end, verdict if passed else "no verdict"


def check_claim(paper, plan, entry, known, files):
    """Effect, interval and verdict of a claim, its runs, and what is otherwise in claims.csv and
    claim_sides.csv.
    """
    name, seeds, twin = (
        entry["claim"],
        entry.get("seeds", plan["seeds"]),
        entry.get("control", {}).get("same_sign"),
    )
    sides, required, runs, there = gather(name, files["scores"], seeds)
    twin_sides = gather(twin, files["scores"], seeds)[0] if twin else None
    found = judge(
        entry, plan.get("quantile", 1 - 0.05 / len(plan["primary"])), sides, required, twin_sides
    )
    row = files["claims"].get((paper, name), defaultdict(str))
    wanted = {"effect": found[0], "ci_low": found[1], "ci_high": found[2], "n_planned": len(seeds)}
    complete = not np.isnan(found[0])
    wanted |= {"n_seeds": len(seeds)} if complete else {"p_value": nan}
    faults = [f"verdict is {row['verdict']}, here {found[3]}"] if row["verdict"] != found[3] else []
    for key, value in wanted.items():
        if not np.isclose(float(row[key] or nan), value, rtol=1e-4, equal_nan=True):
            faults.append(
                f"{key} is {row[key] or 'empty'}, here {value:.6g}".replace("nan", "empty")
            )
    order = ("left", "right") if row["relation"] == "greater" else ("right", "left")
    for side, cells in zip(order, sides, strict=True):
        own = [
            s
            for s in files["claim_sides"]
            if (s["paper"], s["claim"], s["side"]) == (paper, name, side)
        ]
        shown = sorted((int(s["seed"]), float(s["value"])) for s in own if s["value"])
        values = sorted(
            pair for cell in cells if complete for pair in zip(seeds, cell, strict=True)
        )
        if len(shown) != len(values) or not np.allclose(shown, values, rtol=1e-4):
            faults.append(f"{side} has other seeds or values in claim_sides.csv")
    return found, runs, faults + [f"seed {seed} is in no plan" for seed in sorted(there - known)]


def check_runs(name, plan, runs, complete, added, provenance):
    """What is said of the runs of a claim, and what is wrong with them."""
    rows, (part, reason) = (
        [provenance[run] for run in sorted(runs) if run in provenance],
        ON_CPU.get(name, ("", "")),
    )
    faults = [
        f"{run} is not in provenance.json" for run in sorted(runs - provenance.keys()) if complete
    ]
    for row in rows:
        device = (
            ("cpu" if part in row["run"] else "cuda")
            if part
            else plan.get("device", rows[0]["device"])
        )
        if (row["device"], row.get("precision")) != (device, plan.get("precision", "fp32")):
            faults.append(f"{row['run']} was on {row['device']} in {row.get('precision')}")
        if row.get("started") and added and datetime.fromisoformat(row["started"]) <= added:
            faults.append(f"{row['run']} began before its plan was committed")
        # The training of the same seed that its weights come from.
        parent = provenance.get((row.get("weights") or {}).get("run"), {})
        if (
            "device" in parent
            and parent["run"].split("/")[-1] == row["run"].split("/")[-1]
            and parent not in rows
        ):
            rows.append(parent)
    notes = (
        [f"exception: {sum(part in row['run'] for row in rows)} runs on a CPU, {reason}"]
        if part
        else []
    )
    unknown = sum(not row.get("started") for row in rows)
    notes += [f"start of {unknown} of {len(rows)} runs not recorded"] * bool(unknown)
    return notes + ["from scores only, not from draws of synonyms"] * (
        "cv" in CLAIMS[name][1].split()
    ), faults


def find_commit_time(file):
    """When the file was added; None where the history is not here."""
    words = ["git", "-C", ROOT, "log", "--diff-filter=A", "--format=%cI %p", "--", file]
    lines = subprocess.run(
        words, capture_output=True, text=True, check=False
    ).stdout.splitlines() or [""]
    time, *parents = lines[-1].split() or [""]
    # a commit without parents is where a shallow clone ends
    return datetime.fromisoformat(time) if parents else None


def main(folder=ROOT / "results/reference/small"):
    """Print a line for each primary claim, and return whether anything differs."""
    folder, lines = Path(folder), {}
    files = {"claim_sides": read(folder / "claim_sides.csv"), "scores": defaultdict(list)}
    files["claims"] = {(row["paper"], row["claim"]): row for row in read(folder / "claims.csv")}
    for row in read(folder / "scores.csv") + read(folder / "analyses.csv"):
        files["scores"][row["task"], row["method"], row["variant"]].append(row)
    provenance = {run["run"]: run for run in json.loads((folder / "provenance.json").read_text())}
    plans = [
        *sorted(ROOT.glob("papers/*/analysis_plan.yaml")),
        *sorted(ROOT.glob("papers/*/plans/*.yaml")),
    ]
    plans = [
        (file, file.relative_to(ROOT / "papers").parts[0], yaml.safe_load(file.read_text()))
        for file in plans
    ]
    for file, paper, plan in (each for each in plans if each[2]["scale"] == folder.name):
        own = [
            part
            for _, of, each in plans
            if of == paper
            for part in (each, each["pilots"], *each["primary"])
        ]
        known, added = (
            {seed for part in own for seed in part.get("seeds", [])},
            find_commit_time(file),
        )
        for entry in plan["primary"]:
            if entry["claim"] not in CLAIMS:
                lines[paper, entry["claim"]] = "DIFFERENT; it has no line in CLAIMS"
                continue
            (effect, low, high, verdict), runs, faults = check_claim(
                paper, plan, entry, known, files
            )
            notes, wrong = check_runs(
                entry["claim"], plan, runs, not np.isnan(effect), added, provenance
            )
            equal = "equal" if not faults + wrong else "DIFFERENT"
            numbers = f"{effect:.6g} ({low:.6g} to {high:.6g}), ".replace(
                " (nan to nan)", ""
            ).replace("nan, ", "")
            lines[paper, entry["claim"]] = "; ".join(
                [f"{numbers}{verdict}, {equal}", *faults, *wrong, *notes]
            )
    for key, row in files["claims"].items():
        if row["role"] == "primary" and key not in lines:
            lines[key] = "DIFFERENT; no plan names this primary claim"
    print(*(f"{paper} {name}: {line}" for (paper, name), line in lines.items()), sep="\n")
    return any("DIFFERENT" in line for line in lines.values())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
