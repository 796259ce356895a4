"""List the files that the target rules request.

Every output is named, so that Snakemake recreates a deleted file, and a file that a rule newly
declares.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.result_folders import DOWNLOADS, RESULTS
from workflow_scripts.common.run_names import Run, format_seed
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.claim_needs import ClaimNeeds
from workflow_scripts.config.display_schema import Display
from workflow_scripts.config.displays import (
    list_analysis_sources,
    list_score_files,
    select_display_runs,
    select_intervened_runs,
)
from workflow_scripts.config.requested import (
    find_paper_needs,
    list_paper_runs,
    list_requested_runs,
)
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_candidates, resolve_data, resolve_run
from workflow_scripts.provenance.unfinished import load_unfinished
from workflow_scripts.tasks.run_spec import HubModel
from workflow_scripts.workflow.job_specs import list_read_files


@dataclass(frozen=True)
class PaperDisplay:
    """A table or figure of a paper, and its name there."""

    paper: str
    name: str
    display: Display


@dataclass(frozen=True)
class Targets:
    """The files of the chosen papers at the chosen scale.

    `outputs` are those of a rule, with wildcards.
    """

    config: Config
    catalogue: Catalogue

    def list_displays(self, kind: str, outputs: Iterable[str]) -> list[str]:
        """Return the outputs of every table or every figure."""
        names = []
        for entry in self._list_filled_displays():
            if entry.display.kind == kind:
                names.append({"paper": entry.paper, "display": entry.name})
        return self._format_outputs(outputs, names)

    def list_once(self, outputs: Iterable[str]) -> list[str]:
        """Return the outputs of a rule with one job at the scale."""
        return self._format_outputs(outputs, [{}])

    def list_analyses(self, outputs: Iterable[str]) -> list[str]:
        """Return the outputs of every analysis that a table or figure shows.

        None with finished_only: what tables and figures then read is made for them.
        """
        if self.config.finished_only:
            return []
        analyses: dict[tuple[str, str], None] = {}  # (paper, name), without repeats
        for entry in self._list_filled_displays():
            for name in entry.display.list_analyses():
                analyses[entry.paper, name] = None
        names = [{"paper": paper, "analysis": name} for paper, name in analyses]
        return self._format_outputs(outputs, names)

    def list_runs(
        self, train: Iterable[str], evaluate: Iterable[str], intervene: Iterable[str]
    ) -> list[str]:
        """Return the outputs of these rules for every run.

        Its weights are left out, because they may be deleted after scoring. None with
        finished_only. With `claims` only the scores that these read.
        """
        if self.config.finished_only:
            return []
        if self.config.claims:
            return self._list_claimed_scores()
        intervened: dict[Run, None] = {}
        for paper in self.config.papers:
            runs = select_intervened_runs(self.catalogue, paper, self._list_requested(paper))
            intervened |= dict.fromkeys(runs)
        requested = list_requested_runs(self.catalogue, self.config)
        trained = [run for run in requested if not run.weights]
        files = [
            *self._format_outputs(train, map(list_wildcards, trained)),
            *self._format_outputs(evaluate, map(list_wildcards, requested)),
            *self._format_outputs(intervene, map(list_wildcards, intervened)),
        ]
        return [file for file in files if not file.endswith(".safetensors")]

    def _list_claimed_scores(self) -> list[str]:
        """Return the files of runs that the claims of the configuration and their analyses read."""
        scale = self.config.scale
        files: dict[Path, None] = {}
        for paper in self.config.papers:
            requested = self._list_requested(paper)
            needs = find_paper_needs(self.catalogue, self.config, paper)
            for display in needs.displays.values():
                for run in select_display_runs(display, requested):
                    scores = list_score_files(RESULTS.scale(scale), run, needs.shown_interventions)
                    files |= dict.fromkeys(scores)
            for analysis in needs.analyses.values():
                for run in select_display_runs(analysis, requested):
                    files |= dict.fromkeys(list_read_files(analysis, run, scale))
        return [str(file) for file in files]

    def list_claims(self, outputs: Iterable[str]) -> list[str]:
        """Return the outputs of the rule that judges one claim, for those of the configuration."""
        names = []
        for name in self.config.claims or ():
            paper, claim = name.split("/")
            names.append({"paper": paper, "claim": claim})
        return self._format_outputs(outputs, names)

    def list_downloads(self) -> list[str]:
        """Return the files that need a network, and the manifests of models that do.

        They are those of trainings, analyses and replacement words.
        """
        scale = self.config.scale
        files: set[str] = set()
        models: set[str] = set()
        for paper in self.config.papers:
            runs = self._list_requested(paper)
            needs = None
            if self.config.claims:
                needs = find_paper_needs(self.catalogue, self.config, paper)
            files |= list_sources(self.catalogue, scale, paper, runs, needs)
            models |= list_hub_models(self.catalogue, scale, self.config.precision, runs)
        downloads = [DOWNLOADS.source(file).path for file in files]
        manifests = [DOWNLOADS.model(model).manifest for model in models]
        return [str(path) for path in downloads + manifests]

    def _list_requested(self, paper: str) -> dict[Run, list[str]]:
        """Return the runs that a paper requests."""
        return list_paper_runs(self.catalogue, self.config, paper, self.config.scale)

    def _list_filled_displays(self) -> list[PaperDisplay]:
        """Return the tables and figures that have something to show."""
        entries = []
        for paper in self.config.papers:
            requested = self._list_requested(paper)
            displays = self.catalogue.papers[paper].select_shown_displays(requested)
            entries += [PaperDisplay(paper, name, display) for name, display in displays.items()]
        return entries

    def _format_outputs(self, outputs: Iterable[str], jobs: Iterable[dict[str, str]]) -> list[str]:
        """Return the outputs of a rule for jobs with these wildcards, of jobs that can be done."""
        patterns = [str(output) for output in outputs]
        files = []
        for wildcards in jobs:
            for pattern in patterns:
                files.append(pattern.format(scale=self.config.scale, **wildcards))
        unfinished = load_unfinished(self.config, self.config.scale)
        return [file for file in files if Path(file) not in unfinished]


def list_wildcards(run: Run) -> dict[str, str]:
    """Return the wildcards of a job on a run, except the scale."""
    return {
        "task": run.task,
        "method": run.method,
        "variant": run.variant,
        "seed": format_seed(run.seed),
    }


def list_sources(
    catalogue: Catalogue,
    scale: str,
    paper: str,
    runs: Iterable[Run],
    needs: ClaimNeeds | None = None,
) -> set[str]:
    """Return the files of sources.yaml for `runs` of a paper.

    These are the sources of their data, of the paper's analyses and of its replacement words; with
    `needs`, of the analyses and the interventions that single claims need.
    """
    runs = list(runs)
    source: Paper | ClaimNeeds = needs or catalogue.papers[paper]
    files: set[str] = set()
    for task in {run.task for run in runs}:
        files.update(resolve_data(catalogue, task, scale).sources)
    for task in {run.task for run in runs if run.variant_key in source.intervened_variants}:
        files.update(resolve_candidates(catalogue, task, scale).sources)
    for analysis in source.analyses.values():
        analysed = select_display_runs(analysis, runs)
        files.update(list_analysis_sources(catalogue, analysis, analysed, scale))
    return files


def list_hub_models(
    catalogue: Catalogue, scale: str, precision: str, runs: Iterable[Run]
) -> set[str]:
    """Return the models of the hub that `runs` start from."""
    models = set()
    for run in runs:
        origin = resolve_run(catalogue, run, scale, precision).origin
        if isinstance(origin, HubModel):
            models.add(origin.hub)
    return models
