"""Copy measured results to a folder under version control.

Scores, learning curves and provenance of every complete run, tables, figures, claims and analyses.
"""

import argparse
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    read_csv,
    read_json,
    write_atomically,
    write_csv,
    write_json,
)
from workflow_scripts.config.catalogue import Catalogue, find_scale
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import data_folder, run_folder
from workflow_scripts.provenance.exported import complete_provenance, name_parent, select_provenance
from workflow_scripts.reporting.pages.model_card import collect_published_cells, make_model_card
from workflow_scripts.results import list_scored_runs, read_run_files
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run
from workflow_scripts.training.history import read_history

EXPORTED = {
    "tables",
    "figures",
    "claims.csv",
    "claim_sides.csv",
    "scores.csv",
    "curves.csv",
    "analyses.csv",
}
EXPORTED |= {"provenance.json", "predictions", "draws.parquet", "datasets.json", "devices.csv"}
# Ids and outputs. The texts of the data stay out.
PREDICTION_COLUMNS = ("split", "row", "item", "subset", "readout", "prediction", "likelihood")
# What tells the scores of draws apart, and their values; unit and protocol are in scores.csv.
DRAW_COLUMNS = (
    *(
        "task",
        "method",
        "variant",
        "seed",
        "split",
        "subset",
        "metric",
        "intervention",
        "layer",
        "pooling",
        "rate",
    ),
    *("item_set", "readout", "intervention_seed", "value", "n"),
)
MAX_LOSSES = 30  # in the curve of a run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--scale", required=True)
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("results/reference"), metavar="DIR")
    checkpoints = "write only trained models: DIR/<run>, each loads on its own"
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help=checkpoints)


def main(args: argparse.Namespace) -> None:
    """Copy `<results>/<scale>` to `<out>/<scale>`, and say what was copied."""
    catalogue = load_catalogue()
    find_scale(catalogue, args.scale)
    if args.checkpoints:
        print(copy_checkpoints(catalogue, args.results / args.scale, args.checkpoints))
    else:
        print(copy_results(args.scale, args.results, args.out))


def copy_results(scale: str, results: Path, out_folder: Path) -> str:
    """Copy `<results>/<scale>` to `<out_folder>/<scale>`, where papers and runs without new results stay unchanged.

    A run is copied when it is complete, even before a table can be made of it. Raises UserError if no run is complete.
    """
    source, target = results / scale, out_folder / scale
    folders = list_scored_runs(source)
    runs = [read_run_files(folder) for folder in folders]
    if not runs:
        raise UserError(f"{source} has no scored run; make one with ./reproduce --scale {scale}")
    check_replaceable(target, EXPORTED)
    with write_atomically(target) as out:
        out.mkdir()
        tables = copy_displays("tables", (".csv", ".md"), source, target, out)
        figures = copy_displays("figures", (".svg", ".csv"), source, target, out)
        for name in ("claims.csv", "claim_sides.csv"):
            _merge_rows(
                name, read_csv(source / name, ["paper"]), target, out, lambda row: row["paper"]
            )
        files = [file for folder in folders for file in sorted(folder.glob("*/scores.csv"))]
        scores = [
            row for file in files for row in read_csv(file, ("task", "method", "variant", "seed"))
        ]
        _merge_rows("scores.csv", average_draws(scores), target, out, _run_of)
        merge_draws([row for row in scores if row.get("intervention_seed")], target, out)
        curves = [
            row
            for run, folder in zip(runs, folders, strict=True)
            if (folder / "run.json").exists()  # given weights have no curve
            for row in reduce_curve(run, folder / "training.csv")
        ]
        _merge_rows("curves.csv", curves, target, out, _run_of)
        analyses = [
            {"paper": file.parts[-3], "analysis": file.parts[-2]} | row
            for file in sorted(source.glob("analyses/*/*/scores.csv"))
            for row in read_csv(file)
        ]
        _merge_rows(
            "analyses.csv",
            average_draws(analyses),
            target,
            out,
            lambda row: (row["paper"], row["analysis"]),
        )
        if (target / "predictions").exists():
            shutil.copytree(target / "predictions", out / "predictions")
        copy_predictions(zip(runs, folders, strict=True), out / "predictions")
        if (target / "devices.csv").exists():
            shutil.copy(target / "devices.csv", out)
        datasets = {
            file.parent.name: read_json(file) for file in sorted(source.glob("data/*/dataset.json"))
        }
        reduced = {
            task: {name: dataset[name] for name in ("protocol", "notes")}
            for task, dataset in datasets.items()
            if dataset.get("protocol") == "reduced"
        }
        known = read_json(target / "datasets.json") if (target / "datasets.json").exists() else {}
        if known | reduced:
            write_json(out / "datasets.json", known | reduced)
        provenance = target / "provenance.json"
        earlier = {
            run["run"]: run for run in (read_json(provenance) if provenance.exists() else [])
        }
        made = {run["run"]: run for run in collect_provenance(source, runs)}
        write_json(out / "provenance.json", complete_provenance((earlier | made).values()))
    return f"{tables} tables, {figures} figures and {len(runs)} runs written to {target}"


