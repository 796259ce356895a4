"""Read config.yaml, catalogue/ and papers/, and check that they are consistent."""

import os
from functools import lru_cache
from pathlib import Path

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.validation import describe_unknown, locate, parse_as
from workflow_scripts.common.yaml_files import read_yaml, read_yaml_mapping
from workflow_scripts.config import agreement
from workflow_scripts.config.analysis_plan import FIRST_PLAN, LATER_PLANS, AnalysisPlan, FirstPlan, LaterPlan
from workflow_scripts.config.axes import (
    Units,
    expand_claims,
    expand_display,
    expand_runs,
    make_cell_index,
    merge_extended,
    read_axes,
)
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.display_files import (
    AnalysisEntry,
    ClaimEntry,
    ClaimFile,
    DisplayFile,
    FigureEntry,
    TableEntry,
)
from workflow_scripts.config.display_schema import Analysis, Claim, Display, FigureDisplay, TableDisplay
from workflow_scripts.config.entries import read_methods, read_tasks
from workflow_scripts.config.schema import Config, Experiments, Metrics, Scale, parse_config


def load_config(content: dict | None = None, root: str | Path = ".") -> Config:
    """Validate the configuration: config.yaml in `root`, or `content`, into which Snakemake has merged --config."""
    # A value of --config has no line.
    file: str | Path = "config.yaml" if content else Path(root) / "config.yaml"
    content = read_yaml_mapping(Path(root) / "config.yaml") if content is None else content
    problems, scale, named = Problems(), content.get("scale"), content.get("papers")
    scales = read_yaml_mapping(Path(root) / "catalogue/scales.yaml")
    papers = [path.parent.name for path in Path(root).glob("papers/*/experiments.yaml")]
    if isinstance(scale, str) and scale not in scales:
        problems.add(describe_unknown(file, ("scale",), scale, scales))
    for paper in named if isinstance(named, list) else ():
        if isinstance(paper, str) and paper not in papers:
            problems.add(describe_unknown(file, ("papers",), paper, papers))
    with problems.collect():
        config = parse_config(content, file)
    problems.check_empty()
    return config


def load_catalogue(root: str | Path = ".") -> Catalogue:
    """Read and cross-check catalogue/ and papers/. Raises UserError with every problem, each with file and line."""
    catalogue = read_catalogue(str(root), os.getcwd())
    catalogue.problems.check_empty()
    return catalogue


@lru_cache(maxsize=8)
def read_catalogue(folder: str, _current_folder: str) -> Catalogue:
    """Read what is right of catalogue/ and papers/, once for all calls from one current folder."""
    root, problems = Path(folder), Problems()
    tasks, methods = read_tasks(root, problems), read_methods(root, problems)
    scales, units = {}, None
    file = root / "catalogue/scales.yaml"
    with problems.collect():
        scales = {name: parse_as(Scale, entry, file, name) for name, entry in read_yaml_mapping(file).items()}
    with problems.collect():
        units = _read_units(root / "catalogue/metrics.yaml")
    known = not problems.lines  # names of a broken entry are not reported wherever they are used
    catalogue = Catalogue(root, tasks, methods, scales, problems=problems)
    for file in sorted(root.glob("papers/*/experiments.yaml")):
        catalogue.papers[file.parent.name] = _read_paper(file.parent, units, problems)
    problems.add(*agreement.check_characters(catalogue))
    if known:
        problems.add(*agreement.check_conditions(catalogue), *agreement.check_names(catalogue))
    return catalogue


def _read_units(file: Path) -> Units:
    """Return metric -> (unit, decimals)."""
    content = read_yaml(file)
    if not isinstance(content, list):
        raise UserError(f"{file}: must be a list of units with their metrics")
    entries = [parse_as(Metrics, entry, file, (number,)) for number, entry in enumerate(content)]
    return {metric: (entry.unit, entry.decimals) for entry in entries for metric in entry.metrics}


