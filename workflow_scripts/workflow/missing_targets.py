"""What to write in place of a target that no rule makes."""

import re
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DOWNLOADS, RESULTS, DownloadedFile, ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.catalogue import Catalogue, check_run
from workflow_scripts.config.displays import suggest_full_name
from workflow_scripts.config.loading import load_catalogue

NO_RULE = re.compile(r"^No rule to produce (.+) \(if you use", re.MULTILINE)
GENERAL_ADVICE = "catalogue/ and papers/ list what exists; settings go after --config"
SCALE = "SCALE"  # in advice, where the call's scale is not known


def find_missing_target(text: str) -> str | None:
    """Return the target that Snakemake says it has no rule for; None if it says no such thing."""
    missing_rule = NO_RULE.search(text)
    return missing_rule[1] if missing_rule else None


def describe_missing_target(target: str) -> str:
    """Say that no rule makes a target, and what was probably meant."""
    return f"no rule makes {target}; {_find_advice(target)}"


def _find_advice(target: str) -> str:
    """Return what to do, by the form of the target: a run, a paper, a claim, or a file."""
    try:
        catalogue = load_catalogue()
    except UserError:  # another workflow, without a catalogue
        return GENERAL_ADVICE
    parts = target.strip("/").split("/")
    advice = None
    try:
        if parts[0] == RESULTS.path.name:
            advice = _suggest_file(catalogue, parts)
        elif len(parts) == 4:
            advice = _suggest_run(catalogue, Run.parse(target), SCALE)
        elif len(parts) == 2:
            advice = _suggest_part_of_paper(catalogue, *parts)
        elif target in catalogue.papers:
            advice = f"a paper is --papers {target}"
        elif len(parts) == 1:
            advice = suggest_full_name(catalogue, target)
    except UserError as error:
        return str(error)
    return advice or GENERAL_ADVICE


def _suggest_run(catalogue: Catalogue, run: Run, scale: str) -> str:
    """Return the file that scores a run. Raises UserError with the nearest name for no run."""
    check_run(catalogue, run)
    scores = RESULTS.scale(scale).run(run).evaluation.scores
    return f"the scores of a run, which train it first, are {scores}"


def _suggest_part_of_paper(catalogue: Catalogue, paper: str, name: str) -> str | None:
    """Return the words for `<paper>/<claim, table or figure>`; None for another paper."""
    content = catalogue.papers.get(paper)
    if content is None:
        return None
    if name in content.claims_by_name:
        return f"a claim is --claim {paper}/{name}"
    if name in content.displays:
        file = _find_display_file(catalogue, RESULTS.scale(SCALE), paper, name)
        return f"a {content.displays[name].kind} is {file}"
    return suggest_name(name, [*content.displays, *content.claims_by_name])


def _find_display_file(catalogue: Catalogue, scale: ScaleFolder, paper: str, name: str) -> Path:
    """Return a file of a table or figure that asks for it."""
    if catalogue.papers[paper].displays[name].kind == "table":
        return scale.table(paper, name).csv
    return scale.figure(paper, name).svg


def _suggest_file(catalogue: Catalogue, parts: list[str]) -> str | None:
    """Return the nearest file below results/: `results/<scale>/<kind>/<names>`; None if unknown."""
    if len(parts) < 3:
        return None
    file = Path(*parts)
    if file.is_relative_to(DOWNLOADS.path):
        manifest = DownloadedFile(file).manifest
        return f"the file is there, and {manifest} checks it" if file.is_file() else None
    _, scale, kind, *names = parts
    if scale not in catalogue.scales:
        return f"no scale '{scale}'; {suggest_name(scale, catalogue.scales)}"
    if kind == "runs" and len(names) >= 4:
        return _suggest_run(catalogue, Run.parse("/".join(names[:4])), scale)
    if kind in ("tables", "figures") and len(names) == 2:
        paper, name = names
        if paper not in catalogue.papers:
            return suggest_name(paper, catalogue.papers)
        return _suggest_display(catalogue, RESULTS.scale(scale), paper, kind, Path(name).stem)
    return None


def _suggest_display(
    catalogue: Catalogue, scale: ScaleFolder, paper: str, folder: str, name: str
) -> str:
    """Return the nearest table or figure of a paper. folder: `tables` or `figures`."""
    displays = catalogue.papers[paper].displays
    if name in displays:
        file = _find_display_file(catalogue, scale, paper, name)
        return f"{name} of {paper} is a {displays[name].kind}: {file}"
    kind = folder.removesuffix("s")
    known = [key for key, display in displays.items() if display.kind == kind]
    return f"{paper} has no {kind} '{name}'; {suggest_name(name, known)}"
