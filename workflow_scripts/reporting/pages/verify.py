"""Find faults of a crate: files against their checksums, numbers against its scores."""

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, list_files, read_json
from workflow_scripts.common.run_names import Run
from workflow_scripts.config import paths
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import Display, FigureDisplay
from workflow_scripts.config.displays import select_display_runs, select_intervened_runs
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.evaluation.statistics import Effect
from workflow_scripts.reporting.claims.effects import Outcome
from workflow_scripts.reporting.claims.judging import format_claims, judge_paper
from workflow_scripts.reporting.figures.figure import draw_figure
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.table import make_table

METADATA = "ro-crate-metadata.json"
ENDINGS = {"table": ("csv", "md", "tex", "html", "json"), "figure": ("csv", "svg", "png", "json")}
# Files of the workflow. Missing files of the catalogue and the papers are found when they are read.
EXPECTED = ("README.md", "Snakefile", "config.yaml", "envs/requirements.lock")


def verify_crate(folder: Path, crate: Path) -> tuple[list[str], list[str]]:
    """Verify `crate`, unpacked in a folder; return what was verified, and the faults.

    The numbers are recomputed only if all files are as listed.
    """
    listed = read_checksums(folder, crate)
    faults = find_file_faults(folder, listed)
    verified = [f"{len(listed)} files"]
    try:
        content = read_crate_config(folder)
        catalogue = load_catalogue(folder)
        config = load_config(content, folder)
        expected = set(EXPECTED)
        for name in list_expected_results(catalogue, config):
            expected.add(f"results/{config.scale}/{name}")
        for name in sorted(expected - listed.keys()):
            if not (folder / name).exists():
                faults.append(f"{name}: neither present nor listed")
        if not faults:
            results = folder / "results" / config.scale
            recomputed, faults = find_number_faults(catalogue, config, results)
            verified += recomputed
    except UserError as error:  # the configuration is missing or broken
        faults.append(str(error))
    return verified, faults


def read_crate_config(folder: Path) -> dict[str, Any]:
    """Read config.json of the one scale in a crate. Raises UserError unless there is one."""
    files = sorted(folder.glob("results/*/config.json"))
    if len(files) != 1:
        rule = "a crate contains one complete scale"
        raise UserError(f"results/<scale>/config.json: found {len(files)}; {rule}")
    content = read_json(files[0])
    if not isinstance(content, dict):
        raise UserError(f"{files[0].relative_to(folder)}: not a configuration")
    return content


def read_checksums(folder: Path, crate: Path) -> dict[str, str]:
    """Read the sha256 of each file from the crate's metadata."""
    checksums = {}
    try:
        for entity in read_json(folder / METADATA)["@graph"]:
            if "sha256" in entity:
                checksums[unquote(str(entity["@id"]))] = entity["sha256"]
    except (UserError, OSError, KeyError, TypeError) as error:
        advice = "write a crate with `python -m workflow_scripts crate`"
        raise UserError(f"{crate}: no readable {METADATA} in it; {advice}") from error
    return checksums


def find_file_faults(folder: Path, listed: dict[str, str]) -> list[str]:
    """List files that are missing, differ from their checksum, or are not in the metadata.

    Those of the operating system are passed over: unpacking or looking at a crate adds them. Raises
    UserError for a link.
    """
    entries = list_files(folder, "**/*")
    files = [file for file in entries if file.is_symlink() or file.is_file()]
    links = [file for file in files if file.is_symlink()]
    if links:
        raise UserError(f"{links[0]} is a link; a crate contains files only")
    present = {file.relative_to(folder).as_posix() for file in files} - {METADATA}
    faults = [f"{name}: missing" for name in sorted(listed.keys() - present)]
    faults += [f"{name}: not listed in {METADATA}" for name in sorted(present - listed.keys())]
    for name in sorted(listed.keys() & present):
        actual = hash_file(folder / name)
        if actual != listed[name]:
            faults.append(f"{name}: sha256 is {actual}, not {listed[name]}")
    return faults


def list_expected_results(catalogue: Catalogue, config: Config) -> Iterator[str]:
    """Yield the files of the scale's folder that the configuration requires.

    They are those of its claims, of all requested runs, and of the displays of each paper that have
    something to show. A file that several runs need is yielded for each of them.
    """
    yield from ("config.json", "claims.csv", "claim_sides.csv", "claims.json")
    for run in list_requested_runs(catalogue, config):
        yield from _list_run_files(run)
    for paper in config.papers:
        runs = _list_paper_runs(catalogue, config, paper)
        for run in select_intervened_runs(catalogue, paper, runs):
            yield from _list_intervention_files(run)
        for name, display in catalogue.papers[paper].select_shown_displays(runs).items():
            yield from _list_display_files(paper, name, display)


def _list_run_files(run: Run) -> list[str]:
    """List the files of a run's data, training and evaluation; `run.weights` need no training."""
    files = _join_names(paths.data_folder(run.task), "dataset.json", "record.json")
    if not run.weights:
        files += _join_names(paths.run_folder(run), "run.json", "record.json", "training.csv")
    evaluation = paths.evaluation_folder(run)
    return files + _join_names(evaluation, "evaluation.json", "record.json", "scores.csv")


