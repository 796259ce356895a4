"""Find faults of a crate: files against their checksums, numbers against its scores."""

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, list_files, read_json
from workflow_scripts.common.result_folders import (
    RESULTS,
    AnalysisFolder,
    CrateFolder,
    EvaluationFolder,
    InterventionFolder,
    ScaleFolder,
)
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import Display, FigureDisplay
from workflow_scripts.config.displays import select_display_runs, select_intervened_runs
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.evaluation.statistics import Effect
from workflow_scripts.provenance.recorded_digests import find_damaged_parts
from workflow_scripts.reporting.claims.judging import format_claims, judge_paper
from workflow_scripts.reporting.claims.outcome import Outcome
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.figures.figure import draw_figure
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.table import make_table

# Files of the workflow. Missing files of the catalogue and the papers are found when they are read.
EXPECTED = ("README.md", "Snakefile", "config.yaml", "envs/requirements.lock")


def verify_crate(folder: Path, crate: Path) -> tuple[list[str], list[str]]:
    """Verify `crate`, unpacked in a folder; return what was verified, and the faults.

    The numbers are recomputed only if all files are as listed. Only if they agree, files are
    compared with the sha256 that manifests and records of the crate have.
    """
    listed = read_checksums(folder, crate)
    faults = find_file_faults(folder, listed)
    verified = [f"{len(listed)} files"]
    try:
        content = read_crate_config(folder)
        catalogue = load_catalogue(folder)
        config = load_config(content, folder)
        results = CrateFolder(folder).results.scale(config.scale)
        require_complete(config, results.config.relative_to(folder))
        expected: set[str] = set(EXPECTED)
        for file in list_expected_results(catalogue, config, results):
            expected.add(file.relative_to(folder).as_posix())
        for name in sorted(expected - listed.keys()):
            if not (folder / name).exists():
                faults.append(f"{name}: neither present nor listed")
        if not faults:
            recomputed, faults = find_number_faults(catalogue, config, results)
            verified += recomputed
        if not faults:
            faults = find_digest_faults(folder, listed)
    except UserError as error:  # the configuration is missing or broken
        faults.append(str(error))
    return verified, faults


def read_crate_config(folder: Path) -> dict[str, Any]:
    """Read config.json of the one scale in a crate. Raises UserError unless there is one."""
    files = [results.config for results in CrateFolder(folder).results.list_complete_scales()]
    if len(files) != 1:
        rule = "a crate contains one complete scale"
        file = RESULTS.scale("<scale>").config
        raise UserError(f"{file}: found {len(files)}; {rule}")
    content = read_json(files[0])
    if not isinstance(content, dict):
        raise UserError(f"{files[0].relative_to(folder)}: not a configuration")
    return content


def require_complete(config: Config, file: Path) -> None:
    """Raise UserError for a configuration of a part of what its papers request.

    `only: paper` is none: it is complete without what is ours.
    """
    rule = "a crate has everything that its configuration requests"
    if config.finished_only:
        advice = "complete the results with ./reproduce"
        raise UserError(f"{file}: finished_only is set, so runs may be missing; {rule}: {advice}")
    if config.claims:
        raise UserError(f"{file}: claims is set, so only single claims are there; {rule}")


def read_checksums(folder: Path, crate: Path) -> dict[str, str]:
    """Read the sha256 of each file from the crate's metadata."""
    checksums = {}
    metadata = CrateFolder(folder).metadata
    try:
        for entity in read_json(metadata)["@graph"]:
            if "sha256" in entity:
                checksums[unquote(str(entity["@id"]))] = entity["sha256"]
    except (UserError, OSError, KeyError, TypeError) as error:
        advice = "write a crate with `python -m workflow_scripts crate`"
        raise UserError(f"{crate}: no readable {metadata.name} in it; {advice}") from error
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
    metadata = CrateFolder(folder).metadata
    present = {file.relative_to(folder).as_posix() for file in files if file != metadata}
    faults = [f"{name}: missing" for name in sorted(listed.keys() - present)]
    faults += [f"{name}: not listed in {metadata.name}" for name in sorted(present - listed.keys())]
    for name in sorted(listed.keys() & present):
        actual = hash_file(folder / name)
        if actual != listed[name]:
            faults.append(f"{name}: sha256 is {actual}, not {listed[name]}")
    return faults


def find_digest_faults(folder: Path, listed: Collection[str]) -> list[str]:
    """List files of the results that differ from a manifest or a record in the crate.

    Whoever changes a file can list its new sha256; these have that of the job.
    """
    files = {folder / name for name in listed}
    faults: dict[str, None] = {}
    for file in sorted(files):
        if file.suffix == ".json" and file.is_relative_to(CrateFolder(folder).results.path):
            faults |= dict.fromkeys(find_damaged_parts(file, files))
    return [fault.removeprefix(f"{folder}/") for fault in faults]


