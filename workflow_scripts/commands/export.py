"""Copy measured results to a folder under version control.

Scores, learning curves and provenance of every complete run, tables, figures, claims and analyses.
"""

import argparse
import math
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    read_csv,
    read_json,
    write_atomically,
    write_csv,
    write_json,
)
from workflow_scripts.common.run_names import Run, parse_seed
from workflow_scripts.config.catalogue import Catalogue, find_scale
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import data_folder, run_folder
from workflow_scripts.provenance.exported import complete_provenance, name_parent, select_provenance
from workflow_scripts.reporting.pages.model_card import collect_published_cells, make_model_card
from workflow_scripts.results import list_scored_runs, read_run_files
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run
from workflow_scripts.training.history import read_history

EXPORTED = {
    "analyses.csv",
    "claim_sides.csv",
    "claims.csv",
    "curves.csv",
    "datasets.json",
    "devices.csv",
    "draws.parquet",
    "figures",
    "predictions",
    "provenance.json",
    "scores.csv",
    "tables",
}
# Ids and outputs. The texts of the data stay out.
PREDICTION_IDS = ("split", "row", "item", "subset", "readout")
PREDICTION_COLUMNS = (*PREDICTION_IDS, "prediction", "likelihood")
# What tells the scores of draws apart, and their values; unit and protocol are in scores.csv.
DRAW_COLUMNS = (
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
    "item_set",
    "readout",
    "intervention_seed",
    "value",
    "n",
)
RUN_COLUMNS = ("task", "method", "variant", "seed")
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


@dataclass(frozen=True)
class Export:
    """An export of `<results>/<scale>`, the folder `source`.

    earlier: the export that this one replaces, if there is one. out: what is written here replaces
    `earlier`. Papers and runs without new results are copied from there unchanged.
    """

    source: Path
    earlier: Path
    out: Path

    def merge_rows(
        self, name: str, rows: list[dict[str, str]], key: Callable[[dict[str, str]], Any]
    ) -> None:
        """Write `rows`, and the earlier rows with another key, to the CSV file `name` by `key`."""
        new_keys = set(map(key, rows))
        merged = list(rows)
        for row in read_csv(self.earlier / name):
            if key(row) not in new_keys:
                merged.append(row)
        columns: dict[str, None] = {}  # earlier rows may lack some
        for row in merged:
            columns |= dict.fromkeys(row)
        merged.sort(key=key)
        if merged:
            write_csv(self.out / name, columns, merged)

    def read_earlier_json(self, name: str, default: Any) -> Any:
        """Read a JSON file of the earlier export; `default` if it has none."""
        file = self.earlier / name
        if not file.exists():
            return default
        return read_json(file)


def copy_results(scale: str, results: Path, out_folder: Path) -> str:
    """Copy `<results>/<scale>` to `<out_folder>/<scale>`.

    There, papers and runs without new results stay unchanged. A run is copied when it is complete,
    even before a table can be made of it. Raises UserError if no run is complete.
    """
    source = results / scale
    target = out_folder / scale
    folders = list_scored_runs(source)
    runs = [read_run_files(folder) for folder in folders]
    if not runs:
        raise UserError(f"{source} has no scored run; make one with ./reproduce --scale {scale}")
    check_replaceable(target, EXPORTED)
    with write_atomically(target) as out:
        out.mkdir()
        export = Export(source, target, out)
        tables = copy_displays(export, "tables", (".csv", ".md"))
        figures = copy_displays(export, "figures", (".svg", ".csv"))
        for name in ("claims.csv", "claim_sides.csv"):
            rows = read_csv(source / name, ["paper"])
            export.merge_rows(name, rows, lambda row: row["paper"])
        copy_scores(export, folders)
        copy_curves(export, runs, folders)
        copy_analyses(export)
        if (target / "predictions").exists():
            shutil.copytree(target / "predictions", out / "predictions")
        copy_predictions(zip(runs, folders, strict=True), out / "predictions")
        if (target / "devices.csv").exists():
            shutil.copy(target / "devices.csv", out)
        copy_reduced_datasets(export)
        copy_provenance(export, runs)
    return f"{tables} tables, {figures} figures and {len(runs)} runs written to {target}"


