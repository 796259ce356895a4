"""Run a command of a rule: `python -m workflow_scripts COMMAND --help`."""

import argparse
import importlib
import os
import signal
import sys

import workflow_scripts.provenance.record  # noqa: F401 - a command's clock starts with it
from workflow_scripts.common.errors import UserError

COMMANDS = {
    "lint": (
        "workflow_scripts.commands.lint",
        "print every problem of config.yaml, catalogue/ and papers/; update catalogue/schemas/",
    ),
    "fetch": ("workflow_scripts.commands.fetch", "download source files, checked against their pinned sha256"),
    "fetch-model": ("workflow_scripts.commands.fetch_model", "get a model of the hub at its pinned commit"),
    "prepare": ("workflow_scripts.commands.prepare", "make a task's Parquet files from its sources"),
    "search": ("workflow_scripts.commands.search", "choose a variant's learning rate and batch size on one seed"),
    "train": ("workflow_scripts.commands.train", "train one run; resumes where it was stopped"),
    "evaluate": ("workflow_scripts.commands.evaluate", "decode and score one trained run"),
    "candidates": ("workflow_scripts.commands.candidates", "find replacements for the words of a task"),
    "intervene": ("workflow_scripts.commands.intervene", "change a trained model or its prompts, and score it"),
    "analyse": ("workflow_scripts.commands.analyse", "compute one analysis from trained runs"),
    "table": ("workflow_scripts.commands.table", "write one table, published next to reproduced"),
    "figure": ("workflow_scripts.commands.figure", "draw one figure"),
    "checks": (
        "workflow_scripts.commands.checks",
        "compare SCAN's grammar with the official files, and the papers' numbers",
    ),
    "claims": ("workflow_scripts.commands.claims", "give a verdict on every claim"),
    "readme": ("workflow_scripts.commands.readme", "print README's tables of claims, or write them into it"),
    "export": (
        "workflow_scripts.commands.export",
        "copy measured tables, figures, claims, scores and provenance to results/reference",
    ),
    "why": ("workflow_scripts.commands.why", "print why each job would run: the change, before and after"),
    "check": ("workflow_scripts.commands.check", "list the results that differ from the current configuration"),
    "crate": ("workflow_scripts.commands.crate", "pack results and provenance as a Workflow Run RO-Crate"),
    "verify": ("workflow_scripts.commands.verify", "check a crate's files, and its numbers against its scores"),
    "cter": ("workflow_scripts.commands.cter", "score any translations of CoGnition's new compounds"),
    "new-paper": ("workflow_scripts.commands.new_paper", "write the folder of a new paper, which runs at once"),
    "plan": ("workflow_scripts.commands.plan", "print the runs of a configuration and their cost"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 an error that the user can fix)."""
    summary = "\n".join(f"  {name:11} {what}" for name, (_, what) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts",
        description=f"commands:\n{summary}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    arguments = sys.argv[1:] if arguments is None else arguments
    command = parser.parse_args(arguments[:1]).command
    module = importlib.import_module(COMMANDS[command][0])
    options = argparse.ArgumentParser(prog=f"python -m workflow_scripts {command}", description=module.__doc__)
    module.add_arguments(options)
    given = options.parse_args(arguments[1:])
    try:
        module.main(given)
    except UserError as error:
        print(*(f"error: {line}" for line in str(error).splitlines()), sep="\n", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of the output has ended (`| head`). Python must not write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except IsADirectoryError as error:
        print(f"error: {error.filename2 or error.filename} is a folder; give the name of a file", file=sys.stderr)
        return 1
    except OSError as error:
        # Disk full, no permission: the machine's state, not a defect of ours.
        # If the error names two files, the second was being written. A failed write names none.
        where = (
            error.filename2 or error.filename or getattr(given, "out", None) or getattr(given, "downloads", "output")
        )
        print(f"error: {where}: {error.strerror or error}; nothing was replaced", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    # SIGTERM becomes an exit, so that temporary files are removed and trainings save their state.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(main())
