"""Check a crate of results: its files against their checksums, and its numbers against its scores."""

import argparse
import csv
import json
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from workflow_scripts.catalogue import Catalogue, Run, load_catalogue, load_config, requested_runs
from workflow_scripts.displays import display_runs, intervened
from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json, sha256_file
from workflow_scripts.reporting.cells import make_cells, read_evidence
from workflow_scripts.reporting.claims import claim_row, judge_paper
from workflow_scripts.reporting.spec import TableDisplay, display_analyses
from workflow_scripts.reporting.table import csv_row
from workflow_scripts.schema import checked

METADATA = "ro-crate-metadata.json"
NUMBERS = ("published", "published_std", "reproduced", "std", "n_seeds", "ci_low", "ci_high", "difference", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("crate", type=Path, help="a crate that `crate` wrote: the zip file, or a folder of its content")


def main(args: argparse.Namespace) -> None:
    """Print what was checked. Raises UserError, after a line for each fault, when there are any."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.crate if args.crate.is_dir() else unpacked(args.crate, Path(scratch))
        listed = read_listed(folder, args.crate)
        faults = file_faults(folder, listed)
        said = [f"{len(listed)} files"]
        if not faults:
            (config_file,) = folder.glob("results/*/config.json")
            catalogue, config = load_catalogue(folder), load_config(read_json(config_file), folder)
            for paper in config.papers:
                runs = requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))
                try:
                    tables, found = table_faults(catalogue, paper, config.scale, runs, config_file.parent)
                    claims, wrong = claim_faults(catalogue, paper, config.scale, runs, config_file.parent)
                except UserError as error:  # a score file that its own manifest does not know
                    faults.append(str(error))
                    continue
                faults += found + wrong
                said.append(f"{tables} cells of tables and {claims} verdicts of {paper}")
    for fault in faults:
        print(fault)
    if faults:
        raise UserError(f"{args.crate}: {len(faults)} faults; do not trust it, get it anew")
    print(f"{args.crate}: checked {', '.join(said)}; all agree")


def unpacked(crate: Path, scratch: Path) -> Path:
    """The content of a zip file, in `scratch`. Raises UserError for what is none, or would leave that folder."""
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


def read_listed(folder: Path, crate: Path) -> dict[str, str]:
    """sha256 of each file that the crate's metadata list."""
    try:
        graph = json.loads((folder / METADATA).read_text())["@graph"]
        return {entity["@id"]: entity["sha256"] for entity in graph if "sha256" in entity}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{crate}: no readable {METADATA} in it; write one with `crate`") from error


def file_faults(folder: Path, listed: dict[str, str]) -> list[str]:
    """Files that are missing, differ from their checksum, or are not listed."""
    present = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()} - {METADATA}
    faults = [f"{name}: missing" for name in sorted(listed.keys() - present)]
    faults += [f"{name}: not listed in {METADATA}" for name in sorted(present - listed.keys())]
    for name in sorted(listed.keys() & present):
        if (actual := sha256_file(folder / name)) != listed[name]:
            faults.append(f"{name}: sha256 is {actual}, not {listed[name]}")
    return faults


def table_faults(
    catalogue: Catalogue, paper: str, scale: str, runs: dict[Run, list[str]], results: Path
) -> tuple[int, list[str]]:
    """How many cells were made again from the scores, and those whose numbers differ from the table's CSV."""
    count, faults = 0, []
    for name, entry in catalogue.papers[paper].displays.items():
        if entry["kind"] != "table":
            continue
        display = checked(TableDisplay, entry, f"papers/{paper}/displays.yaml", name)
        evidence = read_evidence(
            catalogue, paper, scale, display_runs(entry, runs), display_analyses(entry), results, intervened([entry])
        )
        file = results / "tables" / paper / f"{name}.csv"
        printed = {(row["row"], row["column"], row["metric"]): row for row in read_rows(file)}
        for cell in make_cells(name, display, evidence):
            again, row = csv_row(cell, None, None), printed.pop((cell.row, cell.column, cell.metric), {})
            count += 1
            for column in NUMBERS:
                if again.get(column, "") != row.get(column):
                    faults.append(
                        f"{file.name}: {cell.key}: {column} is {row.get(column)}, by the scores {again[column]}"
                    )
        faults += [f"{file.name}: {'/'.join(key)}: not a cell of the display" for key in printed]
    return count, faults


def claim_faults(
    catalogue: Catalogue, paper: str, scale: str, runs: dict[Run, list[str]], results: Path
) -> tuple[int, list[str]]:
    """How many claims were judged again from the scores, and those whose line in claims.csv differs."""
    printed = {row["claim"]: row for row in read_rows(results / "claims.csv") if row["paper"] == paper}
    again = [claim_row(paper, outcome) for outcome in judge_paper(catalogue, paper, scale, runs, results)]
    faults = [
        f"claims.csv: {row['claim']}: {column} is {printed.get(row['claim'], {}).get(column)}, by the scores {value}"
        for row in again
        for column, value in row.items()
        if printed.get(row["claim"], {}).get(column) != str(value)
    ]
    return len(again), faults


def read_rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
