"""Print what a finished ./reproduce has made, what it comes to, and how to continue."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from workflow_scripts.common.result_folders import COMMITTED, RESULTS, ScaleFolder
from workflow_scripts.common.yaml_files import read_yaml_mapping
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import FigureDisplay
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import (
    is_measured_at,
    list_paper_runs,
    list_requested_runs,
    select_claim,
)
from workflow_scripts.config.schema import Config
from workflow_scripts.reporting.claims.claim_rows import describe_primary_claims, read_claim_rows
from workflow_scripts.reporting.claims.claim_table import print_claim_summary
from workflow_scripts.reporting.claims.outcome import DECIDED
from workflow_scripts.reporting.committed.recomputing import describe_verdicts
from workflow_scripts.workflow.cost_groups import make_paper_group
from workflow_scripts.workflow.job_hours import CPU, JobHours
from workflow_scripts.workflow.snakemake_call import (
    add_snakemake_arguments,
    get_snakemake_arguments,
    parse_call,
)

SHOWN_TABLES = 3
# The claim of README's commands, and the scale at which they train it.
SUGGESTED_CLAIM = "cat/comp-over-bert-bird"
SUGGESTED_SCALE = "small"


@dataclass(frozen=True)
class Made:
    """How much of what a configuration asks for is there."""

    trainings: int
    tables: int
    figures: int

    def __str__(self) -> str:
        counts = {"training": self.trainings, "table": self.tables, "figure": self.figures}
        texts = [f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items()]
        return f"{texts[0]}, {texts[1]} and {texts[2]}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--seconds", type=int, metavar="N", help="how long the call took, if it has made anything"
    )
    parser.add_argument(
        "--failed", action="store_true", help="the call has failed: name no further commands"
    )
    add_snakemake_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Print the end of a call; nothing if the scale was never finished."""
    words = get_snakemake_arguments(args)
    config = parse_call(words).config
    catalogue = load_catalogue()
    results = RESULTS.scale(config.scale)
    if not results.config.exists():
        return
    console = Console(highlight=False, soft_wrap=True)
    made = count_made(catalogue, config, results)
    is_unfinished = results.unfinished.exists()
    console.print(describe_made(made, args.seconds, is_unfinished))
    if catalogue.scales[config.scale].verdicts:
        print_claim_summary(console, results.claims.table, config.scale)
        if text := describe_missing_plans(catalogue, config):
            console.print(text)
    elif text := describe_committed(config):
        # A terminal breaks long lines within words.
        console.print(f"{text} (README.md)", soft_wrap=not console.is_terminal)
    for table in list_own_tables(catalogue, config, results)[:SHOWN_TABLES]:
        console.print(f"Table: {escape(str(table))}")
    console.print(f"Page: {escape(str(results.page))}{describe_coverage(config)}")
    if not args.failed and not is_unfinished:
        print_next_commands(console, catalogue, config)


def describe_coverage(config: Config) -> str:
    """Say which papers the page and claims.csv are about, where config.yaml has further ones."""
    usual = load_config()
    others = [paper for paper in usual.papers if paper not in config.papers]
    if not others:
        return ""
    papers = ", ".join(config.papers)
    words = "" if config.scale == usual.scale else f" --scale {config.scale}"
    return f" ({papers} alone; ./reproduce --finished{words} shows all papers of config.yaml)"


def describe_missing_plans(catalogue: Catalogue, config: Config) -> str:
    """Say that no claim is primary at the scale, and where one is; empty if one is, or nowhere."""
    scales: dict[str, None] = {}
    for paper in config.papers:
        scales |= dict.fromkeys(catalogue.papers[paper].list_planned_scales())
    if not scales or config.scale in scales:
        return ""
    return (
        f"At {config.scale} no claim is primary: the analysis plans are for {' and '.join(scales)}"
    )


def count_made(catalogue: Catalogue, config: Config, results: ScaleFolder) -> Made:
    """Count the trainings, tables and figures of a configuration that are there."""
    trainings = 0
    for run in list_requested_runs(catalogue, config):
        if not run.weights and results.run(run).manifest.exists():
            trainings += 1
    tables = figures = 0
    for paper in config.papers:
        runs = list_paper_runs(catalogue, config, paper, config.scale)
        for name, display in catalogue.papers[paper].select_shown_displays(runs).items():
            if isinstance(display, FigureDisplay):
                figures += results.figure(paper, name).csv.exists()
            else:
                tables += results.table(paper, name).csv.exists()
    return Made(trainings, tables, figures)


def list_own_tables(catalogue: Catalogue, config: Config, results: ScaleFolder) -> list[Path]:
    """List the tables, in Markdown, of a call for papers of which nothing is committed."""
    if not is_of_own_papers(config):
        return []
    tables = []
    for paper in config.papers:
        runs = list_paper_runs(catalogue, config, paper, config.scale)
        for name in catalogue.papers[paper].select_shown_displays(runs):
            table = results.table(paper, name).markdown
            if table.exists():
                tables.append(table)
    return tables


