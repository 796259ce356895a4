"""Score the predictions of an export again, where their right answers are on this machine.

Answers under interventions need no data: the export has whether each is right.
"""

import importlib
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.parquet_files import read_parquet
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.specs import resolve_evaluation, resolve_run
from workflow_scripts.evaluation.scores import Score, ScoreKey
from workflow_scripts.reporting.claims.outcome import Outcome
from workflow_scripts.reporting.committed.recomputing import Fault
from workflow_scripts.reporting.committed.rescoring_answers import score_answers
from workflow_scripts.reporting.committed.restoring import RestoredExport
from workflow_scripts.reporting.evidence.selected_scores import load_scores, select_scores
from workflow_scripts.reporting.tables.cells import Cell, average_repetitions
from workflow_scripts.tasks.packages import FOLDER

if TYPE_CHECKING:
    import pyarrow

# Scores are written with all their digits. The order of additions may change the last ones.
TOLERANCE = 1e-9


@dataclass
class Rescored:
    """What the predictions of an export's runs say of its scores.

    scores: the scores of each variant that follow from predictions, with the values that follow.
    faults: one for each run with another value in the export. runs: those with predictions and
    answers. unanswered: tasks with predictions that could not be scored, and why.
    """

    scores: dict[VariantKey, list[Score]] = field(default_factory=lambda: defaultdict(list))
    faults: list[Fault] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    unanswered: dict[str, str] = field(default_factory=dict)

    def add_run(self, run: Run) -> None:
        """Note that a run has scores that follow from predictions."""
        if run not in self.runs:
            self.runs.append(run)

    def count_scores(self) -> int:
        """Return the number of scores that were computed again."""
        return sum(map(len, self.scores.values()))

    def find_values(self, cell: Cell) -> dict[int, float]:
        """Return seed -> value of a cell by the predictions; none of a gain over a variant."""
        if not cell.selection.is_of_runs or cell.over is not None:
            return {}
        scores = self.scores.get(cell.variant_key, [])
        selected = select_scores(scores, cell.selection)
        values = average_repetitions(cell, selected)
        return {seed: value for seed, value in values.items() if seed in cell.seeds}

    def has_all_values(self, outcome: Outcome) -> bool:
        """Whether every value that a claim compares follows from predictions."""
        cells = [cell for side in outcome.sides for cell in side.cells]
        return all(
            cell.seeds and self.find_values(cell).keys() == cell.seeds.keys() for cell in cells
        )


@dataclass(frozen=True)
class Rescoring:
    """How predictions are scored: those of an export, for these metrics.

    uses_prepared_data: whether right answers are also read from results/<scale>/data, which takes
    longer.
    """

    restored: RestoredExport
    metrics: frozenset[str]
    uses_prepared_data: bool

    def find_answers(self, task: str) -> Path | None:
        """Return the folder with the right answers of a task; None if they are not here."""
        committed = self.restored.export.answers(task).path
        if committed.exists():
            return committed
        prepared = RESULTS.scale(self.restored.scale).data(task)
        if self.uses_prepared_data and prepared.manifest.exists():
            return prepared.path
        return None

    def is_committed(self, answers: Path) -> bool:
        """Whether right answers are those of the export; prepared data may be other ones."""
        return answers.is_relative_to(self.restored.export.path)


def describe_unanswered(task: str, reason: str, scale: str) -> list[str]:
    """Return the lines that say why predictions of a task were not scored, and how to get there."""
    target = RESULTS.scale(scale).data(task).manifest
    return [f"{task}: from scores only, {reason}", f"  ./reproduce {target}  # gets them"]


def rescore_runs(rescoring: Rescoring, runs: Iterable[Run]) -> Rescored:
    """Score the predictions of `runs` that are in an export with predictions of their variant."""
    rescored = Rescored()
    restored = rescoring.restored
    runs_of_variant: dict[VariantKey, list[Run]] = defaultdict(list)
    for run in runs:
        if run.seed in restored.seeds.get(run.variant_key, ()):
            runs_of_variant[run.variant_key].append(run)
    for variant, of_variant in runs_of_variant.items():
        rescore_interventions(restored, variant, of_variant, rescored)
        file = restored.export.predictions_of(variant)
        if not file.exists():
            continue
        answers = rescoring.find_answers(variant.task)
        if answers is None:
            rescored.unanswered[variant.task] = "the right answers are not here"
            continue
        rescore_variant(rescoring, of_variant, answers, rescored)
    return rescored


