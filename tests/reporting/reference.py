"""A results folder made of the committed scores, by seed, of results/reference/small.

`python -m tests.reporting.reference` rewrites claims.csv and claim_sides.csv there from the scores,
and the tables of which a cell is missing or differs.
"""

import csv
import io
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.analyses.small_runs import ROOT
from tests.config.as_json import resolve_run
from workflow_scripts.common.files import write_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import TableDisplay
from workflow_scripts.config.displays import select_display_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import find_parent_run, read_precision
from workflow_scripts.evaluation.scores import SCORE_COLUMNS
from workflow_scripts.reporting.claims.judging import judge_paper, write_claims
from workflow_scripts.reporting.claims.verdicts import PRIMARY
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.tables.table import RenderedTable, make_table

REFERENCE = ROOT / "results/reference/small"
PAPERS = ("carma", "cat", "lrf", "sq_transformer")
SHOWN = ("reproduced", "std", "n_seeds", "ci_low", "ci_high", "protocol", "status")


def rows_of(name: str) -> list[dict[str, str]]:
    with open(REFERENCE / name, newline="") as stream:
        return list(csv.DictReader(stream))


def write_committed_results(folder: Path, catalogue: Catalogue) -> dict[VariantKey, set[int]]:
    """Write the committed scores to `folder`; return the seeds of each variant."""
    by_file, seeds = defaultdict(list), defaultdict(set)
    for row in rows_of("scores.csv"):
        run = Run(row["task"], row["method"], row["variant"], int(row["seed"]))
        by_file[run, "interventions" if row["intervention"] else "eval"].append(row)
        seeds[run.variant_key].add(run.seed)
    for (run, part), rows in by_file.items():
        write_scores(folder / f"runs/{run}/{part}/scores.csv", rows)
    analysed = defaultdict(list)
    for row in rows_of("analyses.csv"):
        analysed[row["paper"], row["analysis"]].append(row)
    for key, paper in catalogue.papers.items():
        for name in {
            name for display in paper.displays.values() for name in display.list_analyses()
        }:
            rows = [
                {column: row[column] for column in SCORE_COLUMNS} for row in analysed[key, name]
            ]
            write_scores(folder / f"analyses/{key}/{name}/scores.csv", rows)
    for task, dataset in json.loads((REFERENCE / "datasets.json").read_text()).items():
        write_json(folder / f"data/{task}/dataset.json", dataset)
    return seeds


def write_manifests(folder: Path, catalogue: Catalogue, runs: list[Run]) -> None:
    """Write what a table says of each training: `runs`, or those that trained their weights."""
    recorded = {row["run"]: row for row in json.loads((REFERENCE / "provenance.json").read_text())}
    trained = (find_parent_run(catalogue, run, "small") if run.weights else run for run in runs)
    for run in dict.fromkeys(filter(None, trained)):
        row = recorded.get(str(run), {})
        precision = row.get("precision") or read_precision(resolve_run(catalogue, run, "small"))
        # Only HTML, which is not committed, has steps and parameters.
        made = {
            "spec": {"training": {"precision": precision}},
            "protocol": "reduced",
            "steps": 0,
            "parameters": 0,
        }
        write_json(folder / f"runs/{run}/run.json", made)


def list_counted_runs(
    catalogue: Catalogue, paper: str, seeds: dict[VariantKey, set[int]]
) -> tuple[list[Run], ...]:
    """Return the runs that count for a paper's primary claims, and for all others.

    For primary claims these are the seeds of a variant that the paper requests. Others have them
    when all are there; until then, the earlier ones: the pilots of the analysis plans.
    """
    config = Config(scale="small", papers=[paper], extra=True)
    requested = defaultdict(set)
    for run in list_requested_runs(catalogue, config):
        requested[run.variant_key].add(run.seed)
    fresh = {
        seed
        for planned in catalogue.papers[paper].list_primary_claims("small")
        for seed in planned.seeds
    }
    seeds = {variant: found for variant, found in seeds.items() if variant in requested}
    planned = {variant: found & requested[variant] or found for variant, found in seeds.items()}
    counted = {
        variant: planned[variant] if requested[variant] <= found else found - fresh or found
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
    """The verdicts that follow from the committed scores, as claims.csv with claim_sides.csv next
    to it.
    """
    catalogue = load_catalogue(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        folder, outcomes = Path(scratch), {}
        seeds = write_committed_results(folder, catalogue)
        for paper in PAPERS:
            counted = list_counted_runs(catalogue, paper, seeds)
            primary, others = (
                judge_paper(PaperResults(catalogue, paper, "small", ScaleFolder(folder)), runs)
                for runs in counted
            )
            outcomes[paper] = [
                one if one.role == PRIMARY else other
                for one, other in zip(primary, others, strict=True)
            ]
        write_claims(out, outcomes)


def make_committed_tables() -> Iterator[tuple[str, RenderedTable]]:
    """Each table of PAPERS that has something to show, `<paper>/<table>`, made from the committed
    scores.
    """
    catalogue = load_catalogue(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        seeds = write_committed_results(folder, catalogue)
        for key in PAPERS:
            paper = catalogue.papers[key]
            _, runs = list_counted_runs(catalogue, key, seeds)
            write_manifests(folder, catalogue, runs)
            results = PaperResults(catalogue, key, "small", ScaleFolder(folder))
            for name, display in paper.select_shown_displays(runs).items():
                if isinstance(display, TableDisplay):
                    shown = select_display_runs(display, runs)
                    # The marks of a test over examples need the texts of the data.
                    yield (
                        f"{key}/{name}",
                        make_table(results, name, shown, tests={}),
                    )


def read_cells(text: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """The rows of a table's CSV by row, column and metric."""
    return {
        (row["row"], row["column"], row["metric"]): row for row in csv.DictReader(io.StringIO(text))
    }


def has_numbers(row: dict[str, str]) -> bool:
    return row["status"] in ("measured", "computed", "withheld")


def what_is_shown(row: dict[str, str]) -> list[str]:
    """What a table shows of a cell. The note of a measured one may tell of a test over examples."""
    return [
        row.get(key, "") for key in (*SHOWN, *(["note"] if row.get("status") != "measured" else []))
    ]


def compare_tables(name: str, made: RenderedTable) -> tuple[list[tuple], list[tuple]]:
    """Cells of a committed table that differ from what the scores say, and cells of whose scores
    none is committed.
    """
    file = REFERENCE / f"tables/{name}.csv"
    committed, expected = (
        read_cells(file.read_text() if file.exists() else ""),
        read_cells(made.files["csv"]),
    )
    unknown = [
        place
        for place, row in committed.items()
        if has_numbers(row) and not has_numbers(expected[place])
    ]
    differing = [
        place
        for place, row in expected.items()
        if place not in unknown and what_is_shown(committed.get(place, {})) != what_is_shown(row)
    ]
    return differing, unknown


def write_tables() -> None:
    """Write the committed tables that are missing or differ from the scores, if the scores tell all
    of their cells.
    """
    for name, table in make_committed_tables():
        differing, unknown = compare_tables(name, table)
        if differing and any(map(has_numbers, read_cells(table.files["csv"]).values())):
            assert not unknown, (
                f"{name}: {differing} differ; ./reproduce makes it: the scores of {unknown} are not here"
            )
            for suffix in ("csv", "md"):
                file = REFERENCE / f"tables/{name}.{suffix}"
                file.write_text(table.files[suffix], encoding="utf-8")
                print(file.relative_to(ROOT))


if __name__ == "__main__":
    write_reference()
    write_tables()
