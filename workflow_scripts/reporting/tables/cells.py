"""Cells of tables: the published number next to the scores of our seeds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import START, VariantKey
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.config.display_schema import SELECTORS, TableCell, TableDisplay
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.published_numbers import Key, Published
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.evaluation.statistics import Summary, summarise_seeds
from workflow_scripts.provenance.unfinished import Cause
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.evidence.pairing import compute_gains, require_same_weights
from workflow_scripts.reporting.evidence.selected_scores import (
    AbsentScore,
    ScoreSelection,
    has_empty_item_set,
    make_selection,
    matches_intervention,
    select_scores,
)

# Statuses of cells.
MEASURED = "measured"
COMPUTED = "computed"
PUBLISHED_ONLY = "published only"
NOT_RUN = "not run"
WITHHELD = "withheld"  # a part of the planned seeds: shown when all are there
# Measured, but without a value: of right answers of which there are none, of equal cosines.
UNDEFINED = "undefined"
# Repetitions of an intervention on one trained model: what a cell does not fix of these it averages
# over, by seed.
REPEATED = ("intervention_seed", "pooling")


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Measured cells have `seeds` (seed -> value), `weights` (source of the initial weights) and
    `block` of an intervention; computed ones have `computed`, a number of an analysis without
    seeds. `over`: the variant over which `seeds` are gains. `cause`: why seeds of the cell are not
    run, although they were asked for. Withheld cells have what measured ones have, for primary
    claims to count their seeds; nothing of it is shown.
    """

    paper: str
    display: str
    row: str
    column: str
    metric: str
    unit: str
    decimals: int
    status: str
    note: str = ""
    published: Published | None = None
    selection: ScoreSelection = field(default_factory=ScoreSelection)
    over: str | None = None
    seeds: dict[int, float] = field(default_factory=dict)
    protocol: str = ""
    computed: float | None = None
    weights: str = ""
    block: int | None = None
    cause: Cause | None = None

    @property
    def key(self) -> str:
        """The cell's name in claims.yaml and published.csv: display/row/column/metric."""
        return "/".join((self.display, self.row, self.column, self.metric))

    @property
    def place(self) -> str:
        """The cell's place in the files, for messages."""
        return f"papers/{self.paper}/displays.yaml: cell {self.key}"

    @property
    def variant_key(self) -> VariantKey:
        """The variant whose scores a measured cell shows."""
        return self.selection.variant_key

    @cached_property
    def summary(self) -> Summary | None:
        """Return mean, standard deviation and interval over seeds; None unless measured."""
        if not self.seeds:
            return None
        return summarise_seeds(list(self.seeds.values()))

    @property
    def mean(self) -> float:
        """Return the mean over seeds, or the computed number.

        Raises ValueError if the cell has neither.
        """
        if self.computed is not None:
            return self.computed
        if self.summary is None:
            raise ValueError(f"{self.place}: no number")
        return self.summary.mean

    @property
    def difference(self) -> float | None:
        """Return reproduced minus published, for numbers of the paper's own protocol only."""
        if self.status != MEASURED or self.protocol != "paper":
            return None
        if self.published is None or self.published.value is None:
            return None
        return self.mean - self.published.value


def make_cells(name: str, display: TableDisplay, evidence: Evidence) -> list[Cell]:
    """Make the cells of a table, row by row.

    Those with neither a published number nor a run are left out. Raises UserError if a cell selects
    two scores of one seed, or no score of a finished run.
    """
    cells = [make_cell(name, entry, evidence) for entry in display.cells]
    return [cell for cell in cells if cell.published or cell.status != PUBLISHED_ONLY]


def make_cell(table: str, entry: TableCell, evidence: Evidence) -> Cell:
    """Make a cell: of a published number, of an analysis as a whole, or of the scores of runs."""
    key = Key(table, entry.row, entry.column, entry.metric or "")
    published = evidence.published.get(key)
    cell = Cell(
        evidence.paper, *key, entry.unit or "", entry.decimals, PUBLISHED_ONLY, published=published
    )
    if entry.analysis is not None and entry.method is None:
        return make_computed_cell(cell, entry, evidence)
    variant = entry.variant_key
    if variant is None:
        return cell
    return make_measured_cell(cell, entry, variant, evidence)


def make_computed_cell(cell: Cell, entry: TableCell, evidence: Evidence) -> Cell:
    """Make a cell that an analysis computes as a whole: the one score that the cell selects.

    Raises UserError if it selects several.
    """
    selection = make_selection(entry)
    cause = evidence.get_analysis_cause(entry.analysis)
    selected_cell = replace(cell, selection=selection, cause=cause)
    scores_of_analysis = evidence.analyses.get(entry.analysis or "", [])
    scores = select_scores(scores_of_analysis, selection)
    if len(scores) > 1:
        raise UserError(f"{cell.place}: {len(scores)} scores; fix more of them")
    if scores:
        reasons = evidence.find_withheld_in(entry.analysis or "")
        if reasons:
            return replace(selected_cell, status=WITHHELD, note=next(iter(reasons.values())))
        (score,) = scores
        return replace(
            selected_cell, status=COMPUTED, computed=score.value, protocol=score.protocol
        )
    if any(score.subset == entry.subset for score in scores_of_analysis):
        return replace(selected_cell, status=NOT_RUN, note="does not apply")
    return explain_not_run(selected_cell, evidence.scale)


