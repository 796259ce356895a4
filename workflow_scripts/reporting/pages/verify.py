"""Find faults of a crate: files against their checksums, numbers against its scores."""

import csv
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json
from workflow_scripts.config.display_schema import display_analyses
from workflow_scripts.config.displays import display_runs, intervened_runs, shown_displays
from workflow_scripts.config.loading import Catalogue, load_catalogue, load_config
from workflow_scripts.config.paths import (
    analysis_folder,
    candidate_folder,
    data_folder,
    evaluation_folder,
    figure_file,
    intervention_folder,
    run_folder,
    table_file,
)
from workflow_scripts.config.requested import requested_runs
from workflow_scripts.config.runs import Run
from workflow_scripts.config.schema import Config
from workflow_scripts.evaluation.statistics import Effect
from workflow_scripts.reporting.claims.judging import format_claim_sides, judge_paper, make_claim_row
from workflow_scripts.reporting.claims.verdicts import Outcome
from workflow_scripts.reporting.figures.figure import draw_figure
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.table import TABLE_COLUMNS, make_table

METADATA = "ro-crate-metadata.json"
CELL = ("row", "column", "metric")
ENDINGS = {"table": ("csv", "md", "tex", "html", "json"), "figure": ("csv", "svg", "png", "json")}
# Of the workflow; what is missing of the catalogue and the papers is found when they are read.
EXPECTED = ("README.md", "Snakefile", "config.yaml", "envs/requirements.lock")


def verify_crate(folder: Path, crate: Path) -> tuple[list[str], list[str]]:
    """Return (what was checked, faults), as sentences, for `crate` unpacked in a folder."""
    listed = read_checksums(folder, crate)
    faults = find_file_faults(folder, listed)
    said = [f"{len(listed)} files"]
    try:
        catalogue, config = read_crate_configuration(folder)
        expected = {f"results/{config.scale}/{name}" for name in list_expected_results(catalogue, config)} | {*EXPECTED}
        absent = (name for name in sorted(expected - listed.keys()) if not (folder / name).exists())
        faults += [f"{name}: neither there nor listed" for name in absent]
        if not faults:
            checked, faults = find_number_faults(catalogue, config, folder / "results" / config.scale)
            said += checked
    except UserError as error:  # what says the configuration is missing or broken
        faults.append(str(error))
    return said, faults


def unpack_crate(crate: Path, scratch: Path) -> Path:
    """Unpack a zip file into `scratch`. Raises UserError if it is no zip file or has paths outside the folder."""
    try:
        with zipfile.ZipFile(crate) as archive:
            for name in archive.namelist():
                if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                    raise UserError(f"{crate}: holds {name}, which would be written elsewhere; do not unpack it")
            archive.extractall(scratch)
    except FileNotFoundError as error:
        raise UserError(f"{crate} does not exist; write one with `python -m workflow_scripts crate`") from error
    except zipfile.BadZipFile as error:
        raise UserError(f"{crate} is not a whole zip file ({error}); get it anew") from error
    return scratch


def read_checksums(folder: Path, crate: Path) -> dict[str, str]:
    """Read the sha256 of each file in the crate's metadata."""
    try:
        graph = json.loads((folder / METADATA).read_text())["@graph"]
        return {entity["@id"]: entity["sha256"] for entity in graph if "sha256" in entity}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{crate}: no readable {METADATA} in it; write one with `crate`") from error


def find_file_faults(folder: Path, listed: dict[str, str]) -> list[str]:
    """List files that are missing, differ from their checksum, or are not in the metadata."""
    present = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()} - {METADATA}
    faults = [f"{name}: missing" for name in sorted(listed.keys() - present)]
    faults += [f"{name}: not listed in {METADATA}" for name in sorted(present - listed.keys())]
    for name in sorted(listed.keys() & present):
        if (actual := hash_file(folder / name)) != listed[name]:
            faults.append(f"{name}: sha256 is {actual}, not {listed[name]}")
    return faults


def read_crate_configuration(folder: Path) -> tuple[Catalogue, Config]:
    """Read catalogue and configuration of a crate. Raises UserError if they are missing or broken."""
    found = sorted(folder.glob("results/*/config.json"))
    if len(found) != 1:
        raise UserError(f"results/<scale>/config.json: there are {len(found)}; a crate is of one complete scale")
    config = read_json(found[0])
    if not isinstance(config, dict):
        raise UserError(f"{found[0].relative_to(folder)}: not a configuration")
    return load_catalogue(folder), load_config(config, folder)


def list_expected_results(catalogue: Catalogue, config: Config) -> Iterator[str]:
    """Yield the files of the scale's folder that the configuration requires."""
    yield from ("config.json", "claims.csv", "claim_sides.csv", "claims.json", "overview.html")
    for run in requested_runs(catalogue, config):
        yield from (f"{data_folder(run.task)}/{name}" for name in ("dataset.json", "record.json"))
        yield from (f"{run_folder(run)}/{name}" for name in ("run.json", "record.json", "training.csv"))
        yield from (f"{evaluation_folder(run)}/{name}" for name in ("evaluation.json", "record.json", "scores.csv"))
    for paper in config.papers:
        asked = requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))
        for run in intervened_runs(catalogue, paper, asked):
            yield from (f"{candidate_folder(run.task)}/{name}" for name in ("candidates.json", "record.json"))
            yield from (
                f"{intervention_folder(run)}/{name}" for name in ("intervention.json", "record.json", "scores.csv")
            )
        for name, display in shown_displays(catalogue.papers[paper], asked).items():
            yield from (f"{display['kind']}s/{paper}/{name}.{ending}" for ending in ENDINGS[display["kind"]])
            for analysis in display_analyses(display):
                folder = analysis_folder(paper, analysis)
                yield from (f"{folder}/{file}" for file in ("analysis.json", "record.json", "scores.csv"))