def list_expected_results(
    catalogue: Catalogue, config: Config, results: ScaleFolder
) -> Iterator[Path]:
    """Yield the files of the scale's folder that the configuration requires.

    They are those of its claims, of all requested runs, and of the displays of each paper that have
    something to show. A file that several runs need is yielded for each of them.
    """
    yield from (results.config, results.claims.table, results.claims.sides, results.claims.record)
    for run in list_requested_runs(catalogue, config):
        yield from _list_run_files(run, results)
    for paper in config.papers:
        runs = _list_paper_runs(catalogue, config, paper)
        for run in select_intervened_runs(catalogue, paper, runs):
            yield from _list_intervention_files(run, results)
        for name, display in catalogue.papers[paper].select_shown_displays(runs).items():
            yield from _list_display_files(paper, name, display, results)


def _list_run_files(run: Run, results: ScaleFolder) -> list[Path]:
    """List the files of a run's data, training and evaluation; `run.weights` need no training."""
    data = results.data(run.task)
    files = [data.manifest, data.record]
    folder = results.run(run)
    if not run.weights:
        files += [folder.manifest, folder.record, folder.curve]
    return [*files, *_list_score_files(folder.evaluation)]


def _list_intervention_files(run: Run, results: ScaleFolder) -> list[Path]:
    """List the files of the interventions on a run, and of the words that they put in."""
    candidates = results.candidates(run.task)
    interventions = results.run(run).interventions
    return [candidates.manifest, candidates.record, *_list_score_files(interventions)]


def _list_display_files(
    paper: str, name: str, display: Display, results: ScaleFolder
) -> list[Path]:
    """List the files of a table or figure, and of the analyses that it shows."""
    if isinstance(display, FigureDisplay):
        files = results.figure(paper, name).files
    else:
        files = results.table(paper, name).files
    for analysis in display.list_analyses():
        files += _list_score_files(results.analysis(paper, analysis))
    return files


def _list_score_files(
    folder: EvaluationFolder | InterventionFolder | AnalysisFolder,
) -> list[Path]:
    """List the scores in a folder with what says how they were made."""
    return [folder.manifest, folder.record, folder.scores]


def _list_paper_runs(catalogue: Catalogue, config: Config, paper: str) -> dict[Run, list[str]]:
    """Return the runs that one paper of the configuration asks for."""
    return list_requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))


def find_number_faults(
    catalogue: Catalogue, config: Config, results: ScaleFolder
) -> tuple[list[str], list[str]]:
    """Recompute the results from the scores.

    Return what was recomputed, and where it differs from the crate.
    """
    recomputed: list[str] = []
    faults: list[str] = []
    judged: dict[str, list[Outcome]] = {}
    for paper in config.papers:
        runs = _list_paper_runs(catalogue, config, paper)
        paper_results = PaperResults(catalogue, paper, config.scale, results)
        try:
            counts, display_faults = find_display_faults(paper_results, runs)
            judged[paper] = judge_paper(paper_results, runs)
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
        faults += find_text_faults(results.claims.table, claims)
        faults += find_text_faults(results.claims.sides, sides)
    return recomputed, faults


def find_display_faults(
    results: PaperResults, runs: dict[Run, list[str]]
) -> tuple[Counter[str], list[str]]:
    """Remake tables and figures.

    Return the numbers of cells and figures, and where a file differs.
    """
    counts: Counter[str] = Counter()
    faults: list[str] = []
    paper = results.catalogue.papers[results.paper]
    for name, display in paper.select_shown_displays(runs).items():
        shown_runs = select_display_runs(display, runs)
        if isinstance(display, FigureDisplay):
            counts["figures"] += 1
            figure = draw_figure(results, name, shown_runs)
            faults += find_text_faults(results.folder.figure(results.paper, name).csv, figure.csv)
            continue
        files = results.folder.table(results.paper, name)
        tests = read_tests(files.record)
        table = make_table(results, name, shown_runs, tests)
        counts["cells"] += len(table.rows)
        for ending, text in table.files.items():
            faults += find_text_faults(files.with_ending(ending), text)
    return counts, faults


def read_tests(record: Path) -> dict[str, ExampleTest]:
    """Read the tests over examples from a table's record, by cell."""
    tests = {}
    for cell, test in read_json(record).get("tests", {}).items():
        over_seeds = Effect(**test["over_seeds"])
        tests[cell] = ExampleTest(**test | {"over_seeds": over_seeds})
    return tests


def find_text_faults(file: Path, recomputed: str) -> list[str]:
    """Return a sentence about the first line of a file that differs from the recomputed text.

    Returns no sentence if they are equal. It has both lines from shortly before the change.
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
