"""Compute the inputs and parameters of analyses, tables, figures and claims from the wildcards of a job."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workflow_scripts.config.catalogue import Run
from workflow_scripts.config.display_schema import list_display_analyses
from workflow_scripts.config.displays import (
    find_intervened_variants,
    list_analysis_sources,
    score_files,
    select_claimed_displays,
    select_display_runs,
)
from workflow_scripts.config.paths import analysis_folder, data_folder, intervention_folder, manifest_file, run_folder
from workflow_scripts.provenance.fingerprints import list_paper_runs, read_caption
from workflow_scripts.workflow.dag import Workflow
from workflow_scripts.workflow.targets import locate_downloads, locate_manifests
from workflow_scripts.workflow.wildcards import Wildcards


@dataclass(frozen=True)
class ReportJobs:
    """The jobs of a workflow that report on its runs."""

    workflow: Workflow

    def _entry(self, wildcards: Wildcards) -> dict[str, Any]:
        """Return the entry of displays.yaml of a table, a figure or an analysis."""
        paper, names = self.workflow.catalogue.papers[wildcards.paper], dict(wildcards.items())
        return paper.displays[names["display"]] if "display" in names else paper.analyses[names["analysis"]]

    def _runs(self, wildcards: Wildcards) -> list[Run]:
        return select_display_runs(self._entry(wildcards), self._asked(wildcards.paper, wildcards.scale))

    def list_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs, because --config of this invocation may differ from config.yaml."""
        return list(map(str, self._runs(wildcards)))

    def list_analysis_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests and scores that an analysis reads."""
        entry, runs, root = self._entry(wildcards), self._runs(wildcards), f"results/{wildcards.scale}"
        variants = find_intervened_variants([entry])
        return [
            *(f"{root}/{manifest_file(run)}" for run in runs),
            *(f"{root}/{run_folder(run)}/eval/scores.csv" for run in runs if entry.get("scored")),
            *(f"{root}/{intervention_folder(run)}/scores.csv" for run in runs if run.unseeded in variants),
            *sorted({f"{root}/{data_folder(run.task)}/dataset.json" for run in runs}),
            *locate_manifests(self.list_analysis_sources(wildcards)),
        ]

    def list_analysis_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that an analysis reads."""
        entry, runs = self._entry(wildcards), self._runs(wildcards)
        return locate_downloads(list_analysis_sources(self.workflow.catalogue, entry, runs, wildcards.scale))

    def list_analysis_checkpoints(self, wildcards: Wildcards) -> list[str]:
        """Return the weights of the runs of an analysis."""
        root = f"results/{wildcards.scale}"
        runs = [run for run in self._runs(wildcards) if not run.weights]
        return [f"{root}/{run_folder(run)}/checkpoint/model.safetensors" for run in runs]

    # table, figure, claims

    def _asked(self, paper: str, scale: str) -> dict[Run, list[str]]:
        return list_paper_runs(self.workflow.config, paper, scale)

    def _score_inputs(self, paper: str, displays: Iterable[dict[str, Any]], scale: str) -> list[str]:
        """Return the scores that displays show; of an analysis only its manifest."""
        displays = list(displays)
        runs = dict.fromkeys(run for entry in displays for run in select_display_runs(entry, self._asked(paper, scale)))
        analyses = dict.fromkeys(name for entry in displays for name in list_display_analyses(entry))
        variants = find_intervened_variants(displays)
        scores = [f"results/{scale}/{file}" for run in runs for file in score_files(run, variants)]
        return scores + [f"results/{scale}/{analysis_folder(paper, name)}/analysis.json" for name in analyses]

    def _display_inputs(self, wildcards: Wildcards) -> list[str]:
        return self._score_inputs(wildcards.paper, [self._entry(wildcards)], wildcards.scale)

    def list_figure_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores, and the learning curves if the figure draws them."""
        runs = self._runs(wildcards) if self._entry(wildcards).get("curves") else []
        curves = [f"results/{wildcards.scale}/{run_folder(run)}/training.csv" for run in runs]
        return self._display_inputs(wildcards) + curves

    def list_table_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores, and the data, because a note under the table compares them with the paper's data."""
        display, analyses = self._entry(wildcards), self.workflow.catalogue.papers[wildcards.paper].analyses
        entries = [display, *(analyses[name] for name in list_display_analyses(display))]
        runs = self._asked(wildcards.paper, wildcards.scale)
        tasks = dict.fromkeys(run.task for entry in entries for run in select_display_runs(entry, runs))
        data = [f"results/{wildcards.scale}/{data_folder(task)}/dataset.json" for task in tasks]
        return self._display_inputs(wildcards) + data

    def get_display_group(self, wildcards: Wildcards) -> str:
        """Return the heading under which the report lists a table or figure."""
        return self._entry(wildcards)["group"]

    def format_display_labels(self, wildcards: Wildcards) -> dict[str, str]:
        """Return a single label: with two, Snakemake's report loses the displays of a group that has two of them."""
        return {"display": "{source}: {title}".format(**self._entry(wildcards))}

    def read_display_caption(self, wildcards: Wildcards) -> str:
        """Return the caption of a table or figure in the report."""
        return read_caption(self.workflow.catalogue, wildcards.paper, wildcards.display)

    def list_claims_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that claims compare."""
        scale, files = wildcards.scale, []
        for name in self.workflow.config.papers:
            displays = select_claimed_displays(self.workflow.catalogue.papers[name], self._asked(name, scale))
            files += self._score_inputs(name, displays.values(), scale)
        return list(dict.fromkeys(files))
