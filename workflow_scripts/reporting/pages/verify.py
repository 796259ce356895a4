"""Find faults of a crate: files against their checksums, numbers against its scores."""

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from urllib.parse import unquote

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json
from workflow_scripts.config import paths
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.display_schema import FigureDisplay
from workflow_scripts.config.displays import select_display_runs, select_intervened_runs
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.evaluation.statistics import Effect
from workflow_scripts.reporting.claims.judging import format_claims, judge_paper
from workflow_scripts.reporting.figures.figure import draw_figure
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.table import make_table

METADATA = "ro-crate-metadata.json"
ENDINGS = {"table": ("csv", "md", "tex", "html", "json"), "figure": ("csv", "svg", "png", "json")}
# Files of the workflow. Missing files of the catalogue and the papers are found when they are read.
EXPECTED = ("README.md", "Snakefile", "config.yaml", "envs/requirements.lock")


def verify_crate(folder: Path, crate: Path) -> tuple[list[str], list[str]]:
    """Verify `crate`, unpacked in a folder; return what was verified and the faults, as sentences."""
    listed = read_checksums(folder, crate)
    faults = find_file_faults(folder, listed)
    said = [f"{len(listed)} files"]
    try:
        found = sorted(folder.glob("results/*/config.json"))
        if len(found) != 1:
            raise UserError(
                f"results/<scale>/config.json: found {len(found)}; a crate contains one complete scale"
            )
        given = read_json(found[0])
        if not isinstance(given, dict):
            raise UserError(f"{found[0].relative_to(folder)}: not a configuration")
        catalogue, config = load_catalogue(folder), load_config(given, folder)
        expected = {
            f"results/{config.scale}/{name}" for name in list_expected_results(catalogue, config)
        } | {*EXPECTED}
        absent = (name for name in sorted(expected - listed.keys()) if not (folder / name).exists())
        faults += [f"{name}: neither present nor listed" for name in absent]
        if not faults:
            checked, faults = find_number_faults(
                catalogue, config, folder / "results" / config.scale
            )
            said += checked
    except UserError as error:  # the configuration is missing or broken
        faults.append(str(error))
    return said, faults


def read_checksums(folder: Path, crate: Path) -> dict[str, str]:
    """Read the sha256 of each file from the crate's metadata."""
    try:
        graph = read_json(folder / METADATA)["@graph"]
        return {
            unquote(str(entity["@id"])): entity["sha256"] for entity in graph if "sha256" in entity
        }
    except (UserError, OSError, KeyError, TypeError) as error:
        advice = "write a crate with `python -m workflow_scripts crate`"
        raise UserError(f"{crate}: no readable {METADATA} in it; {advice}") from error


def find_file_faults(folder: Path, listed: dict[str, str]) -> list[str]:
    """List files that are missing, differ from their checksum, or are not in the metadata."""
    files = [file for file in folder.rglob("*") if file.is_symlink() or file.is_file()]
    if links := [file for file in files if file.is_symlink()]:
        raise UserError(f"{links[0]} is a link; a crate contains files only")
    present = {file.relative_to(folder).as_posix() for file in files} - {METADATA}
    faults = [f"{name}: missing" for name in sorted(listed.keys() - present)]
    faults += [f"{name}: not listed in {METADATA}" for name in sorted(present - listed.keys())]
    for name in sorted(listed.keys() & present):
        if (actual := hash_file(folder / name)) != listed[name]:
            faults.append(f"{name}: sha256 is {actual}, not {listed[name]}")
    return faults


