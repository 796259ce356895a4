"""Resolve what the jobs of data, runs, searches and analyses are given, and write it to files.

The files are in results/<scale>/specs/. These jobs read their spec file, and neither catalogue/ nor
papers/; jobs of tables, figures and claims read both.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, write_text_file
from workflow_scripts.common.result_folders import RESULTS, SpecFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.catalogue import Catalogue, check_run, store_with_catalogue
from workflow_scripts.config.display_schema import Analysis
from workflow_scripts.config.displays import (
    find_analysis,
    list_analysis_sources,
    select_display_runs,
)
from workflow_scripts.config.requested import hash_plans, list_paper_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import (
    find_search_run,
    resolve_candidates,
    resolve_data,
    resolve_evaluation,
    resolve_intervention,
    resolve_run,
)
from workflow_scripts.data.data_spec import DataSpec
from workflow_scripts.interventions.settings import CandidateSpec, Intervention
from workflow_scripts.provenance.analysis_job_spec import AnalysedRun, AnalysisJobSpec
from workflow_scripts.provenance.fingerprints import fingerprint_report_job
from workflow_scripts.provenance.run_job_spec import JobResources, RunJobSpec
from workflow_scripts.provenance.spec_fingerprints import Fingerprint
from workflow_scripts.provenance.unfinished import load_unfinished
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, ParentRun, RunSpec
from workflow_scripts.workflow.gpu_hours import GpuHours
from workflow_scripts.workflow.job_fingerprints import fingerprint_job
from workflow_scripts.workflow.spec_files import Specs
from workflow_scripts.workflow.submitted_time import estimate_submitted_seconds
from workflow_scripts.workflow.wildcards import read_run_name, read_variant_key

Job = tuple[str, tuple[tuple[str, str], ...]]  # rule, (wildcard, value) pairs
SpecFile = DataSpec | CandidateSpec | RunJobSpec | AnalysisJobSpec


@store_with_catalogue
def resolve_run_job_spec(
    catalogue: Catalogue, run: Run, scale: str, precision: str = "auto"
) -> RunJobSpec:
    """Return what the jobs of a run are given. `precision` is that of config.yaml."""
    spec = resolve_run(catalogue, run, scale, precision)
    job_spec = RunJobSpec(
        spec=spec,
        scale=scale,
        evaluation=resolve_evaluation(catalogue, run, scale),
        intervention=_find_intervention(catalogue, run, spec.kind, scale),
        resources=find_resources(catalogue, run, scale),
        analysis_plans=hash_plans(catalogue, run, scale),
    )
    if isinstance(spec, GivenWeightsSpec):
        shared = resolve_run(catalogue, run._replace(seed=0), scale, precision)
        assert isinstance(shared, GivenWeightsSpec)
        job_spec = replace(job_spec, shared_spec=shared)
    return job_spec


def find_resources(catalogue: Catalogue, run: Run, scale: str) -> JobResources:
    """Return what each job on a run asks a cluster for at its first attempt."""
    jobs = catalogue.scales[scale].jobs
    memory = jobs.memory_of.get(run.method, jobs.memory)
    return JobResources(
        memory=memory,
        hours=jobs.hours,
        save_seconds=jobs.save_seconds,
        large_gpu=run.method in jobs.large_gpu,
    )


def _find_intervention(
    catalogue: Catalogue, run: Run, kind: str, scale: str
) -> Intervention | None:
    """Return the settings of the interventions on a run.

    None if it answers no prompts, or if they do not fit it.
    """
    if kind != "prompt":
        return None
    try:
        return resolve_intervention(catalogue, run, scale)
    except UserError:  # a run on which no display asks for interventions
        return None


def resolve_search_job_spec(
    catalogue: Catalogue, variant: VariantKey, scale: str, precision: str = "auto"
) -> RunJobSpec:
    """Return what the search before the trainings of a variant is given.

    Raises UserError if there is no such variant, or if it has no search.
    """
    first = variant.make_run(seed=0)
    check_run(catalogue, first)
    run = find_search_run(catalogue, first, scale, precision)
    if run is None:
        raise UserError(f"{variant} has no search at scale {scale}; add `search` to its settings")
    return resolve_run_job_spec(catalogue, run, scale, precision)


def resolve_analysis_job_spec(
    catalogue: Catalogue, paper: str, analysis: str, scale: str, runs: Iterable[Run]
) -> AnalysisJobSpec:
    """Return what the job of an analysis is given.

    `runs` are those that the paper asks for, or some of them.
    """
    entry = find_analysis(catalogue, paper, analysis)
    selected = select_display_runs(entry, runs)
    published = None
    if entry.published is not None:
        published = read_csv(catalogue.root / "papers" / entry.published / "published.csv")
    return AnalysisJobSpec(
        paper=paper,
        analysis=analysis,
        scale=scale,
        entry=entry,
        runs=[_name_analysed_run(catalogue, entry, run, scale) for run in selected],
        sources=list_analysis_sources(catalogue, entry, selected, scale),
        published=published,
    )


def list_read_files(entry: Analysis, run: Run, scale: str) -> list[Path]:
    """List the files of a run that an analysis reads, besides its weights."""
    folder = RESULTS.scale(scale).run(run)
    files = [folder.first_manifest]
    if entry.scored:
        files.append(folder.evaluation.scores)
    if run.variant_key in entry.intervened_variants:
        files.append(folder.interventions.scores)
    return files


def _name_analysed_run(catalogue: Catalogue, entry: Analysis, run: Run, scale: str) -> AnalysedRun:
    """Return a run with its model, and with what the entry of the analysis says about it."""
    runs_of_entry = next(runs for runs in entry.runs if run.variant_key in runs.list_variants())
    return AnalysedRun(
        task=run.task,
        method=run.method,
        variant=run.variant,
        seed=run.seed,
        model=resolve_run(catalogue, run, scale).model.name,
        series=runs_of_entry.series,
        readout=runs_of_entry.readout,
    )


class CatalogueSpecs:
    """What jobs are given, resolved from the catalogue and the papers with a configuration."""

    def __init__(self, catalogue: Catalogue, config: Config) -> None:
        self.catalogue = catalogue
        self.config = config
        self.get_run = cache(self._resolve_run)
        self.get_analysis = cache(self._resolve_analysis)

    def get_data(self, task: str, scale: str) -> DataSpec:
        """Resolve the data spec of a task."""
        return resolve_data(self.catalogue, task, scale)

    def get_candidates(self, task: str, scale: str) -> CandidateSpec:
        """Resolve the spec of the synonym candidates of a task."""
        return resolve_candidates(self.catalogue, task, scale)

    def get_search(self, variant: VariantKey, scale: str) -> RunJobSpec:
        """Plan the search before the trainings of a variant. Raises UserError if there is none."""
        return resolve_search_job_spec(self.catalogue, variant, scale, self.config.precision)

    def estimate_seconds(self, rule: str, wildcards: dict[str, str], device: str) -> float | None:
        """Estimate the time of a job on a run, or of a search, that is submitted to a cluster."""
        return estimate_submitted_seconds(self.gpu_hours, rule, wildcards, device)

    @cached_property
    def gpu_hours(self) -> GpuHours:
        """Estimates of GPU-hours, for times that were not measured."""
        return GpuHours(self.catalogue, self.config)

    def _resolve_run(self, run: Run, scale: str) -> RunJobSpec:
        """Plan a run. Raises UserError if there is no such variant."""
        check_run(self.catalogue, run)
        return resolve_run_job_spec(self.catalogue, run, scale, self.config.precision)

    def _resolve_analysis(self, paper: str, analysis: str, scale: str) -> AnalysisJobSpec:
        entry = find_analysis(self.catalogue, paper, analysis)
        unfinished = load_unfinished(self.config, scale)
        runs = []
        for run in list_paper_runs(self.catalogue, self.config, paper, scale):
            if not unfinished.is_missing_any(list_read_files(entry, run, scale)):
                runs.append(run)
        return resolve_analysis_job_spec(self.catalogue, paper, analysis, scale, runs)


def fingerprint_workflow_job(
    catalogue: Catalogue, config: Config, rule: str, wildcards: dict[str, str]
) -> Fingerprint | None:
    """Fingerprint any job of the workflow; None for rules without a fingerprint."""
    fingerprint = fingerprint_report_job(catalogue, config, rule, wildcards)
    if fingerprint is not None:
        return fingerprint
    return fingerprint_job(CatalogueSpecs(catalogue, config), rule, wildcards)


def write_spec_files(specs: Specs, jobs: Iterable[Job]) -> None:
    """Write the spec files of jobs under results/. A file is written only if its bytes change."""
    contents: dict[Path, SpecFile] = {}
    for rule, wildcards in jobs:
        _add_job(contents, specs, rule, dict(wildcards))
    for file, content in contents.items():
        # Keys keep their order: measures are written, and examples drawn, in the catalogue's.
        text = json.dumps(content.to_json(), indent=1, ensure_ascii=False) + "\n"
        _write_if_changed(file, text)


def _add_job(
    contents: dict[Path, SpecFile], specs: Specs, rule: str, wildcards: dict[str, str]
) -> None:
    """Add the specs that a job is given, by their files; none for a download or a report."""
    scale = wildcards.get("scale", "")
    files = _get_spec_folder(scale)
    if rule == "prepare":
        task = wildcards["task"]
        contents[files.data(task)] = specs.get_data(task, scale)
    elif rule == "candidates":
        task = wildcards["task"]
        contents[files.candidates(task)] = specs.get_candidates(task, scale)
    elif rule == "search":
        _add_search(contents, specs, read_variant_key(wildcards), scale)
    elif rule in ("train", "evaluate", "intervene"):
        _add_run(contents, specs, read_run_name(wildcards), scale)
    elif rule == "analyse":
        paper = wildcards["paper"]
        analysis = wildcards["analysis"]
        contents[files.analysis(paper, analysis)] = specs.get_analysis(paper, analysis, scale)


def _add_run(contents: dict[Path, SpecFile], specs: Specs, run: Run, scale: str) -> None:
    """Add a run with the runs and the search before it.

    Snakemake on a node of a cluster asks for the specs of these, too.
    """
    file = _get_spec_folder(scale).run(run)
    if file in contents:
        return
    job_spec = specs.get_run(run, scale)
    contents[file] = job_spec
    spec = job_spec.spec
    if isinstance(spec, RunSpec) and spec.search:
        _add_search(contents, specs, spec.variant_key, scale)
    if isinstance(spec.origin, ParentRun):
        _add_run(contents, specs, spec.origin.run, scale)


def _add_search(
    contents: dict[Path, SpecFile], specs: Specs, variant: VariantKey, scale: str
) -> None:
    """Add a search and, if it starts from a run, that run with those before it."""
    job_spec = specs.get_search(variant, scale)
    contents[_get_spec_folder(scale).search(variant)] = job_spec
    if isinstance(job_spec.spec.origin, ParentRun):
        _add_run(contents, specs, job_spec.spec.origin.run, scale)


def _get_spec_folder(scale: str) -> SpecFolder:
    return RESULTS.scale(scale).specs


def _write_if_changed(file: Path, text: str) -> None:
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_text_file(file, text)
