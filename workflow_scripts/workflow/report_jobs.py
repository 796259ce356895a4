"""Compute the inputs and parameters of analyses, tables, figures and claims from the wildcards of a job."""

from collections.abc import Iterable
from dataclasses import dataclass

from workflow_scripts.config.catalogue import Run
from workflow_scripts.config.display_schema import Analysis, Display
from workflow_scripts.config.displays import (
    find_intervened_variants,
    list_analysis_sources,
    score_files,
    select_display_runs,
)
from workflow_scripts.config.paths import (
    analysis_folder,
    data_folder,
    intervention_folder,
    manifest_file,
    run_folder,
)
from workflow_scripts.provenance.fingerprints import list_paper_runs, read_caption
from workflow_scripts.workflow.dag import Workflow
from workflow_scripts.workflow.targets import locate_downloads, locate_manifests
from workflow_scripts.workflow.wildcards import Wildcards


@dataclass(frozen=True)
class ReportJobs:
    """The jobs of a workflow that report on its runs."""

    workflow: Workflow

    def _display(self, wildcards: Wildcards) -> Display:
        """Return the table or figure of a job."""
        return self.workflow.catalogue.papers[wildcards.paper].displays[wildcards.display]

    def _analysis(self, wildcards: Wildcards) -> Analysis:
        """Return the analysis of a job."""
        return self.workflow.catalogue.papers[wildcards.paper].analyses[wildcards.analysis]

    def _runs(self, wildcards: Wildcards) -> list[Run]:
        """Return the requested runs that a table, a figure or an analysis reads."""
        is_display = "display" in dict(wildcards.items())
        entry = self._display(wildcards) if is_display else self._analysis(wildcards)
        return select_display_runs(entry, self._asked(wildcards.paper, wildcards.scale))

    def list_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs, because --config of this invocation may differ from config.yaml."""
        return list(map(str, self._runs(wildcards)))

    def list_analysis_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests and scores that an analysis reads."""
        analysis = self._analysis(wildcards)
        runs = self._runs(wildcards)
        root = f"results/{wildcards.scale}"
        inputs = [f"{root}/{manifest_file(run)}" for run in runs]
        if analysis.scored:
            inputs += [f"{root}/{run_folder(run)}/eval/scores.csv" for run in runs]
        for run in runs:
            if run.unseeded in analysis.intervened_variants:
                inputs.append(f"{root}/{intervention_folder(run)}/scores.csv")
        inputs += sorted({f"{root}/{data_folder(run.task)}/dataset.json" for run in runs})
        return inputs + locate_manifests(self.list_analysis_sources(wildcards))

    def list_analysis_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that an analysis reads."""
        analysis = self._analysis(wildcards)
        runs = self._runs(wildcards)
        return locate_downloads(
            list_analysis_sources(self.workflow.catalogue, analysis, runs, wildcards.scale)
        )

    def list_analysis_checkpoints(self, wildcards: Wildcards) -> list[str]:
        """Return the weights of the runs of an analysis."""
        root = f"results/{wildcards.scale}"
        runs = [run for run in self._runs(wildcards) if not run.weights]
        return [f"{root}/{run_folder(run)}/checkpoint/model.safetensors" for run in runs]

    # table, figure, claims

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
        analyses = self.workflow.catalogue.papers[wildcards.paper].analyses
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
        return read_caption(self.workflow.catalogue, wildcards.paper, wildcards.display)

    def list_claims_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that claims compare."""
        scale, files = wildcards.scale, []
        for name in self.workflow.config.papers:
            displays = self.workflow.catalogue.papers[name].select_claimed_displays(
                self._asked(name, scale)
            )
            files += self._score_inputs(name, displays.values(), scale)
        return list(dict.fromkeys(files))
