"""Run Snakemake with jobs that share one GPU. ./reproduce calls this."""

import argparse
import sys

from workflow_scripts.workflow.gpu_sharing import share_gpu
from workflow_scripts.workflow.snakemake_call import collect_stop_signals, parse_call, run_snakemake


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    share_gpu_help = "several jobs share the GPU, by MPS if it is there"
    parser.add_argument("--share-gpu", action="store_true", help=share_gpu_help)
    help_text = "after --: arguments of Snakemake"
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help=help_text)


def main(args: argparse.Namespace) -> None:
    """Run Snakemake, and exit with its code; after a signal n with 128 + n."""
    with collect_stop_signals() as received:
        call = parse_call(args.arguments[args.arguments[:1] == ["--"] :])
        with share_gpu(call) as (arguments, environment):
            code = 1 if received else run_snakemake(arguments, received, environment)
    sys.exit(128 + received[0] if received else code)
