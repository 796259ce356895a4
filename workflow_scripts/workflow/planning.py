"""Resolve what the jobs of runs, data and candidates are given, and write it to results/<scale>/specs/.

YAML is resolved here alone: a job reads its spec file, and neither catalogue/ nor papers/.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, write_text_file
from workflow_scripts.config.catalogue import Catalogue, Run, parse_run
from workflow_scripts.config.display_schema import Analysis
from workflow_scripts.config.displays import (
    find_analysis,
    list_analysis_sources,
    select_display_runs,
)
from workflow_scripts.config.paths import (
    RESULTS,
    analysis_spec_file,
    candidate_spec_file,
    data_spec_file,
    run_spec_file,
    search_spec_file,
)
from workflow_scripts.config.requested import hash_plans
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import (
    find_search_run,
    resolve_candidates,
    resolve_data,
    resolve_evaluation,
    resolve_intervention,
    resolve_run,
)
from workflow_scripts.provenance.fingerprints import list_paper_runs
from workflow_scripts.provenance.planned_analysis import AnalysedRun, PlannedAnalysis
from workflow_scripts.provenance.planned_run import PlannedRun
from workflow_scripts.tasks.run_spec import GivenWeightsSpec

Job = tuple[str, tuple[tuple[str, str], ...]]  # rule, (wildcard, value) pairs


def plan_run(catalogue: Catalogue, run: Run, scale: str, precision: str = "auto") -> PlannedRun:
    """Return what the jobs of a run are given. `precision` is that of config.yaml."""
    spec = resolve_run(catalogue, run, scale, precision)
    planned = PlannedRun(
        spec,
        scale,
        resolve_evaluation(catalogue, run, scale),
        _find_intervention(catalogue, run, spec.kind, scale),
        analysis_plans=hash_plans(catalogue, run, scale),
    )
    if isinstance(spec, GivenWeightsSpec):
        shared = resolve_run(catalogue, replace(run, seed=0), scale, precision)
        assert isinstance(shared, GivenWeightsSpec)
        planned = replace(planned, shared_spec=shared)
    return planned


def _find_intervention(catalogue: Catalogue, run: Run, kind: str, scale: str) -> Any:
    """Return the settings of the interventions on a run; None if it answers no prompts, or if they do not fit it."""
    if kind != "prompt":
        return None
    with suppress(UserError):  # a run on which no display asks for interventions
        return resolve_intervention(catalogue, run, scale)
    return None


def plan_search(
    catalogue: Catalogue, variant: str, scale: str, precision: str = "auto"
) -> PlannedRun:
    """Return what the search before the trainings of `<task>/<method>/<variant>` is given."""
    if variant.strip("/").count("/") != 2:
        raise UserError(f"--run {variant}: expected <task>/<method>/<variant> without a seed")
    run = find_search_run(catalogue, parse_run(catalogue, f"{variant}/seed-0"), scale, precision)
    if run is None:
        raise UserError(f"{variant} has no search at scale {scale}; add `search` to its settings")
    return plan_run(catalogue, run, scale, precision)


def plan_analysis(
    catalogue: Catalogue, paper: str, analysis: str, scale: str, runs: Iterable[Run]
) -> PlannedAnalysis:
    """Return what the job of an analysis is given. `runs` are those that the paper asks for, or some of them."""
    entry = find_analysis(catalogue, paper, analysis)
    selected = select_display_runs(entry, runs)
    published = None
    if entry.published is not None:
        published = read_csv(catalogue.root / "papers" / entry.published / "published.csv")
    return PlannedAnalysis(
        paper=paper,
        analysis=analysis,
        scale=scale,
        entry=entry,
        runs=[_name_analysed_run(entry, run) for run in selected],
        sources=list_analysis_sources(catalogue, entry, selected, scale),
        published=published,
    )


def _name_analysed_run(entry: Analysis, run: Run) -> AnalysedRun:
    """Return a run with what the entry of the analysis says about it."""
    named = next(runs for runs in entry.runs if run.unseeded in runs.list_variants())
    return AnalysedRun(
        task=run.task,
        method=run.method,
        variant=run.variant,
        seed=run.seed,
        series=named.series or "",
        readout=named.readout,
    )


def write_spec_files(catalogue: Catalogue, config: Config, jobs: Iterable[Job]) -> None:
    """Write the spec files of jobs under results/. A file is written only if its bytes change."""
    contents: dict[str, Any] = {}
    for rule, wildcards in jobs:
        names = dict(wildcards)
        scale = names.get("scale", "")
        if rule == "prepare":
            contents[f"{scale}/{data_spec_file(names['task'])}"] = resolve_data(
                catalogue, names["task"], scale
            )
        elif rule == "candidates":
            spec = resolve_candidates(catalogue, names["task"], scale)
            contents[f"{scale}/{candidate_spec_file(names['task'])}"] = spec
        elif rule == "search":
            variant = "{task}/{method}/{variant}".format(**names)
            contents[f"{scale}/{search_spec_file(variant)}"] = plan_search(
                catalogue, variant, scale, config.precision
            )
        elif rule in ("train", "evaluate", "intervene"):
            run = parse_run(catalogue, "{task}/{method}/{variant}/{seed}".format(**names))
            file = f"{scale}/{run_spec_file(run)}"
            if file not in contents:
                contents[file] = plan_run(catalogue, run, scale, config.precision)
        elif rule == "analyse":
            paper, analysis = names["paper"], names["analysis"]
            runs = list_paper_runs(config, paper, scale)
            file = f"{scale}/{analysis_spec_file(paper, analysis)}"
            contents[file] = plan_analysis(catalogue, paper, analysis, scale, runs)
    for name, content in contents.items():
        # Keys keep their order, because measures are written, and examples drawn, in the order of the catalogue.
        text = json.dumps(content.to_json(), indent=1, ensure_ascii=False) + "\n"
        _write_if_changed(RESULTS / name, text)


def _write_if_changed(file: Path, text: str) -> None:
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_text_file(file, text)