def collect_provenance(source: Path, runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the provenance of `runs`, and of all runs under `source` that their weights come from."""
    rows = {run["run"]: select_provenance(run) for run in runs}
    waiting = list(rows.values())
    while waiting:
        parent = name_parent(waiting.pop())
        if (
            parent
            and parent not in rows
            and (folder := source / run_folder(parent)).joinpath("run.json").exists()
        ):
            rows[parent] = select_provenance(read_run_files(folder))
            waiting.append(rows[parent])
    return list(rows.values())


def copy_checkpoints(catalogue: Catalogue, results: Path, out: Path) -> str:
    """Write each finished training to `out`/<run>, with a model card, and say what was written.

    Raises UserError if there is none, or if a file of one was changed.
    """
    folders = [folder for folder in list_scored_runs(results) if (folder / "run.json").exists()]
    if not folders:
        raise UserError(
            f"{results} has no finished training; make one with ./reproduce --scale {results.name}"
        )
    published = collect_published_cells(catalogue)
    for folder in folders:
        name, run = "/".join(folder.parts[-4:]), read_run(folder)
        check_checkpoint(folder, run)
        manifests = [folder / "run.json", folder / "eval/evaluation.json"]
        manifests.append(results / data_folder(run.spec.task) / "dataset.json")
        check_replaceable(out / name, {"*.safetensors", "*.json", "README.md"}, "run.json")
        with write_atomically(out / name) as temporary:
            shutil.copytree(folder / "checkpoint", temporary)
            for file in manifests:
                shutil.copyfile(file, temporary / file.name)
            (temporary / "README.md").write_text(
                make_model_card(catalogue, published, results, name)
            )
    return f"{len(folders)} trained models written to {out}"


def copy_displays(
    kind: str, suffixes: Iterable[str], source: Path, earlier: Path, out: Path
) -> int:
    """Copy the measured tables or figures, of papers without any those of `earlier`; return how many are new."""
    measured = [
        file
        for file in sorted(source.glob(f"{kind}/*/*.csv"))
        if any(
            row["status"] in ("measured", "computed")
            if kind == "tables"
            else row.get("published") != "True"
            for row in read_csv(file)
        )
    ]
    papers = {file.parent.name for file in measured}
    for folder in earlier.glob(f"{kind}/*"):
        if folder.name not in papers:
            shutil.copytree(folder, out / kind / folder.name)
    for file in measured:
        (out / kind / file.parent.name).mkdir(parents=True, exist_ok=True)
        for suffix in suffixes:
            shutil.copy(file.with_suffix(suffix), out / kind / file.parent.name)
    return len(measured)


def copy_predictions(runs: Iterable[tuple[dict[str, Any], Path]], out: Path) -> None:
    """Add the predictions of the runs of primary claims to `out`, a file per variant, without the texts of the data."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tables: dict[Path, list[pa.Table]] = {}
    for run, folder in runs:
        if run.get("analysis_plans"):
            table = pq.read_table(folder / "eval/predictions.parquet")
            table = table.select(
                [name for name in table.column_names if name in PREDICTION_COLUMNS]
            )
            seed = pa.repeat(int(folder.name.removeprefix("seed-")), len(table))
            file = out / f"{'/'.join(folder.parts[-4:-1])}.parquet"
            tables.setdefault(file, []).append(table.add_column(0, "seed", seed))
    for file, new in tables.items():
        if file.exists():
            seeds = pa.array([table["seed"][0].as_py() for table in new])
            new.append(pq.read_table(file, filters=~pc.field("seed").isin(seeds)))
        table = pa.concat_tables(new)
        ids = [name for name in PREDICTION_COLUMNS[:5] if name in table.column_names]
        table = table.sort_by([(name, "ascending") for name in (*ids, "seed")])
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table, file, compression="brotli", compression_level=11, use_dictionary=False
        )


