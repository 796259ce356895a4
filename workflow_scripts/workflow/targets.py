"""List the files that the target rules request.

Every output is named, so that Snakemake recreates a deleted file, and a file that a rule newly declares.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.display_schema import Display
from workflow_scripts.config.displays import (
    list_analysis_sources,
    select_display_runs,
    select_intervened_runs,
)
from workflow_scripts.config.paths import DOWNLOADS, locate_downloads
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config, list_names
from workflow_scripts.config.specs import resolve_candidates, resolve_data, resolve_run
from workflow_scripts.provenance.fingerprints import list_paper_runs
from workflow_scripts.tasks.run_spec import HubModel


@dataclass(frozen=True)
class Targets:
    """The files of the chosen papers at the chosen scale. `outputs` are those of a rule, with wildcards."""

    config: Config
    catalogue: Catalogue

    def list_displays(self, kind: str, outputs: Iterable[str]) -> list[str]:
        """Return the outputs of every table or every figure."""
        names = [(paper, name) for paper, name, display in self._shown() if display.kind == kind]
        return self._formatted(
            outputs, [{"paper": paper, "display": name} for paper, name in names]
        )

    def list_analyses(self, outputs: Iterable[str]) -> list[str]:
        """Return the outputs of every analysis that a table or figure shows."""
        names = dict.fromkeys(
            (paper, name) for paper, _, display in self._shown() for name in display.list_analyses()
        )
        return self._formatted(
            outputs, [{"paper": paper, "analysis": name} for paper, name in names]
        )

    def list_runs(
        self, train: Iterable[str], evaluate: Iterable[str], intervene: Iterable[str]
    ) -> list[str]:
        """Return the outputs of these rules for every run, except its weights, which may be deleted after scoring."""
        changed: dict[Run, None] = {}
        for paper in self.config.papers:
            for experiment in self.catalogue.papers[paper].experiments.list_at(self.config.scale):
                if not self.config.seeds and not experiment.seeds[self.config.scale]:
                    what = f"experiments.yaml: the experiment on {', '.join(list_names(experiment.task))} has no seeds"
                    raise UserError(
                        f"papers/{paper}/{what} at {self.config.scale}; name them under `seeds`"
                    )
            changed |= dict.fromkeys(
                select_intervened_runs(self.catalogue, paper, self._asked(paper))
            )
        asked, files = list_requested_runs(self.catalogue, self.config), []
        for runs, made in (
            ([run for run in asked if not run.weights], train),
            (asked, evaluate),
            (changed, intervene),
        ):
            files += self._formatted(
                made, [vars(run) | {"seed": f"seed-{run.seed}"} for run in runs]
            )
        return [file for file in files if not file.endswith(".safetensors")]

    def list_downloads(self) -> list[str]:
        """Return all files and models that need a network."""
        files, models = set(), set()
        for paper in self.config.papers:
            files |= list_sources(self.catalogue, self.config.scale, paper, self._asked(paper))
            models |= list_hub_models(
                self.catalogue, self.config.scale, self.config.precision, self._asked(paper)
            )
        return locate_downloads(files) + [
            f"{DOWNLOADS}/models/{model}/model.json" for model in models
        ]

    def _asked(self, paper: str) -> dict[Run, list[str]]:
        return list_paper_runs(self.config, paper, self.config.scale)

    def _shown(self) -> list[tuple[str, str, Display]]:
        """Return (paper, name, display) of each table and figure."""
        shown = []
        for paper in self.config.papers:
            displays = self.catalogue.papers[paper].select_shown_displays(self._asked(paper))
            shown += [(paper, name, display) for name, display in displays.items()]
        return shown

    def _formatted(self, patterns: Iterable[str], names: list[dict[str, Any]]) -> list[str]:
        patterns = list(map(str, patterns))
        return [
            pattern.format(scale=self.config.scale, **found)
            for found in names
            for pattern in patterns
        ]


def list_sources(catalogue: Catalogue, scale: str, paper: str, runs: Iterable[Run]) -> set[str]:
    """Return the files of sources.yaml for the data of `runs`, the paper's analyses and its replacement words."""
    runs = list(runs)
    prepared = [resolve_data(catalogue, task, scale) for task in {run.task for run in runs}]
    changed = {run.task for run in select_intervened_runs(catalogue, paper, runs)}
    replaced = [resolve_candidates(catalogue, task, scale) for task in changed]
    analysed = [
        list_analysis_sources(catalogue, analysis, select_display_runs(analysis, runs), scale)
        for analysis in catalogue.papers[paper].analyses.values()
    ]
    return {file for spec in (*prepared, *replaced) for file in spec.sources}.union(*analysed)


def list_hub_models(
    catalogue: Catalogue, scale: str, precision: str, runs: Iterable[Run]
) -> set[str]:
    """Return the models of the hub that `runs` start from."""
    origins = [resolve_run(catalogue, run, scale, precision).origin for run in runs]
    return {origin.hub for origin in origins if isinstance(origin, HubModel)}
