"""Copy measured results to a folder under version control.

Scores, learning curves and provenance of every complete run, tables, figures, claims and analyses.
"""

import argparse
import math
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
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
from workflow_scripts.common.result_folders import (
    RESULTS,
    DisplayFiles,
    ExportFolder,
    ReleaseFolder,
    ResultsFolder,
    ScaleFolder,
)
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.config.catalogue import Catalogue, find_scale
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.exported import complete_provenance, name_parent, select_provenance
from workflow_scripts.provenance.recorded_digests import require_undamaged
from workflow_scripts.reporting.claims.outcome import NOT_RUN
from workflow_scripts.reporting.committed.exported_items import (
    ExportedRun,
    add_intervention_answers,
    add_predictions,
    average_draws,
    group_planned_runs,
    read_run_columns,
    write_draws,
)
from workflow_scripts.reporting.pages.trained_models import copy_models, write_release
from workflow_scripts.results import read_run_files
from workflow_scripts.training.history import read_history

MAX_LOSSES = 30  # in the curve of a run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--scale", required=True)
    parser.add_argument("--results", type=Path, default=RESULTS.path, metavar="DIR")
    parser.add_argument("--out", type=Path, default=RESULTS.reference, metavar="DIR")
    checkpoints = "write only trained models: DIR/<run>, each loads on its own"
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help=checkpoints)
    release = "with --checkpoints: also an archive of each, as the files of a release on GitHub"
    parser.add_argument("--release", type=Path, metavar="DIR", help=release)
    parser.add_argument("--runs", nargs="+", metavar="RUN", help="with --checkpoints: only these")


def main(args: argparse.Namespace) -> None:
    """Copy `<results>/<scale>` to `<out>/<scale>`, and say what was copied."""
    catalogue = load_catalogue()
    find_scale(catalogue, args.scale)
    if (args.release or args.runs) and not args.checkpoints:
        raise UserError("--release and --runs are of trained models; name --checkpoints, too")
    if args.checkpoints:
        print(copy_checkpoints(catalogue, args))
    else:
        print(copy_results(args.scale, args.results, args.out))


@dataclass(frozen=True)
class Export:
    """An export of the results of a scale.

    earlier: the export that this one replaces, if there is one. out: what is written here replaces
    `earlier`. Papers and runs without new results are copied from there unchanged.
    """

    source: ScaleFolder
    earlier: ExportFolder
    out: ExportFolder

    def find_earlier(self, file: Path) -> Path:
        """Return where the earlier export has a file of `out`."""
        return self.earlier.path / file.relative_to(self.out.path)

    def merge_rows(
        self, file: Path, rows: list[dict[str, str]], key: Callable[[dict[str, str]], Any]
    ) -> None:
        """Write `rows`, and the earlier rows with another key, to a CSV file of `out` by `key`."""
        new_keys = set(map(key, rows))
        merged = list(rows)
        for row in read_csv(self.find_earlier(file)):
            if key(row) not in new_keys:
                merged.append(row)
        columns: dict[str, None] = {}  # earlier rows may lack some
        for row in merged:
            columns |= dict.fromkeys(row)
        merged.sort(key=key)
        if merged:
            write_csv(file, columns, merged)

    def keep_earlier(self, path: Path) -> None:
        """Copy a file or folder of `out` from the earlier export, if it has it."""
        earlier = self.find_earlier(path)
        if earlier.is_dir():
            shutil.copytree(earlier, path)
        elif earlier.exists():
            shutil.copy(earlier, path)


def copy_results(scale: str, results: Path, out_folder: Path) -> str:
    """Copy `<results>/<scale>` to `<out_folder>/<scale>`.

    There, papers and runs without new results stay unchanged. A run is copied when it is complete,
    even before a table can be made of it. Raises UserError if no run is complete, and for files
    that are not as their jobs have written them.
    """
    source = ResultsFolder(results).scale(scale)
    target = ExportFolder(out_folder / scale)
    folders = source.list_scored_runs()
    runs = [ExportedRun(folder, read_run_files(folder)) for folder in folders]
    if not runs:
        raise UserError(
            f"{source.path} has no scored run; make one with ./reproduce --scale {scale}"
        )
    require_undamaged(list_copied_files(source))
    check_replaceable(target.path, target.names)
    with write_atomically(target.path) as out:
        out.mkdir()
        export = Export(source, target, ExportFolder(out))
        tables = copy_tables(export)
        figures = copy_figures(export)
        copy_claims(export)
        copy_scores(export, runs)
        copy_curves(export, runs)
        copy_analyses(export)
        copy_predictions(export, runs)
        copy_intervention_answers(export, runs)
        export.keep_earlier(export.out.devices)
        export.keep_earlier(export.out.answers_folder)
        export.keep_earlier(export.out.models)
        copy_reduced_datasets(export)
        copy_provenance(export, runs)
    made = [count_nouns(tables, "table"), count_nouns(figures, "figure")]
    return f"{', '.join(made)} and {count_nouns(len(runs), 'run')} written to {target.path}"


