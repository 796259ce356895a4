"""Compute the inputs and parameters of tables, figures and claims from the wildcards of a job.

These jobs read the catalogue and the papers. They run next to Snakemake, also where the others go
to a cluster.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.result_folders import RESULTS, ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import Display
from workflow_scripts.config.displays import (
    find_intervened_variants,
    list_score_files,
    read_caption,
    select_display_runs,
)
from workflow_scripts.config.requested import find_paper_needs, list_paper_runs, select_claim
from workflow_scripts.config.specs import list_ancestors
from workflow_scripts.provenance.fingerprints import digest_page_texts, fingerprint_report_job
from workflow_scripts.provenance.spec_fingerprints import Fingerprint
from workflow_scripts.provenance.unfinished import load_unfinished
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.snakemake_speed import store_signature
from workflow_scripts.workflow.wildcards import Wildcards


@dataclass(frozen=True)
class ReportJobs:
    """The jobs of a workflow that report on its runs."""

    jobs: JobInputs
    catalogue: Catalogue

    def fingerprint(self, rule: str) -> Callable[[Wildcards], str]:
        """Return a function that fingerprints a job of `rule`.

        Snakemake reruns the job when the fingerprint changes.
        """

        def find_fingerprint(names: dict[str, str]) -> Fingerprint | None:
            return fingerprint_report_job(self.catalogue, self.jobs.config, rule, names)

        return self.jobs.record_fingerprints(rule, find_fingerprint)

    def digest_page_texts(self) -> str:
        """Return the digest of the texts that the page prints and no other job does."""
        return digest_page_texts(self.catalogue, self.jobs.config)

    def _get_display(self, wildcards: Wildcards) -> Display:
        """Return the table or figure of a job."""
        return self.catalogue.papers[wildcards.paper].displays[wildcards.display]

    def _select_runs(self, wildcards: Wildcards) -> list[Run]:
        """Return the requested runs that a table or a figure reads."""
        requested = self._list_requested(wildcards.paper, wildcards.scale)
        return select_display_runs(self._get_display(wildcards), requested)

    def list_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs, because --config of this invocation may change them."""
        return [str(run) for run in self._select_runs(wildcards)]

    def _list_requested(self, paper: str, scale: str) -> dict[Run, list[str]]:
        """Return the runs that a paper requests."""
        return list_paper_runs(self.catalogue, self.jobs.config, paper, scale)

    def list_inputs(self, rule: str) -> Callable[[Wildcards], list[str]]:
        """Return a function that lists the files that a job of `rule` reads, of those there are."""
        list_files = self._get_listing(rule)

        def list_finished(wildcards: Wildcards) -> list[str]:
            unfinished = load_unfinished(self.jobs.config, wildcards.scale)
            files = unfinished.drop_files(list_files(wildcards))
            return [str(file) for file in files]

        return store_signature(list_finished)

    def find_unfinished(self, rule: str) -> Callable[[Wildcards], list[str]]:
        """Return a function that names the file that says why inputs of a job are not there.

        None if all are.
        """
        list_files = self._get_listing(rule)

        def find(wildcards: Wildcards) -> list[str]:
            unfinished = load_unfinished(self.jobs.config, wildcards.scale)
            if not unfinished.is_missing_any(list_files(wildcards)):
                return []
            return [str(RESULTS.scale(wildcards.scale).unfinished)]

        return store_signature(find)

    def _get_listing(self, rule: str) -> Callable[[Wildcards], list[Path]]:
        """Return the method that lists what jobs of `rule` read."""
        listings = {
            "table": self._list_table_files,
            "figure": self._list_figure_files,
            "claims": self._list_claims_files,
            "claim": self._list_claim_files,
        }
        return listings[rule]

    def _list_display_files(self, wildcards: Wildcards) -> list[Path]:
        """Return the scores that a table or a figure shows."""
        paper = wildcards.paper
        requested = self._list_requested(paper, wildcards.scale)
        results = RESULTS.scale(wildcards.scale)
        return list_shown_files(results, paper, [self._get_display(wildcards)], requested)

    def _list_figure_files(self, wildcards: Wildcards) -> list[Path]:
        """Return the scores, and the learning curves if the figure draws them."""
        files = self._list_display_files(wildcards)
        results = RESULTS.scale(wildcards.scale)
        if self._get_display(wildcards).reads_curves:
            files += [results.run(run).curve for run in self._select_runs(wildcards)]
        return files

    def _list_table_files(self, wildcards: Wildcards) -> list[Path]:
        """Return the scores, and the data.

        Notes under the table compare the data with the paper's, those of pre-trainings too.
        """
        display = self._get_display(wildcards)
        analyses = self.catalogue.papers[wildcards.paper].analyses
        requested = self._list_requested(wildcards.paper, wildcards.scale)
        runs = list(select_display_runs(display, requested))
        for name in display.list_analyses():
            runs += select_display_runs(analyses[name], requested)
        files = self._list_display_files(wildcards)
        results = RESULTS.scale(wildcards.scale)
        one_of_each = {run.variant_key: run for run in runs}.values()
        ancestors = list_ancestors(self.catalogue, one_of_each, wildcards.scale)
        for task in dict.fromkeys(run.task for run in [*runs, *ancestors]):
            files.append(results.data(task).manifest)
        return files

    def get_display_group(self, wildcards: Wildcards) -> str:
        """Return the heading under which the report lists a table or figure."""
        return self._get_display(wildcards).group

    def format_display_labels(self, wildcards: Wildcards) -> dict[str, str]:
        """Return a single label.

        With two, Snakemake's report loses the displays of a group that has two of them.
        """
        display = self._get_display(wildcards)
        return {"display": f"{display.source}: {display.title}"}

    def read_display_caption(self, wildcards: Wildcards) -> str:
        """Return the caption of a table or figure in the report."""
        return read_caption(self.catalogue, wildcards.paper, wildcards.display)

    def _list_claims_files(self, wildcards: Wildcards) -> list[Path]:
        """Return the scores that claims compare."""
        scale = wildcards.scale
        files = []
        for name in self.jobs.config.papers:
            requested = self._list_requested(name, scale)
            displays = self.catalogue.papers[name].select_claimed_displays(requested)
            results = RESULTS.scale(scale)
            files += list_shown_files(results, name, displays.values(), requested)
        return list(dict.fromkeys(files))

    def _list_claim_files(self, wildcards: Wildcards) -> list[Path]:
        """Return the scores that one claim compares, judged alone."""
        config = select_claim(self.jobs.config, wildcards.paper, wildcards.claim)
        requested = list_paper_runs(self.catalogue, config, wildcards.paper, wildcards.scale)
        needs = find_paper_needs(self.catalogue, config, wildcards.paper)
        displays = needs.select_shown_displays(requested).values()
        results = RESULTS.scale(wildcards.scale)
        return list_shown_files(results, wildcards.paper, displays, requested)


def list_shown_files(
    results: ScaleFolder, paper: str, displays: Iterable[Display], requested: Iterable[Run]
) -> list[Path]:
    """Return the scores that displays of a paper show; of an analysis only its manifest."""
    displays = list(displays)
    requested = list(requested)
    # Without repeats, in the order of the displays.
    runs: dict[Run, None] = {}
    analyses: dict[str, None] = {}
    for display in displays:
        runs |= dict.fromkeys(select_display_runs(display, requested))
        analyses |= dict.fromkeys(display.list_analyses())
    variants = find_intervened_variants(displays)
    files: list[Path] = []
    for run in runs:
        files += list_score_files(results, run, variants)
    files += [results.analysis(paper, name).manifest for name in analyses]
    return files