def explain_not_run(cell: Cell, scale: str) -> Cell:
    """Return a cell without scores: they were asked for, or the scale does not measure them."""
    if cell.cause:
        return replace(cell, status=NOT_RUN, note=f"not run: {cell.cause.word}")
    return replace(cell, status=NOT_RUN, note=f"not run at {scale}")


def make_measured_cell(
    cell: Cell, entry: TableCell, variant: VariantKey, evidence: Evidence
) -> Cell:
    """Make a cell from one score per seed of a variant; with `over`, from gains over another one.

    The scores are those of the runs, or of an analysis of them. Scores of the baseline, the variant
    that `over` names, are always those of runs. The note counts the seeds for which the variant's
    score is undefined, and those that are not run although they were asked for. If variant or
    baseline is withheld, so is the cell, which keeps its seeds.
    """
    selection = make_selection(entry, variant)
    causes = evidence.list_causes(variant, entry.intervention is not None)
    cause = evidence.get_analysis_cause(entry.analysis) or next(iter(causes), None)
    selected_cell = replace(cell, selection=selection, cause=cause)
    scores_of_variant = list_variant_scores(entry, variant, evidence)
    absent = [score for score in evidence.absent.get(variant, []) if score.matches(selection)]
    scores = select_scores(scores_of_variant, selection)
    if not scores:
        return explain_missing_score(
            selected_cell, entry, scores_of_variant, absent, evidence.scale
        )

    values_by_seed = average_repetitions(selected_cell, scores)
    notes = [describe_undefined_seeds(absent, values_by_seed), describe_unfinished_seeds(causes)]
    measured_cell = replace(
        selected_cell,
        status=MEASURED,
        note="; ".join(filter(None, notes)),
        seeds=dict(sorted(values_by_seed.items())),
        protocol=find_worst_protocol(*(score.protocol for score in scores)),
        weights=evidence.weights.get(variant, ""),
    )
    if entry.intervention is not None and entry.layer is not None:
        measured_cell = replace(measured_cell, block=scores[0].layer)
    if entry.over is not None:
        baseline = variant._replace(variant=entry.over)
        return compare_with_baseline(measured_cell, selected_cell, entry, baseline, evidence)
    return hide_withheld_cell(measured_cell, entry, [variant], evidence)


def compare_with_baseline(
    measured_cell: Cell,
    selected_cell: Cell,
    entry: TableCell,
    baseline: VariantKey,
    evidence: Evidence,
) -> Cell:
    """Make the cell of gains over `baseline` of a measured cell.

    selected_cell: without scores, which says why there is no gain.
    """
    variant = measured_cell.variant_key
    require_same_weights(evidence.weights, variant, baseline, selected_cell.place)
    scores_of_baseline = evidence.scores.get(baseline, [])
    causes_of_baseline = evidence.list_causes(baseline, entry.intervention is not None)
    gain = Gain(
        selected_cell,
        entry,
        measured_cell.seeds,
        baseline,
        scores_of_baseline,
        next(iter(causes_of_baseline), None),
        evidence.scale,
    )
    if not gain.by_seed:
        return gain.explain_absence()
    protocols = [measured_cell.protocol, *(score.protocol for score in gain.scores)]
    gain_cell = replace(
        measured_cell,
        over=entry.over,
        seeds=dict(sorted(gain.by_seed.items())),
        protocol=find_worst_protocol(*protocols),
    )
    return hide_withheld_cell(gain_cell, entry, [variant, baseline], evidence)


def hide_withheld_cell(
    cell: Cell, entry: TableCell, variants: list[VariantKey], evidence: Evidence
) -> Cell:
    """Return a cell of these variants; withheld, with the reason, if one of them is."""
    reasons: dict[VariantKey, str] = {}
    if entry.analysis is not None:
        reasons = evidence.find_withheld_in(entry.analysis)
    for variant in variants:
        reason = reasons.get(variant)
        if reason is None:
            reason = evidence.explain_withheld(variant, entry.intervention is not None)
        if reason:
            return replace(cell, status=WITHHELD, note=reason)
    return cell


def list_variant_scores(entry: TableCell, variant: VariantKey, evidence: Evidence) -> list[Score]:
    """List the scores of a variant that a cell selects from: of its runs, or of an analysis."""
    if entry.analysis is None:
        return evidence.scores.get(variant, [])
    scores_of_analysis = evidence.analyses.get(entry.analysis, [])
    task, method, name = variant
    scores = []
    for score in scores_of_analysis:  # there may be thousands
        if score.task == task and score.method == method and score.variant == name:
            scores.append(score)
    return scores


def describe_undefined_seeds(absent: list[AbsentScore], values: Mapping[int, float]) -> str:
    """Say how many seeds have an undefined score and no value; empty if none has."""
    seeds_without_value = {score.seed for score in absent} - values.keys()
    if not seeds_without_value:
        return ""
    return f"seeds without a value, left out: {len(seeds_without_value)} ({absent[0].reason})"


