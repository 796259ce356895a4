"""Copy the measured tables, the claims and their provenance to a folder that is kept under version control."""

import argparse
import csv
import shutil
from pathlib import Path

from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json, replacing, write_json

# What a later reader needs to know of a run; its spec follows from its digest and the catalogue of the same commit.
PROVENANCE = (
    "run",
    "scale",
    "protocol",
    "spec_digest",
    "data_digest",
    "code_digest",
    "steps",
    "best_step",
    "best_validation",
    "parameters",
    "seconds",
    "seconds_per_step",
    "resumed",
    "device",
    "device_name",
    "cpu",
    "threads",
    "versions",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", required=True)
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("results/reference"), metavar="DIR")


def main(args: argparse.Namespace) -> None:
    """Replace `<out>/<scale>` by what `<results>/<scale>` holds. Raises UserError when nothing was measured there."""
    source = args.results / args.scale
    tables = [table for table in sorted(source.glob("tables/*/*.csv")) if has_measured_cell(table)]
    runs = [read_json(file) for file in sorted(source.glob("runs/*/*/*/*/run.json"))]
    if not tables or not runs:
        raise UserError(f"{source} holds no measured table; make one with ./reproduce --config scale={args.scale}")
    with replacing(args.out / args.scale) as folder:
        folder.mkdir()
        for table in tables:
            (folder / "tables" / table.parent.name).mkdir(parents=True, exist_ok=True)
            for ending in (".csv", ".md"):
                shutil.copy(table.with_suffix(ending), folder / "tables" / table.parent.name)
        if (source / "claims.csv").exists():
            shutil.copy(source / "claims.csv", folder)
        write_json(folder / "provenance.json", [{key: run[key] for key in PROVENANCE} for run in runs])
    print(f"{len(tables)} tables and {len(runs)} runs written to {args.out / args.scale}")


def has_measured_cell(table: Path) -> bool:
    """Whether any cell of a table's CSV was reproduced."""
    with open(table, newline="", encoding="utf-8") as stream:
        return any(row["status"] == "measured" for row in csv.DictReader(stream))
