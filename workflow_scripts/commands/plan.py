"""Print the runs of a configuration and their cost, without starting anything."""

import argparse
from pathlib import Path

from workflow_scripts.commands.power_table import print_power
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.setting_places import print_spec
from workflow_scripts.reporting.claims.pilot_spread import print_spreads
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.training.update_count import BatchSizes, UpdateCount
from workflow_scripts.workflow.cost_groups import find_cost_groups, list_cost_groups
from workflow_scripts.workflow.cost_tables import (
    choose_affordable_claims,
    print_budget,
    print_group_costs,
    print_model_costs,
)
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config
from workflow_scripts.workflow.gpu_hours import UPDATE_COUNTS, GpuHours, write_counts
from workflow_scripts.workflow.paper_costs import print_costs
from workflow_scripts.workflow.step_time_records import record_step_times
from workflow_scripts.workflow.step_times import STEP_TIMES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="NAME",
        help="a paper, <paper>/<table or figure> or <paper>/<claim>: print its GPU-hours",
    )
    add_config_arguments(parser)
    parser.add_argument(
        "--by",
        choices=("paper", "table", "claim", "model"),
        help="print the GPU-hours of each; of each model also GPU memory and disk",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=10,
        metavar="N",
        help="trainings at once, for the disk that their states need (10)",
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
    catalogue = load_catalogue()
    config = load_call_config(args)
    if args.show is not None:
        print_spec(catalogue, parse_run(catalogue, args.show), config.scale, config.precision)
    elif args.record:
        record_step_times(catalogue, args.results)
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
    asks_for_hours = args.count or args.by or args.targets or args.budget is not None
    if asks_for_hours and not estimates.is_estimated:
        raise UserError(
            f"GPU-hours are of the papers' own models, not of the scale {config.scale}; "
            "add --scale full"
        )
    if args.count:
        write_counts(estimates, list_requested_runs(catalogue, config))
    elif args.budget is not None and args.names:
        for entry in choose_affordable_claims(estimates, args.budget):
            print(entry.group.name)
    elif args.budget is not None:
        print_budget(estimates, args.budget, args.papers or [], args.config)
    elif args.by == "model":
        print_model_costs(estimates, args.jobs)
    elif args.targets:
        print_group_costs(estimates, find_cost_groups(catalogue, config, args.targets))
    elif args.by:
        print_group_costs(estimates, list_cost_groups(catalogue, config, args.by))
    else:
        print_costs(estimates, args.results, args.jobs)


def count_update_later(spec: RunSpec, sizes: BatchSizes) -> UpdateCount:
    """Count an update. torch is imported when this is called first."""
    from workflow_scripts.training.update_flops import count_update

    return count_update(spec, sizes)
