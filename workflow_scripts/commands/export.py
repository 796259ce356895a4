"""Copy measured results to a folder under version control.

Scores, learning curves and provenance of every complete run, tables, figures, claims and analyses.
"""

import argparse
import csv
import shutil
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json, write_atomically, write_json
from workflow_scripts.common.output_folder import check_replaceable
from workflow_scripts.config.paths import run_folder

# Provenance of a run. Its spec can be resolved again from the catalogue of the same commit.
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
    "precision",
    "commit",
    "versions",
    "analysis_plans",
)
EXPORTED = {"tables", "figures", "claims.csv", "claim_sides.csv", "scores.csv", "curves.csv", "analyses.csv"}
EXPORTED |= {"provenance.json", "predictions", "weights"}
OUTPUTS = (
    "split",
    "row",
    "item",
    "subset",
    "readout",
    "prediction",
    "likelihood",
)  # ids and outputs, no texts of the data
LARGEST_WEIGHTS = 10_000_000  # bytes
LOSSES = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", required=True)
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("results/reference"), metavar="DIR")
    parser.add_argument("--weights", nargs="*", default=[], metavar="RUN", help="also copy the weights of these runs")


def main(args: argparse.Namespace) -> None:
    """Copy `<results>/<scale>` to `<out>/<scale>`, where papers and runs without new results stay unchanged.

    Runs are taken one by one as they are complete, before any table can be made of them. Raises UserError when there
    is none.
    """
    source, target = args.results / args.scale, args.out / args.scale
    tables = [table for table in sorted(source.glob("tables/*/*.csv")) if has_measured_cell(table)]
    folders = [file.parents[1] for file in sorted(source.glob("runs/*/*/*/*/eval/evaluation.json"))]
    runs = [read_json(folder / "run.json") | read_json(folder / "record.json") for folder in folders]
    if not runs:
        raise UserError(f"{source} holds no scored run; make one with ./reproduce --config scale={args.scale}")
    papers = {table.parent.name for table in tables}
    check_replaceable(target, EXPORTED)
    with write_atomically(target) as folder:
        folder.mkdir()
        for earlier in target.glob("tables/*"):
            if earlier.name not in papers:
                shutil.copytree(earlier, folder / "tables" / earlier.name)
        for table in tables:
            (folder / "tables" / table.parent.name).mkdir(parents=True, exist_ok=True)
            for ending in (".csv", ".md"):
                shutil.copy(table.with_suffix(ending), folder / "tables" / table.parent.name)
        figures = copy_figures(source, target, folder)
        for name in ("claims.csv", "claim_sides.csv"):
            _write_claims(source / name, target / name, folder / name)
        scores = [file for run in folders for file in sorted(run.glob("*/scores.csv"))]
        _write_scores(scores, target / "scores.csv", folder / "scores.csv")
        curves = [reduce_curve(run, _rows(path / "training.csv")) for run, path in zip(runs, folders, strict=True)]
        _write_curves([row for curve in curves for row in curve], target / "curves.csv", folder / "curves.csv")
        kept = [(run["run"], path) for run, path in zip(runs, folders, strict=True) if run.get("analysis_plans")]
        copy_predictions(kept, target, folder)
        copy_weights(args.weights, source, target, folder)
        analysed = sorted(source.glob("analyses/*/*/scores.csv"))
        _write_analyses(analysed, target / "analyses.csv", folder / "analyses.csv")
        provenance = target / "provenance.json"
        known = {run["run"]: run for run in (read_json(provenance) if provenance.exists() else [])}
        known |= {run["run"]: {key: run[key] for key in PROVENANCE if key in run} for run in runs}
        write_json(folder / "provenance.json", [known[name] for name in sorted(known)])
    print(f"{len(tables)} tables, {figures} figures and {len(runs)} runs written to {target}")


def copy_predictions(primary: list[tuple[str, Path]], earlier: Path, out: Path) -> None:
    """Write the predictions of the runs of primary claims: ids and outputs, without the texts of the data sets."""
    if (earlier / "predictions").exists():
        shutil.copytree(earlier / "predictions", out / "predictions")
    if not primary:
        return
    import pyarrow.parquet as pq

    for run, folder in primary:
        table = pq.read_table(folder / "eval/predictions.parquet")
        file = out / "predictions" / f"{run}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table.select([name for name in table.column_names if name in OUTPUTS]),
            file,
            compression="zstd",
            compression_level=19,
        )


