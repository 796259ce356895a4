"""Run Snakemake so that a signal stops its jobs too; in a limited time or on a shared GPU if asked.

./reproduce calls this.
"""

import argparse
import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext

from workflow_scripts.common.errors import UserError
from workflow_scripts.workflow.code_edits import (
    describe_edits,
    hash_package,
    list_edited_modules,
    map_edited_outputs,
    mark_as_stale,
)
from workflow_scripts.workflow.snakemake_call import (
    add_snakemake_arguments,
    get_snakemake_arguments,
    parse_call,
    read_arguments,
)
from workflow_scripts.workflow.snakemake_process import collect_stop_signals, run_snakemake
from workflow_scripts.workflow.written_results import record_written_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    share_gpu = "several jobs share the GPU, by MPS if it is there"
    parser.add_argument("--share-gpu", action="store_true", help=share_gpu)
    finish_within = "start only what can be finished in this time, such as 25m or 1h30m"
    parser.add_argument("--finish-within", metavar="TIME", help=finish_within)
    started = "when the time began, in seconds since 1970; now if not given"
    parser.add_argument("--started", type=float, metavar="SECONDS", help=started)
    weights = "with --finish-within: export the weights of finished runs, too"
    parser.add_argument("--export-weights", action="store_true", help=weights)
    add_snakemake_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Run Snakemake, and exit with its code; after a signal n with 128 + n."""
    if args.export_weights and args.finish_within is None:
        raise UserError("--export-weights needs --finish-within, such as --finish-within 25m")
    started = time.time()
    code_before = hash_package()
    with collect_stop_signals() as received:
        try:
            if args.finish_within is None and not args.share_gpu:
                code = run_snakemake(get_snakemake_arguments(args), received)
            else:
                code = run_limited_or_shared(args, received)
        except UserError:
            # A process that Ctrl-C has ended, too, is no error.
            if not received:
                raise
            code = 1
    record_edits(list_edited_modules(code_before), started, get_snakemake_arguments(args))
    sys.exit(128 + received[0] if received else code)


def record_edits(edited: list[str], started: float, arguments: list[str]) -> None:
    """Record the results of edits during the call, or mark those that are stale, and print which.

    edited: modules that are other than at its beginning. arguments: those of Snakemake.
    """
    names = map_edited_outputs(started)
    if names and read_arguments(arguments).touch:  # what it accepts differs from what was recorded
        names = {}
    jobs = record_written_results(names, arguments) if names else []
    for job in jobs:
        for output in job.outputs:
            names.pop(output, None)
    mark_as_stale(names)
    line = describe_edits(edited, len(jobs), sorted(set(names.values())))
    if line:
        print(line, file=sys.stderr)


def run_limited_or_shared(args: argparse.Namespace, received: list[int]) -> int:
    """Run Snakemake in a limited time, or with jobs that share one GPU; return the exit code."""
    # A plain call does not wait for these imports.
    from workflow_scripts.workflow.gpu_sharing import prepare_gpu, run_mps
    from workflow_scripts.workflow.limited_run import LimitedRun
    from workflow_scripts.workflow.time_limit import parse_duration

    started = time.time() if args.started is None else args.started
    words = get_snakemake_arguments(args)
    limit = None
    if args.finish_within is not None:
        limit = parse_duration(args.finish_within)
    call = parse_call(words)
    environment = dict(os.environ)
    uses_mps = False
    if args.share_gpu:
        setup = prepare_gpu(call)
        call = parse_call(setup.arguments)
        environment = setup.environment
        uses_mps = setup.has_gpu and not call.is_dry_run
    limited = None
    if limit is not None:
        deadline = time.monotonic() + started + limit - time.time()
        limited = LimitedRun(call, words, deadline, limit, args.export_weights, received)
        if call.is_dry_run:
            limited.print_plan()
            return 0
    context: AbstractContextManager[dict[str, str]] = nullcontext(environment)
    if uses_mps:
        context = run_mps(environment)
    with context as environment_of_jobs:
        if received:
            return 1
        if limited:
            return limited.run(environment_of_jobs)
        return run_snakemake(call.arguments, received, environment_of_jobs)
