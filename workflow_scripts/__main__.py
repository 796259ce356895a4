"""Run a command of a rule: `python -m workflow_scripts COMMAND --help`."""

import argparse
import os
import re
import signal
import sys

import workflow_scripts.provenance.record  # noqa: F401 - a command's clock starts with it
from workflow_scripts.commands import COMMANDS, build_parser
from workflow_scripts.common.environment import clean_environment
from workflow_scripts.common.errors import UserError

OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory", re.IGNORECASE
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 an error that the user can fix)."""
    summary = "\n".join(f"  {name:11} {what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts",
        description=f"commands:\n{summary}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    arguments = sys.argv[1:] if arguments is None else arguments
    command = parser.parse_args(arguments[:1]).command
    module, options = build_parser(command)
    given = options.parse_args(arguments[1:])
    try:
        if "planned" in given:
            from workflow_scripts.commands.named_specs import set_planned

            set_planned(command, given)
        module.main(given)
    except UserError as error:
        print(*(f"error: {line}" for line in str(error).splitlines()), sep="\n", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of the output has ended (`| head`). Python must not write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        # Disk full, no permission: the machine's state, not a defect of ours.
        # If the error names two files, the second was being written. A failed write names none.
        place = getattr(given, "out", None) or getattr(given, "downloads", "output")
        told = f"{error.filename2 or error.filename or place}: {error.strerror or error}; nothing was replaced"
        if isinstance(error, IsADirectoryError):
            told = f"{error.filename2 or error.filename} is a folder; give the name of a file"
        print(f"error: {told}", file=sys.stderr)
        return 1
    except (MemoryError, RuntimeError) as error:
        # torch raises RuntimeError, and its subclass OutOfMemoryError on a GPU.
        if isinstance(error, RuntimeError) and not OUT_OF_MEMORY.search(str(error)):
            raise
        print("error: out of memory; give the process more, or lower batch_tokens", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    clean_environment()
    # SIGTERM becomes an exit, so that temporary files are removed and trainings save their state.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(main())
