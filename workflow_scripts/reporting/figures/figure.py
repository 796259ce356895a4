"""A figure of a paper with its plotted data, and its inputs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError
from workflow_scripts.common.plug_ins import FIGURES, import_function, parse_options
from workflow_scripts.common.result_folders import ScaleFolder, verify_checksum
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.display_schema import FigureDisplay, Runs
from workflow_scripts.config.displays import find_figure
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.published_numbers import Key, Published
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.reporting.evidence.evidence import Evidence, read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.evidence.selected_scores import ScoreSelection, select_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUN_COLUMNS = ["task", "method", "variant", "seed"]
# Text below a figure, by protocol.
FOOTERS = {
    "paper": "",
    "reduced": "Scale {scale}: smaller models, data or schedules than the paper's",
    "stand_in": "Scale {scale}: some data are generated; "
    "the figure only shows that every step works",
}


@dataclass(frozen=True)
class Inputs:
    """The inputs of one figure at one scale.

    requested: the runs of its panels that the scale requests.
    """

    display: FigureDisplay
    requested: list[Run]
    results: ScaleFolder
    evidence: Evidence

    @property
    def scale(self) -> str:
        """Name of the scale."""
        return self.evidence.scale

    @property
    def absence(self) -> str:
        """The text for a panel without scores. The footer says more."""
        for entry in self.display.runs:
            variant = entry.variant_key
            for is_intervened in (False, True):
                if self.evidence.list_causes(variant, is_intervened):
                    return "not finished"
        if any(map(self.evidence.get_analysis_cause, self.display.list_analyses())):
            return "not finished"
        return f"not run at {self.scale}"

    def read_table(self, name: str) -> pandas.DataFrame:
        """Read <name>.csv of all analyses of the figure that are finished as one table.

        Raises NothingAnalysedError if there is none.
        """
        if not self.evidence.analyses:
            raise NothingAnalysedError
        tables = []
        for analysis in self.evidence.analyses:
            table = _read(self.results.analysis(self.evidence.paper, analysis).table(name))
            for variant in self.evidence.find_withheld_in(analysis):
                table = table.drop(select_variant_rows(table, variant).index)
            tables.append(table)
        # The columns of an empty table have no type and would turn those of the others into
        # objects.
        filled = [table for table in tables if len(table)]
        return pandas.concat(filled or tables, ignore_index=True)

    def select_accuracies(self) -> pandas.DataFrame:
        """Select exact match (percent) on the test split: task, method, variant, seed, value."""
        return self.select_scores("exact_match").loc[:, [*RUN_COLUMNS, "value"]]

    def select_scores(
        self,
        metric: str,
        intervention: str | None = None,
        split: str = "test",
        readout: str | None = None,
    ) -> pandas.DataFrame:
        """Select a score of the runs on a whole split, as columns of scores.csv.

        It is the one under the intervention, or without one, and that of the readout. Without a
        readout it is that of the best checkpoint, or of all readouts if there is no such one.
        """
        selection = ScoreSelection(
            split=split, subset="all", metric=metric, intervention=intervention, readout=readout
        )
        scores: list[Score] = []
        for of_variant in self.evidence.scores.values():
            scores += select_scores(of_variant, selection)
        columns = ["layer", "pooling", "rate", "intervention_seed", "item_set", "readout", "value"]
        return make_score_table(scores, [*RUN_COLUMNS, *columns])

    def select_analysis_scores(self, metric: str) -> pandas.DataFrame:
        """Select a score of the figure's analyses: task, method, variant, seed, value."""
        scores: list[Score] = []
        for of_analysis in self.evidence.analyses.values():
            scores += [score for score in of_analysis if score.metric == metric]
        return make_score_table(scores, [*RUN_COLUMNS, "value"])

    def read_curves(self, name: str) -> pandas.DataFrame:
        """Read the values `name` of training.csv: task, method, variant, seed, step, value."""
        tables = [pandas.DataFrame(columns=[*RUN_COLUMNS, "step", "value"])]
        for run in self.requested:
            table = _read(self.results.run(run).curve)
            of_run = {column: getattr(run, column) for column in RUN_COLUMNS}
            tables.append(table.loc[table["name"] == name, ["step", "value"]].assign(**of_run))
        return pandas.concat(tables[1:] or tables, ignore_index=True)

    def list_seeds(self, entry: Runs) -> list[int]:
        """List the seeds of an entry of `runs`, lowest first; none if the scale does not run it."""
        return sorted(run.seed for run in self.requested if run.variant_key == entry.variant_key)

    def find_median_seed(self, entry: Runs) -> int | None:
        """Find the (lowest) seed of an entry with the (lower) median test accuracy.

        None without runs.
        """
        table = select_entry(self.select_accuracies(), entry).sort_values(["value", "seed"])
        if table.empty:
            return None
        median = table["value"].iloc[(len(table) - 1) // 2]
        return int(table.loc[table["value"] == median, "seed"].iloc[0])

    def describe_seed(self, entry: Runs) -> str:
        """Format `median seed 22`, or `seed 21` for a single seed."""
        text = f"seed {self.find_median_seed(entry)}"
        if len(self.list_seeds(entry)) > 1:
            text = f"median {text}"
        return text

    def get_published(self, key: Key) -> Published:
        """Return a published number. Raises UserError if there is none."""
        if key not in self.evidence.published:
            number = f"a figure shows the published number {'/'.join(key)}"
            raise UserError(f"displays.yaml: {number}, which published.csv lacks")
        return self.evidence.published[key]


def make_score_table(scores: list[Score], columns: list[str]) -> pandas.DataFrame:
    """Make a table of some columns of scores.csv."""
    return pandas.DataFrame(scores, columns=list(Score._fields)).loc[:, columns]


def select_entry(table: pandas.DataFrame, entry: Runs, seed: int | None = None) -> pandas.DataFrame:
    """Select the rows of `table` that belong to an entry of `runs`, and to one seed if given."""
    rows = select_variant_rows(table, entry.variant_key)
    return rows if seed is None else rows.loc[rows["seed"] == seed]


def select_variant_rows(table: pandas.DataFrame, variant: VariantKey) -> pandas.DataFrame:
    """Select the rows of `table` that belong to a variant."""
    task, method, name = variant
    return table.loc[
        (table["task"] == task) & (table["method"] == method) & (table["variant"] == name)
    ]


def _read(file: Path) -> pandas.DataFrame:
    verify_checksum(file)
    try:
        # A word of a vocabulary may be "null" or "nan", which pandas would read as missing.
        return pandas.read_csv(file, keep_default_na=False, na_values=[""])
    except FileNotFoundError as error:
        raise MissingFileError(file) from error


class NothingAnalysedError(Exception):
    """No analysis of a figure is finished, so that it has nothing to show."""


@dataclass(frozen=True)
class RenderedFigure:
    """A figure, the plotted data as the text of its CSV, and the text below it."""

    figure: "Figure"
    csv: str
    footer: str


def draw_figure(results: PaperResults, name: str, runs: list[Run]) -> RenderedFigure:
    """Draw a figure of the paper, of `runs`. Runs with unfinished scores are named below it."""
    catalogue = results.catalogue
    paper = results.paper
    scale = results.scale
    display = find_figure(catalogue, paper, name)
    draw = import_function(display.module, "draw", FIGURES)
    file = catalogue.root / "papers" / paper / "displays.yaml"
    keys = ("displays", name, "options")
    options = parse_options(display.module, FIGURES, display.options, file, keys)
    evidence = read_evidence(results, runs, [display]).drop_withheld()
    shown_runs = []
    causes: list[str] = []  # of each run that is not finished
    for run in runs:
        cause = evidence.find_cause(run)
        if cause is None and run.variant_key in display.intervened_variants:
            cause = evidence.find_intervention_cause(run)
        if cause:
            causes.append(cause.sentence)
        elif run.variant_key not in evidence.withheld:
            shown_runs.append(run)

    # matplotlib takes a second to import, so errors in names are reported first.
    from workflow_scripts.reporting.figures.style import make_empty_figure, use_style

    all_scores: list[Score] = []
    for scores in (*evidence.scores.values(), *evidence.analyses.values()):
        all_scores += scores
    protocol = find_worst_protocol("paper", *{score.protocol for score in all_scores})
    inputs = Inputs(display, shown_runs, results.folder, evidence)
    with use_style():
        try:
            figure, plotted = draw(inputs, options)
        except NothingAnalysedError:
            figure, plotted = make_empty_figure(inputs.absence), make_score_table([], RUN_COLUMNS)
    plotted = plotted.assign(protocol=find_protocols(plotted, all_scores, protocol))
    csv = plotted.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    notes = [FOOTERS[protocol].format(scale=scale)]
    for analysis in display.list_analyses():
        missing = evidence.get_analysis_cause(analysis)
        if missing:
            notes.append(missing.sentence)
    for variant, reason in sorted(evidence.withheld_interventions.items()):
        notes.append(f"{variant} {reason}")
    for cause, count in Counter(causes).items():
        notes.append(f"{'1 run' if count == 1 else f'{count} runs'} left out: {cause}")
    return RenderedFigure(figure, csv, footer="; ".join(filter(None, notes)))


def find_protocols(
    plotted: pandas.DataFrame, scores: Iterable[Score], of_figure: str
) -> str | list[str]:
    """Return the protocol of each plotted row: the worst of the variant that the row names.

    Rows that name no variant with scores have that of the figure.
    """
    columns = ["task", "method", "variant"]
    if not set(columns) <= set(plotted.columns):
        return of_figure
    protocols_of: dict[tuple[str | None, ...], set[str]] = {}
    for score in scores:
        variant = (score.task, score.method, score.variant)
        protocols_of.setdefault(variant, set()).add(score.protocol)
    protocols = []
    for variant in plotted[columns].itertuples(index=False, name=None):
        of_variant = protocols_of.get(variant, {of_figure})
        protocols.append(find_worst_protocol(*of_variant))
    return protocols
