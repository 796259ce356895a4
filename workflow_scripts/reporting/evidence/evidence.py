"""What displays are made from: published numbers, and the scores of runs and analyses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_mapping, write_json
from workflow_scripts.common.result_folders import AnalysisFolder, ScaleFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.display_schema import Analysis, Display
from workflow_scripts.config.displays import find_intervened_variants, list_score_files
from workflow_scripts.evaluation.published_numbers import Key, Published, read_published
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.provenance.record import make_record
from workflow_scripts.provenance.spec_fingerprints import Fingerprint
from workflow_scripts.provenance.unfinished import NOTHING, Cause, Unfinished
from workflow_scripts.reporting.evidence.pairing import get_initial_weights
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.evidence.selected_scores import AbsentScore, load_scores
from workflow_scripts.reporting.evidence.withholding import find_withheld


@dataclass(frozen=True)
class Evidence:
    """Published numbers and scores of a paper at one scale.

    scores: of the requested runs. analyses: by name. weights: what the runs of a measured variant
    start from. absent: scores that are undefined. analysis_entries: what the analyses read, by
    name. withheld: why a variant's scores are not shown yet. withheld_interventions: the same of
    its scores under interventions, which may be finished later. unfinished: scores that are not
    there.
    """

    paper: str
    scale: str
    published: dict[Key, Published]
    scores: dict[VariantKey, list[Score]]
    analyses: dict[str, list[Score]]
    weights: dict[VariantKey, str] = field(default_factory=dict)
    absent: dict[VariantKey, list[AbsentScore]] = field(default_factory=dict)
    analysis_entries: Mapping[str, Analysis] = field(default_factory=dict)
    withheld: dict[VariantKey, str] = field(default_factory=dict)
    withheld_interventions: dict[VariantKey, str] = field(default_factory=dict)
    unfinished: Unfinished = NOTHING

    def list_causes(self, variant: VariantKey, is_intervened: bool) -> list[Cause]:
        """List why seeds of a variant have no scores, or none under interventions."""
        by_variant = self.unfinished.evaluations
        if is_intervened:
            by_variant = self.unfinished.interventions
        return list(by_variant.get(variant, {}).values())

    def find_cause(self, run: Run) -> Cause | None:
        """Return why a run has no scores; None if it has them."""
        return self.unfinished.evaluations.get(run.variant_key, {}).get(run.seed)

    def find_intervention_cause(self, run: Run) -> Cause | None:
        """Return why a run has no scores under interventions; None if it has them."""
        return self.unfinished.interventions.get(run.variant_key, {}).get(run.seed)

    def get_analysis_cause(self, analysis: str | None) -> Cause | None:
        """Return why an analysis has no scores; None if it has some, or was not asked for."""
        return self.unfinished.analyses.get((self.paper, str(analysis)))

    def explain_withheld(self, variant: VariantKey, is_intervened: bool) -> str:
        """Say why scores of a variant are not shown yet; empty if they are."""
        withheld = self.withheld_interventions if is_intervened else self.withheld
        return withheld.get(variant, "")

    def find_withheld_in(self, analysis: str) -> dict[VariantKey, str]:
        """Return variant -> reason, of what an analysis reads and must not be shown yet."""
        entry = self.analysis_entries.get(analysis)
        reasons: dict[VariantKey, str] = {}
        if entry is None:
            return reasons
        for variant in sorted(entry.variants):
            reason = self.explain_withheld(variant, variant in entry.intervened_variants)
            if reason:
                reasons[variant] = reason
        return reasons

    def drop_withheld(self) -> "Evidence":
        """Return the evidence without the scores that are not shown yet."""
        scores = {}
        for variant, rows in self.scores.items():
            shown = [
                row for row in rows if not self.explain_withheld(variant, bool(row.intervention))
            ]
            if shown:
                scores[variant] = shown
        analyses = {}
        for name, rows in self.analyses.items():
            withheld = self.find_withheld_in(name)
            # A row without a variant is about all of them.
            analyses[name] = [
                row
                for row in rows
                if row.variant_key not in withheld and not (withheld and row.variant is None)
            ]
        return replace(self, scores=scores, analyses=analyses)


def read_evidence(
    results: PaperResults, runs: Iterable[Run], displays: Sequence[Display]
) -> Evidence:
    """Read published.csv of a paper, and what its `displays` show of `runs` and analyses.

    Raises UserError if scores of one of `runs` that are not unfinished are missing, or of another
    run.
    """
    catalogue = results.catalogue
    paper = results.paper
    scale = results.scale
    folder = results.folder
    runs = list(runs)
    intervened = find_intervened_variants(displays)
    scores: dict[VariantKey, list[Score]] = {}
    absent: dict[VariantKey, list[AbsentScore]] = {}
    for run in runs:
        files = results.unfinished.drop_files(list_score_files(folder, run, intervened))
        if folder.run(run).evaluation.scores in files:
            absent.setdefault(run.variant_key, []).extend(read_absent_scores(run, folder))
        for file in files:
            scores.setdefault(run.variant_key, []).extend(read_run_scores(run, folder, file))
    analyses = read_analyses(results, displays)
    analysed: list[Score] = []
    for of_analysis in analyses.values():
        analysed += of_analysis
    variants = set(scores)
    variants.update(score.variant_key for score in analysed if None not in score.variant_key)
    weights = {
        variant: get_initial_weights(catalogue, variant, scale) for variant in sorted(variants)
    }
    shown_seeds = {(score.variant_key, score.seed) for score in analysed}
    read_runs = [*runs]
    for name in analyses:
        read_runs += list_analysed_runs(folder.analysis(paper, name))
    shown_seeds.update((run.variant_key, run.seed) for run in read_runs)
    entries = {name: catalogue.papers[paper].analyses[name] for name in analyses}
    intervened |= find_intervened_variants(entries.values())
    return Evidence(
        paper,
        scale,
        published=read_published(catalogue.root / "papers" / paper / "published.csv"),
        scores=scores,
        analyses=analyses,
        weights=weights,
        absent=absent,
        analysis_entries=entries,
        withheld=find_withheld(results, shown_seeds),
        withheld_interventions=find_withheld(results, shown_seeds, intervened),
        unfinished=results.unfinished,
    )


def read_analyses(results: PaperResults, displays: Sequence[Display]) -> dict[str, list[Score]]:
    """Return analysis -> its scores, of the analyses that displays show and that are finished."""
    analyses: dict[str, list[Score]] = {}
    for display in displays:
        for name in display.list_analyses():
            file = results.folder.analysis(results.paper, name).scores
            if name not in analyses and file not in results.unfinished:
                analyses[name] = load_scores(file)
    return analyses


def list_analysed_runs(analysis: AnalysisFolder) -> list[Run]:
    """List the runs that an analysis has read; none if it has no manifest."""
    if not analysis.manifest.exists():
        return []
    names = read_mapping(analysis.manifest).get("runs", [])
    return [Run.parse(name) for name in names]


def read_run_scores(run: Run, results: ScaleFolder, file: Path) -> list[Score]:
    """Read a file of `results` with scores of a run.

    Raises UserError if it is missing, or has scores of another run.
    """
    scores = load_scores(file)
    for score in scores:
        scored_run = Run(*score.variant_key, score.seed)  # type: ignore[arg-type]
        if scored_run != run:
            advice = f"move {results.run(run).path} away, then call ./reproduce"
            raise UserError(f"{file} holds scores of {scored_run}; {advice}")
    return scores


def read_absent_scores(run: Run, results: ScaleFolder) -> list[AbsentScore]:
    """Read which scores of a run are undefined, from evaluation.json if it is there."""
    manifest = results.run(run).evaluation.manifest
    if not manifest.exists():
        return []
    rows = read_mapping(manifest).get("absent", [])
    return [AbsentScore(run.seed, row["reason"], row) for row in rows]


def write_record(
    file: Path,
    fingerprint: Fingerprint,
    results: ScaleFolder,
    runs: Iterable[Run],
    displays: Sequence[tuple[str, Display]],
    **more: Any,
) -> None:
    """Write the record of `displays` (paper, display), with the entries `more` of the record.

    Its data are the files of `runs` and analyses that the displays show, as far as they exist.
    """
    runs = list(runs)
    intervened = find_intervened_variants(display for _, display in displays)
    files: list[Path] = []
    for run in runs:
        files += list_score_files(results, run, intervened)
    for paper, display in displays:
        files += [results.analysis(paper, name).scores for name in display.list_analyses()]
    if any(display.reads_curves for _, display in displays):
        files += [results.run(run).curve for run in runs]
    digests = {}
    for data in files:
        if data.exists():
            digests[data.relative_to(results.path).as_posix()] = hash_file(data)
    write_json(file, make_record(fingerprint, digests) | more)