def _list_intervention_files(run: Run) -> list[str]:
    """List the files of the interventions on a run, and of the words that they put in."""
    candidates = paths.candidate_folder(run.task)
    intervention = paths.intervention_folder(run)
    return [
        *_join_names(candidates, "candidates.json", "record.json"),
        *_join_names(intervention, "intervention.json", "record.json", "scores.csv"),
    ]


def _list_display_files(paper: str, name: str, display: Display) -> list[str]:
    """List the files of a table or figure with all endings, and of the analyses that it shows."""
    kind = display.kind
    files = [paths.display_file(kind, paper, name, ending) for ending in ENDINGS[kind]]
    for analysis in display.list_analyses():
        folder = paths.analysis_folder(paper, analysis)
        files += _join_names(folder, "analysis.json", "record.json", "scores.csv")
    return files


def _join_names(folder: str | Path, *names: str) -> list[str]:
    """Return the paths of files in a folder."""
    return [f"{folder}/{name}" for name in names]


def _list_paper_runs(catalogue: Catalogue, config: Config, paper: str) -> dict[Run, list[str]]:
    """Return the runs that one paper of the configuration asks for."""
    return list_requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))


def find_number_faults(
    catalogue: Catalogue, config: Config, results: Path
) -> tuple[list[str], list[str]]:
    """Recompute the results from the scores.

    Return what was recomputed, and where it differs from the crate.
    """
    recomputed: list[str] = []
    faults: list[str] = []
    judged: dict[str, list[Outcome]] = {}
    for paper in config.papers:
        runs = _list_paper_runs(catalogue, config, paper)
        try:
            counts, display_faults = find_display_faults(
                catalogue, paper, config.scale, runs, results
            )
            judged[paper] = judge_paper(catalogue, paper, config.scale, runs, results)
        except UserError as error:
            # For example, a score file differs from the checksum in its manifest.
            faults.append(str(error))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Files of a crate may have any content, even if they agree with their checksums.
            faults.append(f"{paper}: its results cannot be read ({error!r})")
        else:
            faults += display_faults
            cells_and_figures = f"{counts['cells']} cells of tables, {counts['figures']} figures"
            n_verdicts = len(judged[paper])
            recomputed.append(f"{cells_and_figures} and {n_verdicts} verdicts of {paper}")
    if len(judged) == len(config.papers):
        claims, sides = format_claims(judged)
        faults += find_text_faults(results / "claims.csv", claims)
        faults += find_text_faults(results / "claim_sides.csv", sides)
    return recomputed, faults


def find_display_faults(
    catalogue: Catalogue, paper: str, scale: str, runs: dict[Run, list[str]], results: Path
) -> tuple[Counter[str], list[str]]:
    """Remake tables and figures.

    Return the numbers of cells and figures, and where a file differs.
    """
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for name, display in catalogue.papers[paper].select_shown_displays(runs).items():
        shown_runs = select_display_runs(display, runs)
        if isinstance(display, FigureDisplay):
            counts["figures"] += 1
            figure = draw_figure(catalogue, paper, name, scale, shown_runs, results)
            file = results / paths.display_file("figure", paper, name)
            faults += find_text_faults(file, figure.csv)
            continue
        file = results / paths.display_file("table", paper, name)
        tests = read_tests(file.with_suffix(".json"))
        table = make_table(catalogue, paper, name, scale, shown_runs, results, tests)
        counts["cells"] += len(table.rows)
        for ending, text in table.files.items():
            faults += find_text_faults(file.with_suffix(f".{ending}"), text)
    return counts, faults


def read_tests(record: Path) -> dict[str, ExampleTest]:
    """Read the tests over examples from a table's record, by cell."""
    tests = {}
    for cell, test in read_json(record).get("tests", {}).items():
        over_seeds = Effect(**test["over_seeds"])
        tests[cell] = ExampleTest(**test | {"over_seeds": over_seeds})
    return tests


def find_text_faults(file: Path, recomputed: str) -> list[str]:
    """Return the first line of a file that differs from the recomputed text, if any.

    Both are shown from shortly before the change.
    """
    text = file.read_bytes().decode(errors="replace")
    if text == recomputed:
        return []
    pairs = zip_longest(text.split("\n"), recomputed.split("\n"), fillvalue="missing")
    for number, (line, new_line) in enumerate(pairs, start=1):
        if line != new_line:
            start = max(0, _find_change(line, new_line) - 60)
            is_now = _shorten_line(line, start)
            expected = _shorten_line(new_line, start)
            return [f"{file.name}:{number}: is {is_now}, by the scores {expected}"]
    return []


def _find_change(line: str, other: str) -> int:
    """Return the first place at which two different lines differ."""
    for place, (letter, other_letter) in enumerate(zip_longest(line, other)):
        if letter != other_letter:
            return place
    raise ValueError("the lines are equal")


def _shorten_line(line: str, start: int) -> str:
    """Return 100 characters of a line, with … for what is left out."""
    end = start + 100
    text = line[start:end]
    if start > 0:
        text = f"…{text}"
    if len(line) > end:
        text += "…"
    return text