def reduce_curve(run: dict[str, Any], file: Path) -> list[dict[str, str]]:
    """Keep all validation values of a training.csv, and at most MAX_LOSSES evenly spaced values of the loss."""
    read_history(file)  # checks the numbers
    curve = read_csv(file)
    losses = [row for row in curve if row["name"] == "loss"]
    every = -(-len(losses) // MAX_LOSSES) or 1
    kept = {row["step"] for row in losses[::-1][::every]}
    names = dict(
        zip(
            ("task", "method", "variant", "seed"),
            run["run"].replace("/seed-", "/").split("/"),
            strict=True,
        )
    )
    return [
        names | {"step": row["step"], "name": row["name"], "value": f"{float(row['value']):.6g}"}
        for row in curve
        if row["name"].startswith("valid_") or (row["name"] == "loss" and row["step"] in kept)
    ]


def average_draws(scores: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Average the scores of a run over the draws of an intervention, which are hundreds of rows."""
    draws: dict[tuple, list[str]] = {}
    for row in scores:
        draws.setdefault(tuple((row | {"value": "", "intervention_seed": ""}).items()), []).append(
            row["value"]
        )
    return [
        dict(row) | {"value": v[0] if len(set(v)) == 1 else str(fmean(map(float, v)))}
        for row, v in draws.items()
    ]


def merge_draws(rows: list[dict[str, str]], earlier: Path, out: Path) -> None:
    """Write the scores of single draws to `out`, with those of the runs of `earlier` that `rows` do not have.

    The coefficient of variation over draws follows from them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.string() for name in DRAW_COLUMNS}
    columns |= {name: pa.int64() for name in ("seed", "n", "layer", "intervention_seed")}
    columns |= {name: pa.float64() for name in ("value", "rate")}
    schema = pa.schema(columns)
    read = [{name: row.get(name) or None for name in DRAW_COLUMNS} for row in rows]
    texts = pa.table(
        {name: pa.array([row[name] for row in read], pa.string()) for name in DRAW_COLUMNS}
    )
    tables = [texts.cast(schema)]
    new = set(map(_run_of, rows))
    if (file := earlier / "draws.parquet").exists():
        kept = pq.read_table(file).cast(schema)
        tables.append(
            kept.filter(pa.array([_run_of(row) not in new for row in kept.to_pylist()], pa.bool_()))
        )
    table = pa.concat_tables(tables)
    if len(table):
        table = table.sort_by(
            [(name, "ascending") for name in DRAW_COLUMNS if name not in ("value", "n")]
        )
        pq.write_table(table, out / "draws.parquet", compression="brotli", compression_level=11)


def _merge_rows(
    name: str,
    rows: list[dict[str, str]],
    earlier: Path,
    out: Path,
    key: Callable[[dict[str, str]], Any],
) -> None:
    """Write `rows` and the rows of `earlier` / `name` with another key to `out`, sorted by `key`."""
    new = set(map(key, rows))
    rows = rows + [row for row in read_csv(earlier / name) if key(row) not in new]
    columns = dict.fromkeys(column for row in rows for column in row)  # earlier rows may lack some
    rows.sort(key=key)
    if rows:
        write_csv(out / name, columns, rows)


def _run_of(row: dict[str, str]) -> tuple[str, str, str, int]:
    return row["task"], row["method"], row["variant"], int(row["seed"])