def copy_weights(runs: list[str], source: Path, earlier: Path, out: Path) -> None:
    """Copy the weights of `runs`: the last ones if the run kept them, else the best ones.

    Raises UserError for a run that is not there or whose weights are too large for version control.
    """
    if (earlier / "weights").exists():
        shutil.copytree(earlier / "weights", out / "weights")
    for run in runs:
        folder = source / run_folder(run) / "checkpoint"
        found = [file for file in (folder / "last.safetensors", folder / "model.safetensors") if file.exists()]
        if not found:
            raise UserError(f"{folder} has no weights; name a run of {source / 'runs'}, as task/method/variant/seed-1")
        if (size := found[0].stat().st_size) > LARGEST_WEIGHTS:
            raise UserError(
                f"{found[0]} has {size / 1e6:.1f} MB, and {LARGEST_WEIGHTS / 1e6:.0f} may be kept; leave it out"
            )
        file = out / "weights" / f"{run}.safetensors"
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(found[0], file)


def copy_figures(source: Path, earlier: Path, out: Path) -> int:
    """Copy the figures that show measured values, with their plotted data, and return their number.

    Those of papers of which `source` draws nothing stay as they are in `earlier`.
    """
    drawn = [data for data in sorted(source.glob("figures/*/*.csv")) if has_measured_point(data)]
    papers = {data.parent.name for data in drawn}
    for folder in earlier.glob("figures/*"):
        if folder.name not in papers:
            shutil.copytree(folder, out / "figures" / folder.name)
    for data in drawn:
        (out / "figures" / data.parent.name).mkdir(parents=True, exist_ok=True)
        for ending in (".svg", ".csv"):
            shutil.copy(data.with_suffix(ending), out / "figures" / data.parent.name)
    return len(drawn)


def _write_claims(new: Path, earlier: Path, out: Path) -> None:
    """Return the claims of `new`, then those of `earlier` for the papers that `new` does not have."""
    rows = _rows(new)
    said = {row["paper"] for row in rows}
    rows += [row for row in _rows(earlier) if row["paper"] not in said]
    _write(sorted(rows, key=lambda row: row["paper"]), out)


def _write_scores(new: list[Path], earlier: Path, out: Path) -> None:
    """Return the scores of every run and seed, of evaluation and interventions."""
    rows = [row for file in new for row in _rows(file)]
    scored = set(map(_run_of, rows))
    rows += [row for row in _rows(earlier) if _run_of(row) not in scored]
    _write(sorted(rows, key=_run_of), out)


def reduce_curve(run: dict[str, Any], curve: list[dict[str, str]]) -> list[dict[str, str]]:
    """Thin training.csv: keep all validation values, and at most LOSSES evenly spaced values of the loss."""
    losses = [row for row in curve if row["name"] == "loss"]
    every = -(-len(losses) // LOSSES) or 1
    kept = {row["step"] for row in losses[::-1][::every]}
    names = dict(zip(("task", "method", "variant", "seed"), run["run"].replace("/seed-", "/").split("/"), strict=True))
    return [
        names | {"step": row["step"], "name": row["name"], "value": f"{float(row['value']):.6g}"}
        for row in curve
        if row["name"].startswith("valid_") or (row["name"] == "loss" and row["step"] in kept)
    ]


def _write_curves(rows: list[dict[str, str]], earlier: Path, out: Path) -> None:
    """Return the thinned learning curves of every run."""
    measured = set(map(_run_of, rows))
    rows += [row for row in _rows(earlier) if _run_of(row) not in measured]
    _write(sorted(rows, key=lambda row: (*_run_of(row), row["name"], int(row["step"]))), out)


def _run_of(row: dict[str, str]) -> tuple[str, str, str, int]:
    return row["task"], row["method"], row["variant"], int(row["seed"])


def _write_analyses(new: list[Path], earlier: Path, out: Path) -> None:
    """Return the scores of every analysis, by seed if it has seeds."""

    def analysis(row: dict[str, str]) -> tuple[str, str]:
        return row["paper"], row["analysis"]

    rows = [{"paper": file.parts[-3], "analysis": file.parts[-2]} | row for file in new for row in _rows(file)]
    scored = set(map(analysis, rows))
    rows += [row for row in _rows(earlier) if analysis(row) not in scored]
    _write(sorted(rows, key=analysis), out)


def _write(rows: list[dict[str, str]], out: Path) -> None:
    columns = dict.fromkeys(name for row in rows for name in row)  # earlier rows may lack some
    if rows:
        with open(out, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def has_measured_cell(table: Path) -> bool:
    """Whether a table's CSV has a reproduced cell."""
    return any(row["status"] in ("measured", "computed") for row in _rows(table))


def has_measured_point(data: Path) -> bool:
    """Whether the plotted data of a figure hold more than published numbers."""
    return any(row.get("published") != "True" for row in _rows(data))


def _rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
