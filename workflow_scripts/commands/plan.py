"""Print the runs of a configuration and their cost, without starting anything."""

import argparse
import math
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.commands.power_table import print_power
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.yaml_files import read_yaml_mapping
from workflow_scripts.config.catalogue import Catalogue, parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.setting_places import print_spec
from workflow_scripts.reporting.claims.pilot_spread import print_spreads
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.training.update_count import BatchSizes, UpdateCount
from workflow_scripts.workflow.claim_budget import (
    CallWords,
    choose_affordable_claims,
    format_budget,
    list_missing_notes,
    list_role_notes,
    print_budget,
)
from workflow_scripts.workflow.cost_groups import CostGroup, find_cost_groups, list_cost_groups
from workflow_scripts.workflow.cost_tables import (
    print_group_costs,
    print_measured_costs,
    print_model_costs,
    print_notes,
)
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config
from workflow_scripts.workflow.gpu_hours import UPDATE_COUNTS, GpuHours, write_counts
from workflow_scripts.workflow.paper_costs import print_costs
from workflow_scripts.workflow.step_time_records import record_step_times
from workflow_scripts.workflow.step_times import STEP_TIMES

SLURM_PROFILE = Path("profiles/slurm/profile.yaml")
CHOICE = ("--scale", "--papers", "--claim", "--config")
# What says what is printed -> the other options that are read then. The first of a call counts.
READ_OPTIONS = {
    "--show": ("--scale", "--config"),
    "--record": ("--config", "--results"),
    "--spread": ("--log-odds",),
    "--power": ("--scale", "--papers", "--config"),
    "--count": CHOICE,
    "--budget": (*CHOICE, "--names", "--jobs", "--results"),
    "NAME": ("--scale", "--config"),
    "--by": (*CHOICE, "--jobs"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="NAME",
        help="a paper, <paper>/<table or figure>, <paper>/<claim> or a run: print its hours",
    )
    add_config_arguments(parser)
    parser.add_argument(
        "--by",
        choices=("paper", "table", "claim", "model"),
        help="print the hours of each; of each model also GPU memory and disk",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help=f"trainings at once, for the disk that their states need (that of {SLURM_PROFILE})",
    )
    budget = "print the claims that fit into this number of GPU-hours, primary ones first"
    parser.add_argument("--budget", type=float, metavar="HOURS", help=budget)
    parser.add_argument(
        "--names", action="store_true", help="with --budget: print the names of the claims alone"
    )
    count = f"count the updates of the requested runs, and write them to {UPDATE_COUNTS}"
    parser.add_argument("--count", action="store_true", help=count)
    parser.add_argument(
        "--show", metavar="RUN", help="print the spec of a run and where each value is set"
    )
    power = "print how likely the planned seeds decide the primary claims, and their cost"
    parser.add_argument("--power", action="store_true", help=power)
    spread = "print the standard deviations of a column of pilots over seeds, and no mean"
    parser.add_argument("--spread", nargs=2, metavar=("FILE", "METRIC"), help=spread)
    parser.add_argument(
        "--log-odds", action="store_true", help="with --spread: of the log odds of percentages"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"write the step times of finished runs to {STEP_TIMES}",
    )
    parser.add_argument("--results", type=Path, default=RESULTS.path)


def main(args: argparse.Namespace) -> None:
    """Print what the arguments ask for."""
    check_combination(args)
    catalogue = load_catalogue()
    config = load_call_config(args)
    if args.show is not None:
        print_spec(catalogue, parse_run(catalogue, args.show), config.scale, config.precision)
    elif args.record:
        record_step_times(catalogue, args.results, config.gpu_speed)
    elif args.spread:
        file, metric = args.spread
        print_spreads(file, metric, args.log_odds)
    elif args.power:
        print_power(catalogue, config, args.scale)
    else:
        print_estimates(args, GpuHours(catalogue, config, count_update_later))


def print_estimates(args: argparse.Namespace, estimates: GpuHours) -> None:
    """Print the costs that the arguments ask for."""
    catalogue, config = estimates.catalogue, estimates.config
    jobs = read_jobs_at_once() if args.jobs is None else args.jobs
    counts_flops = args.count or args.by == "model" or args.budget is not None
    if counts_flops and not estimates.is_estimated:
        raise UserError(
            "GPU-hours, GPU memory and budgets are of the papers' own models, not of the scale "
            f"{config.scale}; add --scale full"
        )
    groups = list(find_shown_groups(args, catalogue, config))
    if args.count:
        write_counts(estimates, list_requested_runs(catalogue, config))
    elif args.budget is not None:
        budget = choose_affordable_claims(estimates, args.budget)
        if args.names:
            print("\n".join(budget.names))
        else:
            call = CallWords(args.papers or [], args.claim or [], args.config, args.jobs)
            print_budget(estimates, budget, call, args.results, jobs)
    elif args.by == "model":
        print_model_costs(estimates, jobs)
    elif groups and not estimates.is_estimated:
        print_measured_costs(estimates, groups)
    elif groups:
        print_group_costs(estimates, groups)
        if args.by == "claim":
            print_notes(list_missing_notes(estimates))
    else:
        print_costs(estimates, args.results, jobs)
        if config.claims and estimates.is_estimated:
            claims = list_cost_groups(catalogue, config, "claim")
            print_notes(list_role_notes(catalogue, config.scale, claims))


def find_shown_groups(
    args: argparse.Namespace, catalogue: Catalogue, config: Config
) -> Iterable[CostGroup]:
    """Return the groups of runs that the names or --by ask for, none without either."""
    if args.targets:
        return find_cost_groups(catalogue, config, args.targets)
    if args.by in ("paper", "table", "claim"):
        return list_cost_groups(catalogue, config, args.by)
    return []


def check_combination(args: argparse.Namespace) -> None:
    """Raise UserError for options that do not go together, so that none is ignored."""
    if args.claim and args.papers:
        raise UserError("--claim names its paper; leave out --papers")
    if args.targets and args.claim:
        raise UserError(f"{args.targets[0]} and --claim both say what to plan; leave out one")
    if args.targets and args.by:
        advice = suggest_papers(args.targets, f"--by {args.by}") or "leave out one"
        raise UserError(f"{args.targets[0]} and --by both say what to list; {advice}")
    if args.targets and args.budget is not None:
        advice = suggest_papers(args.targets, f"--budget {format_budget(args.budget)}")
        raise UserError(
            "--budget chooses among the claims of --papers or --claim; "
            f"{advice or f'leave out {args.targets[0]}'}"
        )
    if args.by and args.budget is not None:
        raise UserError("--budget lists claims; leave out --by")
    if args.names and args.budget is None:
        raise UserError("--names lists the claims of a budget; add --budget HOURS")
    if args.log_odds and not args.spread:
        raise UserError("--log-odds is for a spread; add --spread FILE METRIC")
    if args.budget is not None and not 0 < args.budget < math.inf:
        hours = format_budget(args.budget)
        raise UserError(f"--budget {hours} is no number of hours above 0")
    if args.jobs is not None:
        if args.jobs < 1:
            raise UserError("--jobs needs a number from 1 on")
        if args.targets or args.names or args.by in ("paper", "table", "claim"):
            raise UserError("--jobs is for the disk of saved states, which this does not print")
    given = list_given_options(args)
    for asked, options in READ_OPTIONS.items():
        if asked in given:
            for option in given:
                if option != asked and option not in options:
                    pair = f"{asked} and {option}".replace("NAME", " ".join(args.targets[:1]))
                    raise UserError(f"{pair} do not go together; leave out one")
            return


def list_given_options(args: argparse.Namespace) -> list[str]:
    """List the options of a call that have a value, NAME for the names without an option."""
    values = {
        "NAME": args.targets or None,
        "--by": args.by,
        "--budget": args.budget,
        "--names": args.names or None,
        "--count": args.count or None,
        "--show": args.show,
        "--power": args.power or None,
        "--spread": args.spread,
        "--log-odds": args.log_odds or None,
        "--record": args.record or None,
        "--scale": args.scale,
        "--papers": args.papers,
        "--claim": args.claim,
        "--config": args.config or None,
        "--jobs": args.jobs,
        "--results": None if args.results == RESULTS.path else args.results,
    }
    return [option for option, value in values.items() if value is not None]


def suggest_papers(targets: list[str], options: str) -> str:
    """Say how to name papers next to the options; empty if one of the targets is no paper."""
    if any("/" in target for target in targets):
        return ""
    return f"write --papers {' '.join(targets)} {options}"


def read_jobs_at_once() -> int:
    """Read how many jobs the profile for SLURM submits at once; 1 without a profile."""
    if not SLURM_PROFILE.exists():
        return 1
    jobs = read_yaml_mapping(SLURM_PROFILE).get("jobs")
    if not isinstance(jobs, int):
        raise UserError(f"{SLURM_PROFILE}: `jobs` is no number; write one, or add --jobs N")
    return jobs


def count_update_later(spec: RunSpec, sizes: BatchSizes) -> UpdateCount:
    """Count an update. torch is imported when this is called first."""
    from workflow_scripts.training.update_flops import count_update

    return count_update(spec, sizes)
