"""Run a command of a rule: `python -m workflow_scripts COMMAND --help`."""

import argparse
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator

from workflow_scripts.common.environment import clean_environment

# Before all other imports: where Python does not read paths as UTF-8, some packages cannot be
# imported from a folder with an umlaut.
if __name__ == "__main__":
    clean_environment()

import workflow_scripts.provenance.record  # noqa: F401 - a command's clock starts with it
from workflow_scripts.commands import COMMANDS, INNER_COMMANDS, USER_COMMANDS, build_parser
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import find_close_name

OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory", re.IGNORECASE
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 an error that the user can fix).

    Where the reader of the output has ended (`| head`), the command ends, too, and says nothing.
    """
    try:
        try:
            return _run_command(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        return _end_without_reader()
    except SystemExit as end:
        # rich raises it where it has met a BrokenPipeError.
        if isinstance(end.__context__, BrokenPipeError):
            return _end_without_reader()
        raise


def _end_without_reader() -> int:
    """Return the exit code of a process that a broken pipe ends. Python writes no more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def _list_commands() -> Iterator[str]:
    """Yield the lines of the help that say what each command does, as wide as the terminal."""
    width = max(map(len, COMMANDS))
    columns, _ = shutil.get_terminal_size()
    for heading, commands in (
        ("commands:", USER_COMMANDS),
        ("called by ./reproduce and by the rules:", INNER_COMMANDS),
    ):
        yield heading
        for name, purpose in commands.items():
            start = f"  {name:{width}}  "
            indent = " " * len(start)
            text_width = max(columns, 2 * len(start))
            yield textwrap.fill(purpose, text_width, initial_indent=start, subsequent_indent=indent)


def _run_command(arguments: list[str] | None) -> int:
    """Run one command, and say in one line what the user can fix."""
    if arguments is None:
        arguments = sys.argv[1:]
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts",
        description="\n".join(_list_commands()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    name = arguments[0]
    if name not in COMMANDS and not name.startswith("-"):
        close = find_close_name(name, COMMANDS)
        advice = f"did you mean '{close}'?" if close else "--help lists the commands"
        print(f"error: there is no command '{name}'; {advice}", file=sys.stderr)
        return 2
    command = parser.parse_args(arguments[:1]).command
    module, options = build_parser(command)
    parse = options.parse_args
    if getattr(module, "TEXTS_AFTER_OPTIONS", False):
        parse = options.parse_intermixed_args
    args = parse(arguments[1:])
    try:
        if command in INNER_COMMANDS and "out" in args:  # it makes a result
            from workflow_scripts.commands.present_code import read_present_code

            read_present_code()
        if "job_spec" in args:
            from workflow_scripts.commands.named_specs import set_job_spec

            set_job_spec(command, args)
        module.main(args)
        sys.stdout.flush()
    except UserError as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # an OSError that `main` deals with
        raise
    except OSError as error:
        print(f"error: {_describe_os_error(error, args)}", file=sys.stderr)
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


def _describe_os_error(error: OSError, args: argparse.Namespace) -> str:
    """Describe a full disk, a missing permission, or a folder that is named in place of a file.

    These are no defects of the code, so that a line with the file says all.
    """
    # If the error names two files, the second was being written. A failed write names none.
    file = error.filename2 or error.filename
    if isinstance(error, IsADirectoryError):
        return f"{file} is a folder; give the name of a file"
    if not file:
        file = getattr(args, "out", None) or getattr(args, "downloads", "output")
    return f"{file}: {error.strerror or error}; nothing was replaced"


if __name__ == "__main__":
    # SIGTERM becomes an exit, so that temporary files are removed and trainings save their state.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(main())
