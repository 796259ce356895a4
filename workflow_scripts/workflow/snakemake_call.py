"""Read the arguments of Snakemake as it does, and change them."""

import argparse
import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import read_yaml_mapping
from workflow_scripts.config.loading import load_config
from workflow_scripts.config.overrides import OPTIONS, PLACEHOLDERS, merge_overrides
from workflow_scripts.config.schema import Config

# Words that ./reproduce adds to the user's.
LOGGER = "--logger=terminal"
# Values that an option of ./reproduce can have: a name, or a list of names in brackets.
NAMES = re.compile(r"[\w.-]+|\[[\w.,/ -]+\]")
# The form of options of which Snakemake reads each word without naming the option.
PAIRS = (
    "write --set-resources RULE:RESOURCE=VALUE, --default-resources RESOURCE=VALUE, "
    "--resources RESOURCE=NUMBER, --set-threads RULE=NUMBER"
)


@dataclass(frozen=True)
class SnakemakeCall:
    """The arguments of a call, and what Snakemake reads from them and from its profiles.

    options: the arguments without the targets. Before a target there must be `--`, since an option
    such as --config takes every word up to the next option.
    """

    options: list[str]
    targets: list[str]
    config: Config  # of the scale of the targets
    cores: int | None  # None: the jobs are submitted to a cluster
    gpu_jobs: int | None  # limit of jobs that use the GPU; None: no limit
    sets_gpu_jobs: bool  # whether the arguments, not a profile, have the limit
    is_dry_run: bool
    forces_jobs: bool  # whether finished jobs are run again

    @property
    def arguments(self) -> list[str]:
        """All arguments."""
        return join_targets(self.options, self.targets)


def add_snakemake_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of Snakemake, which follow those of the command after `--`."""
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="ARGUMENT",
        help="after --: arguments of Snakemake",
    )


def get_snakemake_arguments(args: argparse.Namespace) -> list[str]:
    """Return the arguments of Snakemake, without the `--` before them."""
    if args.arguments[:1] == ["--"]:
        return args.arguments[1:]
    return args.arguments


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    """Read arguments as Snakemake does. Raises UserError with its message if it refuses them."""
    from snakemake.cli import parse_args  # takes a second to import
    from snakemake.exceptions import CliException, WorkflowError

    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            _, parsed = parse_args(arguments)
    except SystemExit as error:
        last_line = messages.getvalue().strip().rpartition("\n")[2]
        raise UserError(last_line.partition("error: ")[2] or last_line) from error
    except CliException as error:
        raise UserError(str(error)) from error
    except (ValueError, WorkflowError) as error:  # of a list of NAME=VALUE
        reason = " ".join(map(str, error.args)).rstrip(".: ")
        raise UserError(f"{reason}; {PAIRS}") from error
    return parsed


def parse_call(arguments: list[str]) -> SnakemakeCall:
    """Parse the arguments of Snakemake. Raises UserError with its message if it refuses them."""
    parsed = read_arguments(arguments)
    targets = list(map(str, parsed.targets or ()))
    overrides = parsed.config or []
    content = merge_overrides(read_yaml_mapping(Path("config.yaml")), overrides)
    folders = {PurePath(target).parts[:2] for target in targets}
    # Other folders are no scales: results/downloads, and one that Snakemake refuses with its path.
    known_scales = read_yaml_mapping(Path("catalogue/scales.yaml"))
    scales = [scale for scale in known_scales if ("results", scale) in folders]
    if len(scales) == 1:
        content["scale"] = scales.pop()
    gpu_jobs = None
    if parsed.resources and "gpu" in parsed.resources:
        gpu_jobs = parsed.resources["gpu"].value
    return SnakemakeCall(
        options=_drop_targets(arguments, targets),
        targets=targets,
        config=load_config(content, overrides=overrides),
        cores=parsed.cores,
        gpu_jobs=gpu_jobs,
        sets_gpu_jobs=find_gpu_word(arguments) is not None,
        is_dry_run=bool(parsed.dryrun),
        forces_jobs=bool(parsed.forceall or parsed.forcerun or parsed.touch),
    )


@cache
def find_own_executor() -> str:
    """Return the executor that the arguments of this process, Snakemake, and its profiles name.

    In a dry run it is not that of the workflow.
    """
    return read_arguments(sys.argv[1:]).executor or "local"


def find_own_targets() -> list[str]:
    """Return the files and rules that the arguments of this process, Snakemake, name."""
    return list(map(str, read_arguments(sys.argv[1:]).targets or ()))


def join_targets(options: list[str], targets: list[str]) -> list[str]:
    """Return the arguments for options and targets."""
    if not targets:
        return options
    return [*options, "--", *targets]


def _drop_targets(arguments: list[str], targets: list[str]) -> list[str]:
    """Return the options of the arguments. A word of an option may be that of a target, too."""
    options = list(arguments)
    for target in targets:
        last = len(options) - 1 - options[::-1].index(target)
        del options[last]
    return [word for word in options if word != "--"]


def find_gpu_word(arguments: list[str]) -> str | None:
    """Return the word `gpu=N` of the arguments; None if they set no number of jobs on the GPU."""
    for word in arguments:
        if word.removeprefix("--resources=").startswith("gpu="):
            return word
    return None


def set_gpu_jobs(arguments: list[str], count: int) -> list[str]:
    """Return the arguments with `--resources gpu=<count>`, next to other resources if there are."""
    return _add_option_word(arguments, "--resources", f"gpu={count}")


def set_config_value(arguments: list[str], word: str) -> list[str]:
    """Return the arguments with `KEY=VALUE` among those of --config."""
    return _add_option_word(arguments, "--config", word)


def _add_option_word(arguments: list[str], option: str, word: str) -> list[str]:
    """Return the arguments with a word among those of an option that takes several."""
    if option in arguments:
        place = arguments.index(option) + 1
        return [*arguments[:place], word, *arguments[place:]]
    # At the front, where an option follows: this one takes every word up to the next option.
    return [option, word, *arguments]


def drop_force_words(arguments: list[str]) -> list[str]:
    """Return the arguments without those that run finished jobs again."""
    kept: list[str] = []
    is_name = False  # of a job that is forced
    for word in arguments:
        if word.startswith("-"):
            is_name = word in ("--forcerun", "-R")
            if not word.startswith(("--force", "-R")) and word not in ("-F", "-f"):
                kept.append(word)
        elif not is_name:
            kept.append(word)
    return kept


def format_own_call(words: Iterable[str]) -> str:
    """Return the command of ./reproduce that has given Snakemake these words, as users write it.

    Values of --config that an option of ./reproduce sets are written as that option.
    """
    own_words: list[str] = []
    chosen: list[str] = []
    settings: list[str] = []
    is_setting = False
    for word in words:
        if word in PLACEHOLDERS.values():
            continue
        if word in ("--config", "-C"):
            is_setting = True
        elif is_setting and not word.startswith("-"):
            key, _, value = word.partition("=")
            if key in OPTIONS and NAMES.fullmatch(value):
                chosen += [OPTIONS[key], *value.strip("[]").replace(",", " ").split()]
            else:
                settings.append(word)
        else:
            is_setting = False
            own_words.append(word)
    if settings:
        chosen += ["--config", *settings]
    # An option takes every word up to the next option: so targets are before the first, or after
    # `--`.
    end = own_words.index("--") if "--" in own_words else len(own_words)
    own_words[end:end] = chosen
    return shlex.join(["./reproduce", *(word for word in own_words if word != LOGGER)])