def rescore_interventions(
    restored: RestoredExport, variant: VariantKey, runs: Iterable[Run], rescored: Rescored
) -> None:
    """Score the answers of runs of a variant under interventions, if they are in the export."""
    file = restored.export.interventions_of(variant)
    if not file.exists():
        return
    table = read_parquet(file).to_pandas()
    for run in runs:
        answers = table[table["seed"] == run.seed]
        scores_file = restored.results.run(run).interventions.scores
        if answers.empty or not scores_file.exists():
            continue
        scores = load_scores(scores_file)
        values = score_answers(answers, str(scores[0].split))
        rescored.add_run(run)
        compare_scores(run, scores, values, rescored)


def rescore_variant(
    rescoring: Rescoring, runs: list[Run], answers: Path, rescored: Rescored
) -> None:
    """Score the predictions of runs of one variant, and add what they say."""
    import pyarrow.compute as pc

    file = rescoring.restored.export.predictions_of(runs[0].variant_key)
    table = read_parquet(file)
    for run in runs:
        of_run = table.filter(pc.field("seed") == run.seed)
        if not len(of_run):
            continue
        try:
            values = score_run(rescoring, run, of_run, answers)
        except (ValueError, KeyError) as error:
            if rescoring.is_committed(answers):
                rescored.faults.append(Fault(str(run), f"{file.name}: {error}"))
            else:
                rescored.unanswered[run.task] = f"{answers} has other data ({error})"
            continue
        rescored.add_run(run)
        scores = load_scores(rescoring.restored.results.run(run).evaluation.scores)
        compare_scores(run, scores, values, rescored)


def score_run(
    rescoring: Rescoring, run: Run, predictions: "pyarrow.Table", answers: Path
) -> dict[ScoreKey, float]:
    """Score the predictions of a run, by split and readout.

    Raises ValueError if they are not those of the answers.
    """
    import pyarrow.compute as pc

    catalogue = rescoring.restored.catalogue
    scale = rescoring.restored.scale
    kind = resolve_run(catalogue, run, scale).kind
    if not (FOLDER / "tasks" / kind / "rescoring.py").exists():
        return {}
    module = importlib.import_module(f"workflow_scripts.tasks.{kind}.rescoring")
    settings = resolve_evaluation(catalogue, run, scale)
    names = [name for name in ("split", "readout") if name in predictions.column_names]
    values: dict[ScoreKey, float] = {}
    for group in predictions.select(names).group_by(names).aggregate([]).to_pylist():
        part = predictions
        for name, value in group.items():
            condition = pc.field(name).is_null() if value is None else pc.field(name) == value
            part = part.filter(condition)
        scores: list[Score] = module.score_predictions(
            part, answers, group["split"], settings, rescoring.metrics
        )
        for score in scores:
            readout = score.readout or group.get("readout")
            key = ScoreKey(group["split"], score.subset, score.metric, readout)
            values[key] = score.value
    return values


def compare_scores(
    run: Run, scores: Iterable[Score], values: dict[ScoreKey, float], rescored: Rescored
) -> None:
    """Compare scores of a run in the export with those by its predictions."""
    differences = []
    for score in scores:
        if score.key not in values:
            continue
        value = values[score.key]
        rescored.scores[run.variant_key].append(score._replace(value=value))
        if not math.isclose(score.value, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            differences.append(f"{score.key} is {score.value:.6g}, by its predictions {value:.6g}")
    if differences:
        more = f" (and {len(differences) - 1} more scores)" if len(differences) > 1 else ""
        rescored.faults.append(Fault(str(run), differences[0] + more))


def list_compared_runs(outcomes: Iterable[Outcome]) -> list[Run]:
    """Return the runs whose scores claims compare, without those of analyses as a whole."""
    runs: dict[Run, None] = {}
    for cell in list_compared_cells(outcomes):
        if not cell.selection.is_of_runs:
            continue
        for seed in cell.seeds:
            runs[cell.variant_key.make_run(seed)] = None
    return list(runs)


def list_compared_metrics(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """Return the metrics that claims compare."""
    return frozenset(cell.metric for cell in list_compared_cells(outcomes))


def list_compared_cells(outcomes: Iterable[Outcome]) -> list[Cell]:
    """Return the cells of both sides of claims."""
    cells: list[Cell] = []
    for outcome in outcomes:
        for side in outcome.sides:
            cells += side.cells
    return cells
