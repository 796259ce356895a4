"""Read config.yaml, catalogue/ and papers/, and check that they are consistent."""

import os
from dataclasses import replace
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
from workflow_scripts.config.display_files import AnalysisEntry, ClaimEntry, ClaimFile, DisplayFile, Figure, Table
from workflow_scripts.config.display_schema import Analysis, Claim, FigureDisplay, TableDisplay
from workflow_scripts.config.entries import read_methods, read_tasks
from workflow_scripts.config.schema import Config, Experiments, Metrics, Scale


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
        config = parse_as(Config, {key: value for key, value in content.items() if key != "pathvars"}, file)
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
    paper = Paper(Experiments.model_validate({"title": "", "citation": ""}), {}, {}, [])
    with problems.collect():
        paper = replace(paper, experiments=parse_as(Experiments, read_yaml_mapping(file), file))
    before = len(problems.lines)
    with problems.collect():
        _read_displays(folder / "displays.yaml", units, paper, problems)
    shown = len(problems.lines) == before  # cells of a broken display are not reported wherever they are used
    with problems.collect():
        before = len(problems.lines)
        lines = _read_claims(folder / "claims.yaml", paper, problems)
        claimed = len(problems.lines) == before
        plans = _read_plans(folder, problems)
        paper = replace(paper, plans=plans)
        problems.add(*(agreement.check_plans(folder, paper) if claimed else ()))
        if shown:
            problems.add(*agreement.check_claims(paper, lines), *agreement.check_controls(folder, paper))
    if shown:
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


def _read_displays(file: Path, units: Units | None, paper: Paper, problems: Problems) -> None:
    """Read the displays and the analyses of a paper, with their axes expanded."""
    content = read_yaml_mapping(file)
    parse_as(DisplayFile, content, file)
    axes = read_axes(content.get("axes", {}))
    for name, entry in content.get("analyses", {}).items():
        where = ("analyses", name)
        with problems.collect():
            parse_as(AnalysisEntry, entry, file, where)
            entry = merge_extended(content["analyses"], name, locate(file, (*where, "extends")))
            paper.analyses[name] = expand_runs(axes, entry, f"{locate(file, where)}: {'.'.join(where)}")
            parse_as(Analysis, paper.analyses[name], file, where, at=where)
    for name, entry in content["displays"].items():
        where = ("displays", name)
        with problems.collect():
            entry = merge_extended(content["displays"], name, locate(file, (*where, "extends")))
            written, model = (Figure, FigureDisplay) if "module" in entry else (Table, TableDisplay)
            parse_as(written, content["displays"][name], file, where)
            paper.displays[name] = expand_display(axes, units, entry, f"{locate(file, where)}: {'.'.join(where)}")
            parse_as(model, paper.displays[name], file, where, at=where)


def _read_claims(file: Path, paper: Paper, problems: Problems) -> list[str]:
    """Read the claims of a paper, with their axes expanded. Returns file and line of each."""
    content = read_yaml_mapping(file)
    parse_as(ClaimFile, content, file)
    axes, find_cell, lines = read_axes(content.get("axes", {})), make_cell_index(paper.displays), []
    for number, entry in enumerate(content["claims"]):
        place = ("claims", number)
        where = locate(file, place)
        with problems.collect():
            parse_as(ClaimEntry, entry, file, place)
            text = f"{where}: claim '{entry['claim']}'"
            for claim in expand_claims(axes, content.get("quotes", {}), entry, find_cell, text):
                parse_as(Claim, claim, file, str(claim["claim"]), at=place)
                paper.claims.append(claim)
                lines.append(where)
    return lines