def list_copied_files(source: ScaleFolder) -> set[Path]:
    """List what an export is made of, with the manifests and records that have its sha256.

    Weights and data are not copied.
    """
    files = {source.claims.table, source.claims.sides, source.claims.record}
    for display in (*source.list_tables(), *source.list_figures()):
        files.update(display.files)
    for data in source.list_data():
        files |= {data.manifest, data.record}
    for analysis in source.list_analyses():
        files |= {analysis.scores, analysis.manifest, analysis.record}
    for run in source.list_trained_runs():
        files |= {run.curve, run.manifest, run.record}
    for run in source.list_scored_runs():
        scored, changed = run.evaluation, run.interventions
        files |= {scored.scores, scored.predictions, scored.manifest, scored.record}
        files |= {changed.scores, changed.answers, changed.manifest, changed.record}
    return files


def copy_claims(export: Export) -> None:
    """Write the verdicts and the sides of claims.

    A claim whose effect was measured earlier, and is not by these results, keeps its rows.
    """
    source = export.source.claims
    out = export.out.claims
    claims = read_csv(source.table, ["paper", "claim"])
    kept = find_kept_claims(claims, read_csv(export.find_earlier(out.table)))
    order = {name_claim(row): number for number, row in enumerate(claims)}
    for file, target in ((source.table, out.table), (source.sides, out.sides)):
        rows = [row for row in read_csv(file, ["paper"]) if name_claim(row) not in kept]
        rows += [row for row in read_csv(export.find_earlier(target)) if name_claim(row) in kept]
        rows.sort(key=lambda row: order[name_claim(row)])
        export.merge_rows(target, rows, lambda row: row["paper"])


def find_kept_claims(
    rows: Iterable[dict[str, str]], earlier_rows: Iterable[dict[str, str]]
) -> set[tuple[str, str]]:
    """Find the claims of `rows` that have an effect in the earlier rows alone.

    They are not run by these results, or not with all planned seeds.
    """
    had_effect = {name_claim(row) for row in earlier_rows if row.get("effect")}
    kept = set()
    for row in rows:
        seeds_are_missing = int(row.get("n_seeds") or 0) < int(row.get("n_planned") or 0)
        is_open = row["verdict"] == NOT_RUN or seeds_are_missing
        if is_open and not row.get("effect") and name_claim(row) in had_effect:
            kept.add(name_claim(row))
    return kept


def name_claim(row: dict[str, str]) -> tuple[str, str]:
    """Return the paper and the claim of a row."""
    return row["paper"], row["claim"]


def copy_scores(export: Export, runs: Iterable[ExportedRun]) -> None:
    """Write the scores of runs, averaged over draws of interventions, and those of single draws."""
    scores = []
    for run in runs:
        for file in run.folder.list_score_files():
            scores += read_csv(file, Run._fields)
    export.merge_rows(export.out.scores, average_draws(scores), read_run_columns)
    draws = [row for row in scores if row.get("intervention_seed")]
    write_draws(draws, export.earlier.draws, export.out.draws)


def copy_curves(export: Export, runs: Iterable[ExportedRun]) -> None:
    """Write the learning curves of the trainings. Given weights have none."""
    curves = []
    for run in runs:
        if run.folder.manifest.exists():
            curves += reduce_curve(run.run, run.folder.curve)
    export.merge_rows(export.out.curves, curves, read_run_columns)


def copy_analyses(export: Export) -> None:
    """Write the scores of all analyses to one file."""
    scores = []
    for folder in export.source.list_analyses():
        names = {"paper": folder.paper, "analysis": folder.name}
        for row in read_csv(folder.scores):
            scores.append(names | row)
    export.merge_rows(
        export.out.analyses, average_draws(scores), lambda row: (row["paper"], row["analysis"])
    )


def copy_reduced_datasets(export: Export) -> None:
    """Write what was reduced in the data sets that are not those of the papers."""
    reduced = {}
    if export.earlier.datasets.exists():
        reduced = read_json(export.earlier.datasets)
    for folder in export.source.list_data():
        dataset = read_json(folder.manifest)
        if dataset.get("protocol") == "reduced":
            reduced[folder.task] = {name: dataset[name] for name in ("protocol", "notes")}
    if reduced:
        write_json(export.out.datasets, reduced)


def copy_provenance(export: Export, runs: Iterable[ExportedRun]) -> None:
    """Write how each run was made, of runs without new results as the earlier export has it."""
    rows = {}
    if export.earlier.provenance.exists():
        rows = {row["run"]: row for row in read_json(export.earlier.provenance)}
    for row in collect_provenance(export.source, runs):
        rows[row["run"]] = row
    write_json(export.out.provenance, complete_provenance(rows.values()))