def list_expected_results(catalogue: Catalogue, config: Config) -> Iterator[str]:
    """Yield the files of the scale's folder that the configuration requires."""
    yield from ("config.json", "claims.csv", "claim_sides.csv", "claims.json")
    for run in list_requested_runs(catalogue, config):
        yield from (
            f"{paths.data_folder(run.task)}/{name}" for name in ("dataset.json", "record.json")
        )
        if not run.weights:
            yield from (
                f"{paths.run_folder(run)}/{name}"
                for name in ("run.json", "record.json", "training.csv")
            )
        scored = paths.evaluation_folder(run)
        yield from (f"{scored}/{name}" for name in ("evaluation.json", "record.json", "scores.csv"))
    for paper in config.papers:
        asked = list_requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))
        for run in select_intervened_runs(catalogue, paper, asked):
            yield from (
                f"{paths.candidate_folder(run.task)}/{name}"
                for name in ("candidates.json", "record.json")
            )
            folder = paths.intervention_folder(run)
            yield from (
                f"{folder}/{name}" for name in ("intervention.json", "record.json", "scores.csv")
            )
        for name, display in catalogue.papers[paper].select_shown_displays(asked).items():
            for ending in ENDINGS[display.kind]:
                yield paths.display_file(display.kind, paper, name, ending)
            for analysis in display.list_analyses():
                folder = paths.analysis_folder(paper, analysis)
                yield from (
                    f"{folder}/{file}" for file in ("analysis.json", "record.json", "scores.csv")
                )


def find_number_faults(
    catalogue: Catalogue, config: Config, results: Path
) -> tuple[list[str], list[str]]:
    """Recompute the results from the scores; return what was recomputed, and where it differs from the crate."""
    said, faults, judged = [], [], {}
    for paper in config.papers:
        runs = list_requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))
        try:
            counts, found = find_display_faults(catalogue, paper, config.scale, runs, results)
            judged[paper] = judge_paper(catalogue, paper, config.scale, runs, results)
        except (
            UserError
        ) as error:  # for example, a score file differs from the checksum in its manifest
            faults.append(str(error))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Files of a crate may have any content, even if they agree with their checksums.
            faults.append(f"{paper}: its results cannot be read ({error!r})")
        else:
            faults += found
            shown = f"{counts['cells']} cells of tables, {counts['figures']} figures"
            said.append(f"{shown} and {len(judged[paper])} verdicts of {paper}")
    if len(judged) == len(config.papers):
        for name, text in zip(
            ("claims.csv", "claim_sides.csv"), format_claims(judged), strict=True
        ):
            faults += find_text_faults(results / name, text)
    return said, faults


def find_display_faults(
    catalogue: Catalogue, paper: str, scale: str, runs: dict[Run, list[str]], results: Path
) -> tuple[Counter[str], list[str]]:
    """Remake tables and figures; return the numbers of cells and figures, and where a file differs."""
    counts, faults = Counter(), []
    for name, display in catalogue.papers[paper].select_shown_displays(runs).items():
        shown = select_display_runs(display, runs)
        if isinstance(display, FigureDisplay):
            counts["figures"] += 1
            drawn = draw_figure(catalogue, paper, name, scale, shown, results)
            faults += find_text_faults(
                results / paths.display_file("figure", paper, name), drawn.csv
            )
            continue
        file = results / paths.display_file("table", paper, name)
        stored = read_json(file.with_suffix(".json")).get("tests", {}).items()
        tests = {
            cell: ExampleTest(**test | {"over_seeds": Effect(**test["over_seeds"])})
            for cell, test in stored
        }
        table = make_table(catalogue, paper, name, scale, shown, results, tests)
        counts["cells"] += len(table.rows)
        for ending, text in table.files.items():
            faults += find_text_faults(file.with_suffix(f".{ending}"), text)
    return counts, faults


def find_text_faults(file: Path, again: str) -> list[str]:
    """Return the first line of a file that differs from the recomputed text, if any, from shortly before the change."""
    printed = file.read_bytes().decode(errors="replace")
    if printed == again:
        return []
    pairs = enumerate(zip_longest(printed.split("\n"), again.split("\n"), fillvalue="missing"), 1)
    number, lines = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
    change = next(place for place, (one, other) in enumerate(zip_longest(*lines)) if one != other)
    start = max(0, change - 60)
    line, now = (
        f"{'…' * (start > 0)}{text[start : start + 100]}{'…' * (len(text) > start + 100)}"
        for text in lines
    )
    return [f"{file.name}:{number}: is {line}, by the scores {now}"]
