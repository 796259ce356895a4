"""Find options that Snakemake refuses with pages of usage, or takes without a word."""

import argparse
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from workflow_scripts.common.validation import find_close_name, suggest_name
from workflow_scripts.config.layers import find_setting
from workflow_scripts.config.overrides import OPTIONS
from workflow_scripts.config.schema import Config, describe_strange_key
from workflow_scripts.workflow.resource_check import find_wrong_resources
from workflow_scripts.workflow.snakemake_call import read_arguments

# Options of ./reproduce that are not Snakemake's.
OWN_OPTIONS = (
    "--papers",
    "--scale",
    "--claim",
    "--budget",
    "--finish-within",
    "--finished",
    "--yes",
    "--export-weights",
)
KNOWN_OPTIONS = (
    f"its own are {', '.join(OWN_OPTIONS)}, all others Snakemake's: .venv/bin/snakemake --help"
)
OPTION = re.compile(r"--[\w-]+")
UNKNOWN = re.compile(r"unrecognized arguments: (-[^\s=]+)")
NO_PROFILE = re.compile(r"profile directory given \((.+?)\), but no profile")
RULE = re.compile(r"^(?:rule|checkpoint|use rule \w+ as) (\w+)(?::| with:)", re.MULTILINE)


def suggest_option(message: str) -> str | None:
    """Say what an option was probably meant to be.

    None if the message, Snakemake's last line, is of no unknown option and no unknown profile.
    """
    no_profile = NO_PROFILE.search(message)
    if no_profile:
        return _describe_missing_profile(no_profile[1])
    found = UNKNOWN.search(message)
    if not found:
        return None
    from snakemake.cli import get_argument_parser

    option = found[1]
    advice = suggest_setting(option)
    if not advice:
        snakemake_options = OPTION.findall(get_argument_parser().format_usage())
        close = find_close_name(option, [*OWN_OPTIONS, *snakemake_options])
        advice = f"did you mean '{close}'?" if close else KNOWN_OPTIONS
    return f"there is no option {option}; {advice}"


def suggest_setting(option: str) -> str | None:
    """Say how to set what an option names: a key of config.yaml, or a setting of trainings.

    None if it names neither.
    """
    name = option.lstrip("-").replace("-", "_")
    for key in Config.model_fields.keys() - OPTIONS.keys():
        if name in (key, key.removesuffix("s")):
            value = "[3]" if key == "seeds" else "VALUE"
            return f"write --config {key}={value}"
    setting = find_setting(name)
    if setting:
        return (
            f"{setting} is set in catalogue/, and no call changes it; with another value write a "
            "variant of your own: docs/adding.md#a-method"
        )
    return None


def find_wrong_options(arguments: list[str]) -> Iterator[str]:
    """Yield a line for each option whose value names nothing.

    These are a profile that is no folder, which Snakemake ignores, rules that do not exist, keys of
    --config that Snakemake refuses without their names, and resources that nothing reads. Raises
    UserError with Snakemake's message if it refuses the arguments.
    """
    parsed = read_arguments(arguments)
    for word in parsed.config or ():
        key, equals, _ = word.partition("=")
        if equals and not key.isidentifier():
            yield f"--config: {describe_strange_key(key)}"
    yield from _find_missing_profile(parsed)
    rule_files = list(Path("rules").glob("*.smk"))
    rules = list_rules(rule_files)
    for option, values in (
        ("--set-resources", parsed.set_resources),
        ("--set-threads", parsed.set_threads),
    ):
        for name in values or ():
            if name not in rules:
                yield f"{option} names the rule '{name}'; {suggest_name(name, rules)}"
    yield from find_wrong_resources(arguments, parsed, rule_files)


def _find_missing_profile(parsed: argparse.Namespace) -> Iterator[str]:
    """Yield a line if --workflow-profile names no folder."""
    profile = parsed.workflow_profile
    # Snakemake looks for it in profiles/, too.
    if profile in (None, "none") or Path(profile).is_dir() or Path("profiles", profile).is_dir():
        return
    yield f"--workflow-profile {profile} is no folder; {suggest_name(profile, _list_profiles())}"


def _describe_missing_profile(name: str) -> str:
    """Say where a profile of --profile belongs, and which are there."""
    from snakemake.common import get_appdirs

    folder = Path(get_appdirs().user_config_dir)
    file = str(folder / name / "profile.yaml").replace(str(Path.home()), "~", 1)
    close = find_close_name(name, [path.name for path in folder.glob("*/")])
    meant = f"did you mean '{close}'? " if close else ""
    known = ", ".join(_list_profiles())
    return (
        f"no profile {name}; {meant}one of your own is in {file}; those of this project, after "
        f"--workflow-profile: {known}"
    )


def _list_profiles() -> list[str]:
    """List the folders with this project's profiles."""
    return sorted({str(file.parent) for file in Path("profiles").glob("*/*.yaml")})


def list_rules(files: Iterable[Path]) -> list[str]:
    """List the names of the rules in files of Snakemake's language."""
    rules = []
    for file in files:
        rules += RULE.findall(file.read_text(encoding="utf-8"))
    return rules