def find_number_faults(catalogue: Catalogue, config: Config, results: Path) -> tuple[list[str], list[str]]:
    """Recompute the results from the scores; return what was recomputed, and where it differs from the crate."""
    said, faults, judged = [], [], {}
    for paper in config.papers:
        runs = requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))
        try:
            cells, in_tables = find_table_faults(catalogue, paper, config.scale, runs, results)
            figures, in_figures = find_figure_faults(catalogue, paper, config.scale, runs, results)
            outcomes = judge_paper(catalogue, paper, config.scale, runs, results)
            in_claims = find_claim_faults(paper, outcomes, results)
        except UserError as error:  # a score file that its own manifest does not know
            faults.append(str(error))
            continue
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # A crate comes from elsewhere: files that agree with their checksums may still hold anything.
            faults.append(f"{paper}: what is to be compared cannot be read ({error!r})")
            continue
        faults += in_tables + in_figures + in_claims
        judged[paper] = outcomes
        said.append(f"{cells} cells of tables, {figures} figures and {len(outcomes)} verdicts of {paper}")
    if len(judged) == len(config.papers):
        faults += find_text_faults(results / "claim_sides.csv", format_claim_sides(judged))
    return said, faults + find_line_faults(results / "claims.csv", config.papers)


def find_line_faults(file: Path, papers: list[str]) -> list[str]:
    """List lines of claims.csv that match no claim of `papers`, or that are repeated."""
    try:
        lines = Counter((row.get("paper"), row.get("claim")) for row in read_csv_rows(file))
    except ValueError:  # named where the claims are compared
        return []
    return [
        f"{file.name}: {claim}: {f'stands there {count} times' if paper in papers else f'no results of {paper} here'}"
        for (paper, claim), count in lines.items()
        if count > 1 or paper not in papers
    ]


def find_table_faults(
    catalogue: Catalogue, paper: str, scale: str, runs: dict[Run, list[str]], results: Path
) -> tuple[int, list[str]]:
    """Recompute tables; return the number of cells, and where a file of a table differs."""
    count, faults = 0, []
    for name, entry in shown_displays(catalogue.papers[paper], runs).items():
        if entry["kind"] != "table":
            continue
        file = results / table_file(paper, name)
        tests = read_json(file.with_suffix(".json")).get("tests", {})
        tests = {
            cell: ExampleTest(**outcome | {"over_seeds": Effect(**outcome["over_seeds"])})
            for cell, outcome in tests.items()
        }
        table = make_table(catalogue, paper, name, scale, display_runs(entry, runs), results, tests)
        count += len(table.rows)
        found = find_cell_faults(file, name, table.rows)
        for ending, text in table.files.items():
            if ending != "csv" or not found:
                found += find_text_faults(file.with_suffix(f".{ending}"), text)
        faults += found
    return count, faults


def find_cell_faults(file: Path, table: str, rows: list[dict[str, str]]) -> list[str]:
    """List the values of a table's CSV that differ from `rows`."""
    printed = {tuple(row.get(name) for name in CELL): row for row in read_csv_rows(file)}
    faults = []
    for again in rows:
        key = tuple(again[name] for name in CELL)
        row = printed.pop(key, {})
        for column in TABLE_COLUMNS:
            if (value := again.get(column, "")) != row.get(column):
                said = f"{column} is {row.get(column)}, by the scores {value}"
                faults.append(f"{file.name}: {table}/{'/'.join(key)}: {said}")
    return faults + [f"{file.name}: {'/'.join(map(str, key))}: not a cell of the display" for key in printed]


def find_figure_faults(
    catalogue: Catalogue, paper: str, scale: str, runs: dict[Run, list[str]], results: Path
) -> tuple[int, list[str]]:
    """Redraw figures; return their number, and where the CSV of one differs from the plotted data."""
    count, faults = 0, []
    for name, entry in shown_displays(catalogue.papers[paper], runs).items():
        if entry["kind"] == "figure":
            drawn = draw_figure(catalogue, paper, name, scale, display_runs(entry, runs), results)
            faults += find_text_faults(results / figure_file(paper, name), drawn.csv)
            count += 1
    return count, faults


def find_text_faults(file: Path, again: str) -> list[str]:
    """Return the first line of a file that differs from the recomputed text, if any."""
    printed = file.read_bytes().decode(errors="replace")
    if printed == again:
        return []
    pairs = enumerate(zip_longest(printed.split("\n"), again.split("\n")), 1)
    number, (line, now) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
    return [f"{file.name}:{number}: is {shorten_line(line)}, by the scores {shorten_line(now)}"]


def shorten_line(line: str | None) -> str:
    return "missing" if line is None else line if len(line) <= 80 else f"{line[:80]}…"


def find_claim_faults(paper: str, outcomes: list[Outcome], results: Path) -> list[str]:
    """List the claims of a paper whose line in claims.csv differs from the recomputed verdicts."""
    printed = {row.get("claim"): row for row in read_csv_rows(results / "claims.csv") if row.get("paper") == paper}
    again = [make_claim_row(paper, outcome) for outcome in outcomes]
    faults = [
        f"claims.csv: {row['claim']}: {column} is {printed.get(row['claim'], {}).get(column)}, by the scores {value}"
        for row in again
        for column, value in row.items()
        if printed.get(row["claim"], {}).get(column) != str(value)
    ]
    made_up = printed.keys() - {row["claim"] for row in again}
    return faults + [f"claims.csv: {claim}: not a claim of {paper}" for claim in sorted(map(str, made_up))]


def read_csv_rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