def _read_paper(folder: Path, units: Units | None, problems: Problems) -> Paper:
    """Read the files of a paper, each as far as possible, and check that they agree with each other."""
    file = folder / "experiments.yaml"
    experiments = Experiments.model_validate({"title": "", "citation": ""})
    with problems.collect():
        experiments = parse_as(Experiments, read_yaml_mapping(file), file)
    known_problems = len(problems.lines)
    displays, analyses = _read_displays(folder / "displays.yaml", units, problems)
    displays_are_right = len(problems.lines) == known_problems
    known_problems = len(problems.lines)
    claims, lines = _read_claims(folder / "claims.yaml", displays, problems)
    claims_are_right = len(problems.lines) == known_problems
    plans = _read_plans(folder, problems)
    paper = Paper(experiments, displays, analyses, claims, plans)
    if claims_are_right:
        problems.add(*agreement.check_plans(folder, paper))
    if displays_are_right:  # cells of a broken display are not reported wherever they are used
        problems.add(*agreement.check_claims(paper, lines), *agreement.check_controls(folder, paper))
        with problems.collect():
            problems.add(*agreement.check_published(folder, paper))
    return paper


def _read_plans(folder: Path, problems: Problems) -> dict[str, AnalysisPlan]:
    """Read the analysis plans of a paper, the oldest first."""
    plans: dict[str, AnalysisPlan] = {}
    first = folder / FIRST_PLAN
    for file in [first] * first.exists() + sorted(folder.glob(f"{LATER_PLANS}/*.yaml")):
        kind = FirstPlan if file == first else LaterPlan
        with problems.collect():
            plans[file.relative_to(folder).as_posix()] = parse_as(kind, read_yaml_mapping(file), file)
    return plans


def _read_displays(
    file: Path, units: Units | None, problems: Problems
) -> tuple[dict[str, Display], dict[str, Analysis]]:
    """Read the displays and the analyses of a paper, and write out their axes."""
    displays: dict[str, Display] = {}
    analyses: dict[str, Analysis] = {}
    with problems.collect():
        content = read_yaml_mapping(file)
        parse_as(DisplayFile, content, file)
        axes = read_axes(content.get("axes", {}))
        for name, written in content.get("analyses", {}).items():
            keys = ("analyses", name)
            where = f"{locate(file, keys)}: {'.'.join(keys)}"
            with problems.collect():
                parse_as(AnalysisEntry, written, file, keys)
                entry = merge_extended(content["analyses"], name, locate(file, (*keys, "extends")))
                analyses[name] = parse_as(Analysis, expand_runs(axes, entry, where), file, keys, at=keys)
        for name, written in content["displays"].items():
            keys = ("displays", name)
            where = f"{locate(file, keys)}: {'.'.join(keys)}"
            with problems.collect():
                entry = merge_extended(content["displays"], name, locate(file, (*keys, "extends")))
                is_figure = "module" in entry
                parse_as(FigureEntry if is_figure else TableEntry, written, file, keys)
                display = expand_display(axes, units, entry, where)
                displays[name] = parse_as(FigureDisplay if is_figure else TableDisplay, display, file, keys, at=keys)
    return displays, analyses


def _read_claims(file: Path, displays: dict[str, Display], problems: Problems) -> tuple[list[Claim], list[str]]:
    """Read the claims of a paper, and write out their axes. Returns also file and line of each."""
    claims: list[Claim] = []
    lines: list[str] = []
    with problems.collect():
        content = read_yaml_mapping(file)
        parse_as(ClaimFile, content, file)
        axes = read_axes(content.get("axes", {}))
        quotes = content.get("quotes", {})
        find_cell = make_cell_index(displays)
        for number, entry in enumerate(content["claims"]):
            keys = ("claims", number)
            line = locate(file, keys)
            with problems.collect():
                parse_as(ClaimEntry, entry, file, keys)
                for claim in expand_claims(axes, quotes, entry, find_cell, f"{line}: claim '{entry['claim']}'"):
                    claims.append(parse_as(Claim, claim, file, str(claim["claim"]), at=keys))
                    lines.append(line)
    return claims, lines
