"""A results folder made of the committed scores, by seed, of results/reference/small.

`python -m tests.reporting.reference` rewrites claims.csv and claim_sides.csv there from the scores.
"""

import csv
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.analyses.small_runs import ROOT
from workflow_scripts.config.catalogue import Catalogue, Run, VariantKey
from workflow_scripts.config.display_schema import list_display_analyses
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.evaluation.scores import SCORE_COLUMNS
from workflow_scripts.reporting.claims.judging import judge_paper, write_claims
from workflow_scripts.reporting.claims.verdicts import PRIMARY

REFERENCE = ROOT / "results/reference/small"
PAPERS = ("carma", "cat", "lrf", "sq_transformer")


def rows_of(name: str) -> list[dict[str, str]]:
    with open(REFERENCE / name, newline="") as stream:
        return list(csv.DictReader(stream))


def write_committed_results(folder: Path, catalogue: Catalogue) -> dict[VariantKey, set[int]]:
    """Write the committed scores to `folder`; return the seeds of each variant."""
    by_file, seeds = defaultdict(list), defaultdict(set)
    for row in rows_of("scores.csv"):
        run = Run(row["task"], row["method"], row["variant"], int(row["seed"]))
        by_file[run, "interventions" if row["intervention"] else "eval"].append(row)
        seeds[run.unseeded].add(run.seed)
    for (run, part), rows in by_file.items():
        write_scores(folder / f"runs/{run}/{part}/scores.csv", rows)
    analysed = defaultdict(list)
    for row in rows_of("analyses.csv"):
        analysed[row["paper"], row["analysis"]].append(row)
    for key, paper in catalogue.papers.items():
        for name in {name for display in paper.displays.values() for name in list_display_analyses(display)}:
            rows = [{column: row[column] for column in SCORE_COLUMNS} for row in analysed[key, name]]
            write_scores(folder / f"analyses/{key}/{name}/scores.csv", rows)
    return seeds


def list_counted_runs(catalogue: Catalogue, paper: str, seeds: dict[VariantKey, set[int]]) -> tuple[list[Run], ...]:
    """Return the runs that count for a paper's primary claims, and for all others.

    For primary claims these are the seeds of a variant that the paper requests. Others have them when all are there;
    until then, the earlier ones: the pilots of the analysis plans.
    """
    config = Config(scale="small", papers=[paper], extra=True)
    requested = defaultdict(set)
    for run in list_requested_runs(catalogue, config):
        requested[run.unseeded].add(run.seed)
    seeds = {variant: found for variant, found in seeds.items() if variant in requested}
    planned = {variant: found & requested[variant] or found for variant, found in seeds.items()}
    counted = {
        variant: planned[variant] if requested[variant] <= found else found - requested[variant] or found
        for variant, found in seeds.items()
    }
    first, second = (
        [Run(*variant, seed) for variant, found in chosen.items() for seed in sorted(found)]
        for chosen in (planned, counted)
    )
    return first, second


def write_scores(file: Path, rows: list[dict[str, str]]) -> None:
    file.parent.mkdir(parents=True)
    with open(file, "w", newline="") as stream:
        writer = csv.DictWriter(stream, SCORE_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def write_reference(out: Path = REFERENCE / "claims.csv") -> None:
    """The verdicts that follow from the committed scores, as claims.csv with claim_sides.csv next to it."""
    catalogue = load_catalogue(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        folder, outcomes = Path(scratch), {}
        seeds = write_committed_results(folder, catalogue)
        for paper in PAPERS:
            counted = list_counted_runs(catalogue, paper, seeds)
            primary, others = (judge_paper(catalogue, paper, "small", runs, folder) for runs in counted)
            outcomes[paper] = [
                one if one.role == PRIMARY else other for one, other in zip(primary, others, strict=True)
            ]
        write_claims(out, outcomes)


if __name__ == "__main__":
    write_reference()