def describe_unfinished_seeds(causes: list[Cause]) -> str:
    """Say how many seeds are not run although they were asked for; empty if all are."""
    if not causes:
        return ""
    count = count_nouns(len(causes), "seed")
    return f"{count} not run: {causes[0].word}"


def explain_missing_score(
    cell: Cell,
    entry: TableCell,
    scores_of_variant: list[Score],
    absent: list[AbsentScore],
    scale: str,
) -> Cell:
    """Return a cell of runs without a score with the status and the note that say why.

    absent: the undefined scores that it selects. Raises UserError if the runs were scored and the
    cell selects nothing.
    """
    if absent:
        return replace(cell, status=UNDEFINED, note=f"undefined: {absent[0].reason}")
    is_analysed = entry.analysis is not None
    scores_of_intervention = []
    for score in scores_of_variant:
        if matches_intervention(score, cell.selection, is_analysed):
            scores_of_intervention.append(score)
    # An analysis may have looked at the run and found nothing of the kind: a model without codes
    # has none to count.
    if scores_of_intervention and not is_analysed and entry.intervention is None:
        # A metric of the kind of task that this variant has nowhere: without next sentences there
        # is no accuracy on them. `lint` refuses a metric that the kind has not.
        if all(score.metric != entry.metric for score in scores_of_intervention):
            return replace(cell, status=NOT_RUN, note="does not apply")
        wanted = ", ".join(f"{name} {value}" for name, value in cell.selection.fixed.items())
        raise UserError(f"{cell.place}: no score has {wanted}")
    if has_empty_item_set(scores_of_intervention, cell.selection):
        return replace(cell, status=UNDEFINED, note="undefined: no right answers")
    if any(score.rate == entry.rate for score in scores_of_intervention):
        return replace(cell, status=NOT_RUN, note="does not apply")
    return explain_not_run(cell, scale)


@dataclass(frozen=True)
class Gain:
    """What the seeds of a cell gain over the variant `over` of the same method and task.

    cell: with the selection of its own variant. values: its scores by seed. baseline: the other
    variant, with all of its scores. cause_of_baseline: why some of them are not run.
    """

    cell: Cell
    entry: TableCell
    values: dict[int, float]
    baseline: VariantKey
    scores_of_baseline: list[Score]
    cause_of_baseline: Cause | None
    scale: str

    @property
    def selection(self) -> ScoreSelection:
        """The cell's selection, of the other variant."""
        return replace(self.cell.selection, variant=self.entry.over)

    @cached_property
    def scores(self) -> list[Score]:
        """The scores of the other variant that are compared."""
        return select_scores(self.scores_of_baseline, self.selection)

    @cached_property
    def by_seed(self) -> dict[int, float]:
        """Seed -> gain."""
        return self._compute(self.entry.relative)

    def _compute(self, relative: bool) -> dict[int, float]:
        """Return seed -> gain, or in percent of the other variant's score."""
        baseline_values = average_repetitions(self.cell, self.scores)
        # Of a trained variant a single seed may be finished, or have the score.
        n_seeds = len({score.seed for score in self.scores_of_baseline})
        is_one_model = self.baseline.weights == START and n_seeds == 1
        return compute_gains(self.values, baseline_values, relative, is_one_model)

    def explain_absence(self) -> Cell:
        """Return the cell that says why there is no gain."""
        over = self.entry.over
        if self.scores:
            reason = f"shares no seed with {over}"
            if self._compute(relative=False):  # only the ratio is missing
                reason = f"0 for {over}"
            return replace(self.cell, status=UNDEFINED, note=f"undefined: {reason}")
        scores_of_intervention = []
        for score in self.scores_of_baseline:
            if matches_intervention(score, self.selection):
                scores_of_intervention.append(score)
        if has_empty_item_set(scores_of_intervention, self.selection):
            return replace(
                self.cell, status=UNDEFINED, note=f"undefined: no right answers of {over}"
            )
        return explain_not_run(replace(self.cell, cause=self.cause_of_baseline), self.scale)


def average_repetitions(cell: Cell, scores: list[Score]) -> dict[int, float]:
    """Return training seed -> score, averaged over the repetitions of an intervention.

    Without an intervention a seed has one score. Raises UserError if the cell selects two scores of
    one repetition.
    """
    values: dict[int, dict[tuple, float]] = {}
    for score in scores:
        if score.seed is None:
            raise UserError(f"{cell.place}: a score without a seed")
        repetition = (score.intervention_seed, score.pooling)
        of_seed = values.setdefault(score.seed, {})
        if repetition in of_seed:
            fixed = cell.selection.fixed
            free = ", ".join(
                name for name in SELECTORS if name not in fixed and name not in REPEATED
            )
            raise UserError(f"{cell.place}: two scores of one seed; fix also {free}")
        of_seed[repetition] = score.value
    return {seed: sum(of_seed.values()) / len(of_seed) for seed, of_seed in values.items()}