def collect_provenance(source: ScaleFolder, runs: Iterable[ExportedRun]) -> list[dict[str, Any]]:
    """Return the provenance of `runs` and of the runs that their weights come from."""
    rows = {run.content["run"]: select_provenance(run.content) for run in runs}
    waiting = list(rows.values())
    while waiting:
        parent = name_parent(waiting.pop())
        if not parent or parent in rows:
            continue
        folder = source.run(parent)
        if folder.manifest.exists():
            rows[parent] = select_provenance(read_run_files(folder))
            waiting.append(rows[parent])
    return list(rows.values())


def copy_checkpoints(catalogue: Catalogue, args: argparse.Namespace) -> str:
    """Write trained models, with `--release` also as archives, and say what was written.

    Raises UserError if there is none, or if a file of one was changed.
    """
    results = ResultsFolder(args.results).scale(args.scale)
    models = copy_models(catalogue, results, args.runs, args.checkpoints)
    said = f"{count_nouns(len(models), 'trained model')} written to {args.checkpoints}"
    if args.release:
        write_release(models, ReleaseFolder(args.release))
        said += f", and an archive of each to {args.release}"
    return said


def copy_tables(export: Export) -> int:
    """Copy the measured tables, and return how many there are."""
    tables = export.source.list_tables()
    measured = [table for table in tables if _is_measured_table(table.csv)]
    _keep_other_papers(export, export.out.tables, measured)
    for table in measured:
        copy = export.out.table(table.folder.name, table.name)
        copy.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(table.csv, copy.csv)
        shutil.copy(table.markdown, copy.markdown)
        shutil.copy(table.latex, copy.latex)
    return len(measured)


def copy_figures(export: Export) -> int:
    """Copy the measured figures, and return how many there are."""
    measured = [
        figure for figure in export.source.list_figures() if _is_measured_figure(figure.csv)
    ]
    _keep_other_papers(export, export.out.figures, measured)
    for figure in measured:
        copy = export.out.figure(figure.folder.name, figure.name)
        copy.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(figure.svg, copy.svg)
        shutil.copy(figure.csv, copy.csv)
    return len(measured)


def _keep_other_papers(export: Export, folder: Path, measured: Iterable[DisplayFiles]) -> None:
    """Copy the tables or figures of the papers without any measured ones from the earlier export.

    folder: that of the tables or figures of all papers in `export.out`.
    """
    papers = {display.folder.name for display in measured}
    for earlier in export.find_earlier(folder).glob("*"):
        if earlier.name not in papers:
            export.keep_earlier(folder / earlier.name)


def _is_measured_table(file: Path) -> bool:
    return any(row["status"] in ("measured", "computed") for row in read_csv(file))


def _is_measured_figure(file: Path) -> bool:
    return any(row.get("published") != "True" for row in read_csv(file))


def copy_predictions(export: Export, runs: Iterable[ExportedRun]) -> None:
    """Write the predictions of the runs of primary claims, a file per variant.

    Those are the runs that an analysis plan lists. Files of an earlier export are moved away, as
    all that an export replaces. `add_predictions` leaves out the texts of the data.
    """
    export.keep_earlier(export.out.predictions)
    for variant, runs_with_seeds in group_planned_runs(runs).items():
        add_predictions(export.out.predictions_of(variant), runs_with_seeds)


def copy_intervention_answers(export: Export, runs: Iterable[ExportedRun]) -> None:
    """Write the answers under interventions of the runs of primary claims, a file per variant."""
    export.keep_earlier(export.out.interventions)
    for variant, runs_with_seeds in group_planned_runs(runs).items():
        add_intervention_answers(export.out.interventions_of(variant), runs_with_seeds)


def reduce_curve(run: Run, file: Path) -> list[dict[str, str]]:
    """Keep the validation values of a training.csv, and at most MAX_LOSSES values of the loss.

    The losses are evenly spaced, and the last one is among them.
    """
    read_history(file)  # checks the numbers
    curve = read_csv(file)
    loss_steps = [row["step"] for row in curve if row["name"] == "loss"]
    interval = max(1, math.ceil(len(loss_steps) / MAX_LOSSES))
    loss_steps.reverse()
    kept_steps = set(loss_steps[::interval])
    names = {name: str(value) for name, value in run._asdict().items()}
    rows = []
    for row in curve:
        is_kept_loss = row["name"] == "loss" and row["step"] in kept_steps
        if is_kept_loss or row["name"].startswith("valid_"):
            value = f"{float(row['value']):.6g}"
            rows.append(names | {"step": row["step"], "name": row["name"], "value": value})
    return rows