def copy_scores(export: Export, folders: Iterable[Path]) -> None:
    """Write the scores of runs, averaged over draws of interventions, and those of single draws."""
    scores = []
    for folder in folders:
        for file in sorted(folder.glob("*/scores.csv")):
            scores += read_csv(file, RUN_COLUMNS)
    export.merge_rows("scores.csv", average_draws(scores), _run_of)
    draws = [row for row in scores if row.get("intervention_seed")]
    merge_draws(draws, export.earlier, export.out)


def copy_curves(export: Export, runs: Iterable[dict[str, Any]], folders: Iterable[Path]) -> None:
    """Write the learning curves of the trainings. Given weights have none."""
    curves = []
    for run, folder in zip(runs, folders, strict=True):
        if (folder / "run.json").exists():
            curves += reduce_curve(run, folder / "training.csv")
    export.merge_rows("curves.csv", curves, _run_of)


def copy_analyses(export: Export) -> None:
    """Write the scores of all analyses to one file."""
    scores = []
    for file in sorted(export.source.glob("analyses/*/*/scores.csv")):
        paper, analysis = file.parts[-3:-1]
        for row in read_csv(file):
            scores.append({"paper": paper, "analysis": analysis} | row)
    export.merge_rows(
        "analyses.csv", average_draws(scores), lambda row: (row["paper"], row["analysis"])
    )


def copy_reduced_datasets(export: Export) -> None:
    """Write what was reduced in the data sets that are not those of the papers."""
    reduced = export.read_earlier_json("datasets.json", {})
    for file in sorted(export.source.glob("data/*/dataset.json")):
        dataset = read_json(file)
        if dataset.get("protocol") == "reduced":
            task = file.parent.name
            reduced[task] = {name: dataset[name] for name in ("protocol", "notes")}
    if reduced:
        write_json(export.out / "datasets.json", reduced)


def copy_provenance(export: Export, runs: Iterable[dict[str, Any]]) -> None:
    """Write how each run was made, of runs without new results as the earlier export has it."""
    rows = {row["run"]: row for row in export.read_earlier_json("provenance.json", [])}
    for row in collect_provenance(export.source, runs):
        rows[row["run"]] = row
    write_json(export.out / "provenance.json", complete_provenance(rows.values()))


def collect_provenance(source: Path, runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the provenance of `runs` and of the runs that their weights come from.

    source: the folder of the scale, with runs/.
    """
    rows = {run["run"]: select_provenance(run) for run in runs}
    waiting = list(rows.values())
    while waiting:
        parent = name_parent(waiting.pop())
        if not parent or parent in rows:
            continue
        folder = source / run_folder(Run.parse(parent))
        if (folder / "run.json").exists():
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
        name = "/".join(folder.parts[-4:])
        trained = read_run(folder)
        check_checkpoint(folder, trained)
        manifests = [
            folder / "run.json",
            folder / "eval/evaluation.json",
            results / data_folder(trained.spec.task) / "dataset.json",
        ]
        check_replaceable(out / name, {"*.safetensors", "*.json", "README.md"}, "run.json")
        with write_atomically(out / name) as temporary:
            shutil.copytree(folder / "checkpoint", temporary)
            for file in manifests:
                shutil.copyfile(file, temporary / file.name)
            model_card = make_model_card(catalogue, published, results, Run.parse(name))
            (temporary / "README.md").write_text(model_card, encoding="utf-8")
    return f"{len(folders)} trained models written to {out}"


def copy_displays(
    export: Export, kind: Literal["tables", "figures"], suffixes: Iterable[str]
) -> int:
    """Copy the measured tables or figures, and return how many there are.

    Papers without any have those of the earlier export.
    """
    measured = []
    for file in sorted(export.source.glob(f"{kind}/*/*.csv")):
        if kind == "tables":
            is_measured = _is_measured_table(file)
        else:
            is_measured = _is_measured_figure(file)
        if is_measured:
            measured.append(file)
    papers = {file.parent.name for file in measured}
    for folder in export.earlier.glob(f"{kind}/*"):
        if folder.name not in papers:
            shutil.copytree(folder, export.out / kind / folder.name)
    for file in measured:
        folder = export.out / kind / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in suffixes:
            shutil.copy(file.with_suffix(suffix), folder)
    return len(measured)


def _is_measured_table(file: Path) -> bool:
    return any(row["status"] in ("measured", "computed") for row in read_csv(file))


def _is_measured_figure(file: Path) -> bool:
    return any(row.get("published") != "True" for row in read_csv(file))


def copy_predictions(runs: Iterable[tuple[dict[str, Any], Path]], out: Path) -> None:
    """Add the predictions of the runs of primary claims to `out`, a file per variant.

    They have no texts of the data.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tables: dict[Path, list[pa.Table]] = {}
    for run, folder in runs:
        if not run.get("analysis_plans"):
            continue
        table = pq.read_table(folder / "eval/predictions.parquet")
        table = table.select([name for name in table.column_names if name in PREDICTION_COLUMNS])
        seeds = pa.repeat(parse_seed(folder.name), len(table))
        variant = "/".join(folder.parts[-4:-1])
        file = out / f"{variant}.parquet"
        tables.setdefault(file, []).append(table.add_column(0, "seed", seeds))
    for file, tables_of_seeds in tables.items():
        if file.exists():
            new_seeds = pa.array([table["seed"][0].as_py() for table in tables_of_seeds])
            earlier = pq.read_table(file, filters=~pc.field("seed").isin(new_seeds))
            tables_of_seeds.append(earlier)
        table = pa.concat_tables(tables_of_seeds)
        ids = [name for name in PREDICTION_IDS if name in table.column_names]
        table = table.sort_by([(name, "ascending") for name in (*ids, "seed")])
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table, file, compression="brotli", compression_level=11, use_dictionary=False
        )


