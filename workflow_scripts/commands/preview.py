"""Make tables, figures, claims and a page of what is finished, also while ./reproduce runs.

It runs no job, and writes to a folder of its own. `./reproduce --finished` makes the results
themselves from what is finished, between two calls.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from workflow_scripts.commands.figure import write_figure
from workflow_scripts.commands.page import describe_runs, suggest_claim
from workflow_scripts.commands.summary import count_made
from workflow_scripts.commands.table import write_table
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_text_file
from workflow_scripts.common.result_folders import RESULTS, ExportFolder, ScaleFolder
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import FigureDisplay
from workflow_scripts.config.displays import select_display_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_paper_runs, list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.provenance.unfinished import Cause, Unfinished
from workflow_scripts.reporting.claims.judging import judge_paper, write_claims
from workflow_scripts.reporting.claims.outcome import Outcome
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.figures.figure import draw_figure
from workflow_scripts.reporting.site.run_page import format_run_page
from workflow_scripts.reporting.tables.table import make_table
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config
from workflow_scripts.workflow.run_export import is_scored

FOLDER = RESULTS.path / "preview"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config_arguments(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help=f"instead of {FOLDER}/<scale>; it is not emptied"
    )


def main(args: argparse.Namespace) -> None:
    """Write the tables, figures, claims and page, and say how much is finished.

    Raises UserError for a folder of results, and where no run is finished.
    """
    catalogue = load_catalogue()
    config = load_call_config(args)
    if config.claims:
        raise UserError("preview shows whole papers; leave out --claim, or name --papers")
    results = RESULTS.scale(config.scale)
    out = ScaleFolder(args.out or FOLDER / config.scale)
    if out.runs.exists() or ExportFolder(out.path).provenance.exists():
        raise UserError(f"{out.path} has results of runs; choose another folder with --out")
    runs = list_requested_runs(catalogue, config)
    finished = [run for run in runs if is_scored(run, config.scale)]
    if not finished:
        raise UserError(f"none of the {len(runs)} runs is finished in {results.path}")
    unfinished = find_unfinished(catalogue, config, results)
    outcomes: dict[str, list[Outcome]] = {}
    for paper in config.papers:
        paper_results = PaperResults(catalogue, paper, config.scale, results, unfinished)
        write_displays(paper_results, config, out)
        paper_runs = list_paper_runs(catalogue, config, paper, config.scale)
        outcomes[paper] = judge_paper(paper_results, paper_runs)
    write_claims(out.claims.table, outcomes)
    trainings = count_made(catalogue, config, results).trainings
    made = replace(count_made(catalogue, config, out), trainings=trainings)
    ran = describe_runs(catalogue, config, results)
    ran = replace(ran, made=str(made), is_unfinished=True)
    page = format_run_page(catalogue, config, out, ran, "", suggest_claim(catalogue, config))
    write_text_file(out.page, page)
    print(f"{len(finished)} of {len(runs)} runs are finished; in {out.path}: {made}")
    print(f"Page: {out.page}")


def find_unfinished(catalogue: Catalogue, config: Config, results: ScaleFolder) -> Unfinished:
    """Find the scores and analyses of a configuration that are not there."""
    causes: dict[Path, Cause] = {}
    for run in list_requested_runs(catalogue, config):
        folder = results.run(run)
        cause = Cause(word="not finished", sentence=f"{run} is not finished")
        if not is_scored(run, config.scale):
            causes[folder.evaluation.scores] = cause
        if not folder.interventions.scores.exists():
            causes[folder.interventions.scores] = cause
    for paper in config.papers:
        for name in catalogue.papers[paper].analyses:
            analysis = results.analysis(paper, name)
            if not (analysis.manifest.exists() and analysis.scores.exists()):
                sentence = f"analysis {name} is not finished"
                cause = Cause(word="not finished", sentence=sentence)
                causes |= dict.fromkeys((analysis.scores, analysis.manifest), cause)
    return Unfinished(causes)


def write_displays(results: PaperResults, config: Config, out: ScaleFolder) -> None:
    """Write the tables and figures of a paper."""
    catalogue, paper = results.catalogue, results.paper
    runs = list_paper_runs(catalogue, config, paper, config.scale)
    for name, display in catalogue.papers[paper].select_shown_displays(runs).items():
        selected = select_display_runs(display, runs)
        if isinstance(display, FigureDisplay):
            write_figure(draw_figure(results, name, selected), out.figure(paper, name))
        else:
            write_table(make_table(results, name, selected), out.table(paper, name))
