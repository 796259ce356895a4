"""The scores of an export, in the layout of results/<scale>: what judging and tables read."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    MissingFileError,
    format_csv,
    read_csv,
    read_json,
    write_json,
)
from workflow_scripts.common.result_folders import ExportFolder, RunFolder, ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.specs import find_parent_run, read_precision, resolve_run
from workflow_scripts.evaluation.scores import SCORE_COLUMNS
from workflow_scripts.reporting.committed.counted_seeds import SeedsOfVariant, count_seeds
from workflow_scripts.reporting.evidence.paper_results import PaperResults

ScoresOfRun = dict[tuple[Run, bool], list[dict[str, str]]]  # bool: of interventions


@dataclass(frozen=True)
class RestoredExport:
    """An export whose scores are also in files of `results`. seeds: those with a score."""

    catalogue: Catalogue
    scale: str
    export: ExportFolder
    results: ScaleFolder
    seeds: SeedsOfVariant

    def get_paper_results(self, paper: str) -> PaperResults:
        """Return the results of one paper."""
        return PaperResults(self.catalogue, paper, self.scale, self.results)


@dataclass(frozen=True)
class CountedRuns:
    """The runs of an export that count for a paper's primary claims, and for all else."""

    primary: list[Run]
    others: list[Run]


def restore_export(
    catalogue: Catalogue, export: ExportFolder, folder: Path, paper: str | None = None
) -> RestoredExport:
    """Write the scores of an export to `folder`, as those of the scale that it is named after.

    With `paper` only those of its runs, which takes less time. Raises UserError if the export has
    no scores, or if there is no such scale.
    """
    scale = export.path.resolve().name
    if scale not in catalogue.scales:
        known = ", ".join(catalogue.scales)
        raise UserError(f"{export.path}: a folder of results has the name of a scale: {known}")
    for file in (export.claims.table, export.claims.sides, export.scores):
        if not file.exists():
            raise MissingFileError(file)
    results = ScaleFolder(folder)
    scores = read_exported_scores(export)
    seeds = collect_seeds(scores)
    counted = None if paper is None else count_seeds(catalogue, scale, paper, seeds)
    for (run, is_intervened), rows in scores.items():
        if counted is None or run.variant_key in counted:
            write_run_scores(results.run(run), is_intervened, rows)
    write_analyses(catalogue, export, results)
    if export.datasets.exists():
        for task, dataset in read_json(export.datasets).items():
            write_json(results.data(task).manifest, dataset)
    return RestoredExport(catalogue, scale, export, results, seeds)


def read_exported_scores(export: ExportFolder) -> ScoresOfRun:
    """Read the scores of each run, those with an intervention apart."""
    rows_of_run: ScoresOfRun = defaultdict(list)
    for row in read_csv(export.scores, SCORE_COLUMNS):
        run = Run(row["task"], row["method"], row["variant"], int(row["seed"]))
        rows_of_run[run, bool(row["intervention"])].append(row)
    return rows_of_run


def collect_seeds(scores: ScoresOfRun) -> SeedsOfVariant:
    """Return the seeds of each variant that have a score."""
    seeds: SeedsOfVariant = defaultdict(set)
    for run, _ in scores:
        seeds[run.variant_key].add(run.seed)
    return dict(seeds)


def write_run_scores(folder: RunFolder, is_intervened: bool, rows: list[dict[str, str]]) -> None:
    """Write the scores of a run, or those under interventions."""
    file = folder.evaluation.scores
    if is_intervened:
        file = folder.interventions.scores
    write_score_file(file, rows)


def write_analyses(catalogue: Catalogue, export: ExportFolder, results: ScaleFolder) -> None:
    """Write the scores of each analysis that a display shows; without rows if it is not there."""
    rows_of_analysis: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    if export.analyses.exists():
        for row in read_csv(export.analyses, ("paper", "analysis", *SCORE_COLUMNS)):
            rows_of_analysis[row["paper"], row["analysis"]].append(row)
    for key, paper in catalogue.papers.items():
        names: dict[str, None] = {}
        for display in paper.displays.values():
            names |= dict.fromkeys(display.list_analyses())
        for name in names:
            file = results.analysis(key, name).scores
            write_score_file(file, rows_of_analysis[key, name])


def write_score_file(file: Path, rows: Iterable[dict[str, str]]) -> None:
    """Write rows of a CSV with further columns as scores.csv."""
    file.parent.mkdir(parents=True, exist_ok=True)
    selected = [{name: row[name] for name in SCORE_COLUMNS} for row in rows]
    # Not atomically: there are thousands of files, in a folder that is soon removed.
    file.write_text(format_csv(SCORE_COLUMNS, selected), encoding="utf-8", newline="")


def write_manifests(restored: RestoredExport, runs: Iterable[Run]) -> None:
    """Write what a table says of each training: of `runs`, or of those that made their weights.

    Steps and parameters are only in HTML, which an export does not have: they are 0.
    """
    catalogue = restored.catalogue
    recorded: dict[str, dict[str, Any]] = {}
    if restored.export.provenance.exists():
        recorded = {row["run"]: row for row in read_json(restored.export.provenance)}
    trained: dict[Run, None] = {}
    for run in runs:
        training: Run | None = run
        if run.weights:
            training = find_parent_run(catalogue, run, restored.scale)
        if training is not None:
            trained[training] = None
    for run in trained:
        precision = recorded.get(str(run), {}).get("precision")
        if not precision:
            precision = read_precision(resolve_run(catalogue, run, restored.scale).to_json())
        manifest = {
            "spec": {"training": {"precision": precision}},
            "protocol": catalogue.scales[restored.scale].protocol,
            "steps": 0,
            "parameters": 0,
        }
        write_json(restored.results.run(run).manifest, manifest)


def list_counted_runs(restored: RestoredExport, paper: str) -> CountedRuns:
    """Return the runs of an export that count for a paper: see `CountedSeeds`."""
    counted = count_seeds(restored.catalogue, restored.scale, paper, restored.seeds)
    primary: list[Run] = []
    others: list[Run] = []
    for variant, seeds in counted.items():
        primary += [variant.make_run(seed) for seed in sorted(seeds.primary)]
        others += [variant.make_run(seed) for seed in sorted(seeds.others)]
    return CountedRuns(primary, others)
