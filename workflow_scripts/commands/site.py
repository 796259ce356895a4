"""Build the public site of exported results: a page per claim and paper, and the documentation.

Needs no network.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from workflow_scripts.commands import COMMANDS, build_parser
from workflow_scripts.commands.export import copy_results
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import check_replaceable, write_atomically
from workflow_scripts.common.result_folders import COMMITTED, RESULTS, ExportFolder
from workflow_scripts.config.catalogue import find_scale
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.site import conf, page_sources, pictures

NEEDED = ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_copybutton")
INSTALL = f"{sys.executable} -m pip install --require-hashes --no-deps -r envs/docs.lock"
BANNER = (
    "Scale {scale}: generated data and tiny models. "
    "They show that every step works, not what the papers say."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    results = "folder of one scale: as `export` writes it, or results/<scale>"
    parser.add_argument("--results", type=Path, default=COMMITTED.path, metavar="DIR", help=results)
    parser.add_argument(
        "--out",
        type=Path,
        default=RESULTS.site,
        metavar="DIR",
        help="replaced when complete",
    )
    parser.add_argument(
        "--pictures", type=Path, metavar="DIR", help="write README's pictures there, and no site"
    )


def main(args: argparse.Namespace) -> None:
    """Write the site, or the pictures.

    Raises UserError without Sphinx, for incomplete results and a foreign folder.
    """
    if not args.pictures:
        check_sphinx()
    catalogue = load_catalogue()
    scale = args.results.resolve().name
    find_scale(catalogue, scale)
    with tempfile.TemporaryDirectory() as scratch:
        results = args.results
        # our own results are laid out as exported ones first
        if not ExportFolder(results).provenance.exists():
            copy_results(scale, results.resolve().parent, Path(scratch))
            results = Path(scratch, scale)
        if args.pictures:
            pictures.write_pictures(catalogue, results, scale, args.pictures)
            return
        check_replaceable(args.out, ["*"], required="searchindex.js")
        sources = Path(scratch, "sources")
        count = page_sources.write_sources(catalogue, results, scale, describe_commands(), sources)
        banner = ""
        if not catalogue.scales[scale].verdicts:
            banner = BANNER.format(scale=scale)
        with write_atomically(args.out) as temporary:
            run_sphinx(sources, temporary, Path(scratch, "doctrees"), banner)
    print(f"{count} claims: {args.out / 'index.html'}")


def check_sphinx() -> None:
    """Raise UserError unless Sphinx and its extensions are installed."""
    if not all(importlib.util.find_spec(name) for name in NEEDED):
        raise UserError(
            f"the site is built by Sphinx, which is not installed; install it: {INSTALL}"
        )


def run_sphinx(sources: Path, out: Path, doctrees: Path, banner: str) -> None:
    """Write the pages of `sources` as HTML, with a text at the top unless it is empty.

    Raises UserError if Sphinx has an objection.
    """
    options = ["-q", "-W", "--keep-going", "-j", "auto"]
    options += ["-c", str(Path(conf.__file__).parent)]
    options += ["-d", str(doctrees)]
    options += ["-D", f"html_theme_options.announcement={banner}"]
    command = [sys.executable, "-m", "sphinx", *options, sources, out]
    process = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", errors="replace"
    )
    if process.returncode:
        objections = process.stderr.strip().splitlines() or ["no message"]
        raise UserError(
            f"Sphinx does not accept the pages: {objections[0]}; correct the file it names"
        )


def describe_commands() -> str:
    """Return the page of all commands, from their parsers."""
    parts = [
        "# Commands",
        "`.venv/bin/python -m workflow_scripts COMMAND`; `./reproduce` runs most of them itself.",
    ]
    for name in COMMANDS:
        _, parser = build_parser(name)
        parts += [f"## {name}", f"```text\n{parser.format_help().strip()}\n```"]
    return "\n\n".join(parts) + "\n"