def reduce_curve(run: dict[str, Any], file: Path) -> list[dict[str, str]]:
    """Keep the validation values of a training.csv, and at most MAX_LOSSES values of the loss.

    The losses are evenly spaced, and the last one is among them.
    """
    read_history(file)  # checks the numbers
    curve = read_csv(file)
    loss_steps = [row["step"] for row in curve if row["name"] == "loss"]
    interval = max(1, math.ceil(len(loss_steps) / MAX_LOSSES))
    loss_steps.reverse()
    kept_steps = set(loss_steps[::interval])
    parsed = Run.parse(run["run"])
    names = {name: str(value) for name, value in parsed._asdict().items()}
    rows = []
    for row in curve:
        is_kept_loss = row["name"] == "loss" and row["step"] in kept_steps
        if is_kept_loss or row["name"].startswith("valid_"):
            value = f"{float(row['value']):.6g}"
            rows.append(names | {"step": row["step"], "name": row["name"], "value": value})
    return rows


def average_draws(scores: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Average the scores of a run over the draws of an intervention, which are hundreds of rows."""
    values_by_row: dict[tuple, list[str]] = {}
    for row in scores:
        row_without_draw = row | {"value": "", "intervention_seed": ""}
        values_by_row.setdefault(tuple(row_without_draw.items()), []).append(row["value"])
    averaged = []
    for row, values in values_by_row.items():
        if len(set(values)) == 1:
            value = values[0]  # as it is written
        else:
            value = str(fmean(map(float, values)))
        averaged.append(dict(row) | {"value": value})
    return averaged


def merge_draws(rows: list[dict[str, str]], earlier: Path, out: Path) -> None:
    """Write the scores of single draws to `out`, from which their coefficient of variation follows.

    Runs that `rows` do not have are those of `earlier`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.string() for name in DRAW_COLUMNS}
    columns |= {name: pa.int64() for name in ("seed", "n", "layer", "intervention_seed")}
    columns |= {name: pa.float64() for name in ("value", "rate")}
    schema = pa.schema(columns)
    texts = {}
    for name in DRAW_COLUMNS:
        column = [row.get(name) or None for row in rows]
        texts[name] = pa.array(column, pa.string())
    tables = [pa.table(texts).cast(schema)]
    file = earlier / "draws.parquet"
    if file.exists():
        new_runs = set(map(_run_of, rows))
        earlier_draws = pq.read_table(file).cast(schema)
        is_kept = [_run_of(row) not in new_runs for row in earlier_draws.to_pylist()]
        tables.append(earlier_draws.filter(pa.array(is_kept, pa.bool_())))
    table = pa.concat_tables(tables)
    if len(table):
        ids = [name for name in DRAW_COLUMNS if name not in ("value", "n")]
        table = table.sort_by([(name, "ascending") for name in ids])
        pq.write_table(table, out / "draws.parquet", compression="brotli", compression_level=11)


def _run_of(row: dict[str, str]) -> Run:
    return Run(row["task"], row["method"], row["variant"], int(row["seed"]))
