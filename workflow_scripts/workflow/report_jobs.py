"""Compute the inputs and parameters of tables, figures and claims from the wildcards of a job.

These jobs read the catalogue and the papers. They run next to Snakemake, also where the others go
to a cluster.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.display_schema import Display
from workflow_scripts.config.displays import (
    find_intervened_variants,
    score_files,
    select_display_runs,
)
from workflow_scripts.config.paths import analysis_folder, data_folder, run_folder
from workflow_scripts.provenance.fingerprints import (
    fingerprint_report_job,
    list_paper_runs,
    read_caption,
)
from workflow_scripts.provenance.spec_fingerprints import Fingerprint
from workflow_scripts.workflow.dag import Workflow
from workflow_scripts.workflow.wildcards import Wildcards


@dataclass(frozen=True)
class ReportJobs:
    """The jobs of a workflow that report on its runs."""

    workflow: Workflow
    catalogue: Catalogue

    def fingerprint(self, rule: str) -> Callable[[Wildcards], str]:
        """Return a function that fingerprints a job of `rule`.

        Snakemake reruns the job when the fingerprint changes.
        """

        def find_fingerprint(names: dict[str, str]) -> Fingerprint | None:
            return fingerprint_report_job(self.catalogue, self.workflow.config, rule, names)

        return self.workflow.record_fingerprints(rule, find_fingerprint)

    def _display(self, wildcards: Wildcards) -> Display:
        """Return the table or figure of a job."""
        return self.catalogue.papers[wildcards.paper].displays[wildcards.display]

    def _runs(self, wildcards: Wildcards) -> list[Run]:
        """Return the requested runs that a table or a figure reads."""
        return select_display_runs(
            self._display(wildcards), self._asked(wildcards.paper, wildcards.scale)
        )

    def list_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs, because --config of this invocation may differ from config.yaml."""
        return list(map(str, self._runs(wildcards)))

    def _asked(self, paper: str, scale: str) -> dict[Run, list[str]]:
        return list_paper_runs(self.workflow.config, paper, scale)

    def _score_inputs(self, paper: str, displays: Iterable[Display], scale: str) -> list[str]:
        """Return the scores that displays show; of an analysis only its manifest."""
        displays = list(displays)
        asked = self._asked(paper, scale)
        runs = dict.fromkeys(
            run for display in displays for run in select_display_runs(display, asked)
        )
        analyses = dict.fromkeys(name for display in displays for name in display.list_analyses())
        variants = find_intervened_variants(displays)
        scores = [f"results/{scale}/{file}" for run in runs for file in score_files(run, variants)]
        return scores + [
            f"results/{scale}/{analysis_folder(paper, name)}/analysis.json" for name in analyses
        ]

    def _display_inputs(self, wildcards: Wildcards) -> list[str]:
        return self._score_inputs(wildcards.paper, [self._display(wildcards)], wildcards.scale)

    def list_figure_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores, and the learning curves if the figure draws them."""
        runs = self._runs(wildcards) if self._display(wildcards).reads_curves else []
        curves = [f"results/{wildcards.scale}/{run_folder(run)}/training.csv" for run in runs]
        return self._display_inputs(wildcards) + curves

    def list_table_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores, and the data, because a note under the table compares them with the paper's data."""
        display = self._display(wildcards)
        analyses = self.catalogue.papers[wildcards.paper].analyses
        entries = [display, *(analyses[name] for name in display.list_analyses())]
        runs = self._asked(wildcards.paper, wildcards.scale)
        tasks = dict.fromkeys(
            run.task for entry in entries for run in select_display_runs(entry, runs)
        )
        data = [f"results/{wildcards.scale}/{data_folder(task)}/dataset.json" for task in tasks]
        return self._display_inputs(wildcards) + data

    def get_display_group(self, wildcards: Wildcards) -> str:
        """Return the heading under which the report lists a table or figure."""
        return self._display(wildcards).group

    def format_display_labels(self, wildcards: Wildcards) -> dict[str, str]:
        """Return a single label: with two, Snakemake's report loses the displays of a group that has two of them."""
        display = self._display(wildcards)
        return {"display": f"{display.source}: {display.title}"}

    def read_display_caption(self, wildcards: Wildcards) -> str:
        """Return the caption of a table or figure in the report."""
        return read_caption(self.catalogue, wildcards.paper, wildcards.display)

    def list_claims_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that claims compare."""
        scale, files = wildcards.scale, []
        for name in self.workflow.config.papers:
            displays = self.catalogue.papers[name].select_claimed_displays(self._asked(name, scale))
            files += self._score_inputs(name, displays.values(), scale)
        return list(dict.fromkeys(files))