def describe_made(made: Made, seconds: int | None, is_unfinished: bool) -> str:
    """Say what is there, and how long it took; seconds: None if nothing was to be made."""
    if is_unfinished:
        return f"[bold yellow]Finished so far[/]: {made}"
    if seconds is None:
        return f"[bold green]Everything works[/], nothing to do: {made} are up to date"
    return f"[bold green]Everything works[/]: {made} in {format_time_taken(seconds)}"


def format_time_taken(seconds: int) -> str:
    """Format a time as `12 s`, `5 min 12 s` or `2 h 5 min`."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minute} min"
    if minutes:
        return f"{minutes} min {second} s"
    return f"{second} s"


def describe_committed(config: Config) -> str:
    """Say what the primary claims of the committed results come to.

    Empty without committed results, and for papers that are not among them.
    """
    if not COMMITTED.claims.table.exists():
        return ""
    rows = read_claim_rows(COMMITTED.claims.table)
    if not {row.paper for row in rows}.intersection(config.papers):
        return ""
    decided = [row for row in rows if row.is_primary and row.verdict in DECIDED]
    verdicts = describe_verdicts(decided)
    primary = describe_primary_claims(decided)
    return f"The papers, by results/reference/small: of {primary} {verdicts}"


def select_suggested_papers(catalogue: Catalogue, config: Config) -> list[str]:
    """Return the papers of which the next commands are.

    They are all of the project, or those of a call for one's own papers.
    """
    if is_of_own_papers(config):
        return list(config.papers)
    return list(catalogue.papers)


def is_of_own_papers(config: Config) -> bool:
    """Whether there are committed results, and none of a paper of the call."""
    if not COMMITTED.claims.table.exists():
        return False
    committed = {row.paper for row in read_claim_rows(COMMITTED.claims.table)}
    return not committed.intersection(config.papers)


def print_next_commands(console: Console, catalogue: Catalogue, config: Config) -> None:
    """Print commands to continue with, the cheapest first, each with what it takes."""
    papers = select_suggested_papers(catalogue, config)
    claim = find_suggested_claim(catalogue, papers)
    paper = claim.partition("/")[0] if claim else papers[0]
    scale = SUGGESTED_SCALE
    of_small = load_suggested_config([paper])
    commands: list[tuple[str, str]] = []
    if claim and is_committed(claim):
        verify = f".venv/bin/python -m workflow_scripts verify {claim}"
        commands.append((verify, "a verdict again from its committed scores: seconds"))
    if claim:
        hours = format_core_hours(catalogue, select_claim(of_small, paper, claim.split("/")[1]))
        commands.append(
            (f"./reproduce --claim {claim} --scale {scale}", f"one claim on real data: {hours}")
        )
    if list_paper_runs(catalogue, of_small, paper, scale):
        hours = format_core_hours(catalogue, of_small)
        purpose = f"a paper on real data: {hours}"
        commands.append((f"./reproduce --papers {paper} --scale {scale}", purpose))
    plan = ".venv/bin/python -m workflow_scripts plan --scale full"
    if papers != list(catalogue.papers):
        plan += f" --papers {' '.join(papers)}"
    commands.append((plan, "what the papers' own models cost: seconds"))
    width = max(len(command) for command, _ in commands)
    console.print("Next:")
    for command, purpose in commands:
        line = f"  {command:{width}}  # {purpose}"
        if len(line) > console.width and console.is_terminal:
            line = f"  {command}  # {purpose}"
        console.print(line)


def load_suggested_config(papers: Sequence[str]) -> Config:
    """Load the configuration of the suggested commands for papers.

    They are without the words of the call after --config, so all else is as in config.yaml.
    """
    content = read_yaml_mapping(Path("config.yaml"))
    changes = {"papers": list(papers), "scale": SUGGESTED_SCALE, "claims": None}
    return load_config(content | changes)


def format_core_hours(catalogue: Catalogue, config: Config) -> str:
    """Format the hours of all jobs of a configuration of one paper, on cores."""
    group = make_paper_group(catalogue, config, config.papers[0])
    return JobHours(catalogue, config, CPU).sum_jobs(group.jobs).format_time(CPU)


def is_committed(claim: str) -> bool:
    """Whether the committed results have the claim `<paper>/<claim>`."""
    if not COMMITTED.claims.table.exists():
        return False
    rows = read_claim_rows(COMMITTED.claims.table)
    return claim in {f"{row.paper}/{row.claim}" for row in rows}


def find_suggested_claim(catalogue: Catalogue, papers: Sequence[str]) -> str | None:
    """Return the claim of README's commands; of one's own papers the first that can be measured.

    None without one.
    """
    only = load_suggested_config(papers).only
    names = [
        f"{paper}/{claim.claim}" for paper in papers for claim in catalogue.papers[paper].claims
    ]
    for name in sorted(names, key=lambda name: name != SUGGESTED_CLAIM):
        if is_measured_at(catalogue, name, SUGGESTED_SCALE, only):
            return name
    return None
