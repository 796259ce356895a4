"""Print the runs of a configuration and their cost, without starting anything."""

import argparse
from pathlib import Path

from workflow_scripts.commands.power_table import print_power
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.setting_places import print_spec
from workflow_scripts.reporting.claims.pilot_spread import print_spreads
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config
from workflow_scripts.workflow.paper_costs import print_costs
from workflow_scripts.workflow.step_time_records import record_step_times
from workflow_scripts.workflow.step_times import STEP_TIMES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config_arguments(parser)
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
        print_costs(catalogue, config, args.results)
