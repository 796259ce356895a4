"""Pack a scale's results as one Workflow Run RO-Crate: workflow, tables, figures, scores and their
provenance.

Checkpoints, data and predictions stay out. https://www.researchobject.org/workflow-run-crate/
"""

import argparse
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json, write_atomically
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.config.catalogue import find_scale
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.provenance.recorded_digests import require_undamaged
from workflow_scripts.reporting.pages.crate import list_requested_files, make_crate
from workflow_scripts.reporting.pages.verify import require_complete


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--scale", required=True)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE.zip",
        help="the crate; replaced when complete",
    )


def main(args: argparse.Namespace) -> None:
    """Write the crate.

    Raises UserError unless the scale has complete results, each as its job has written it.
    """
    catalogue = load_catalogue()
    results = RESULTS.scale(args.scale)
    find_scale(catalogue, args.scale)
    if not results.config.exists():
        advice = f"make them with ./reproduce --scale {args.scale}"
        raise UserError(f"{results.path} has no complete results; {advice}")
    if args.out.suffix != ".zip":
        raise UserError(f"{args.out}: a crate is a zip file; give --out a name that ends in .zip")
    config = load_config(read_json(results.config))
    require_complete(config, results.config)
    require_undamaged(list_requested_files(results, catalogue, config))
    crate, summary = make_crate(catalogue, config, results)
    with write_atomically(args.out) as temporary:
        crate.write_zip(temporary)
    print(f"{summary}: {args.out}")
