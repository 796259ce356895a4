"""Read config.yaml, catalogue/ and papers/, and check that they are consistent."""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.common.yaml_files import read_yaml, read_yaml_mapping
from workflow_scripts.config.analysis_plan import AnalysisPlan, PrimaryClaim
from workflow_scripts.config.axes import expand_claims, expand_display, expand_runs, read_axes
from workflow_scripts.config.display_schema import (
    SIDES,
    Analysis,
    Claim,
    FigureDisplay,
    TableDisplay,
    list_cells,
    list_display_analyses,
    match_stars,
)
from workflow_scripts.config.entries import Block, Method, Task, read_methods, read_tasks
from workflow_scripts.config.packages import list_packages
from workflow_scripts.config.schema import Claims, Condition, Config, Displays, Experiments, Metrics, Scale, list_names
from workflow_scripts.evaluation.published import read_published

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Paper:
    """The content of a folder of papers/."""

    experiments: Experiments
    displays: dict[str, dict]
    analyses: dict[str, dict]
    claims: list[dict]
    plan: AnalysisPlan | None = None


@dataclass(frozen=True)
class Catalogue:
    """The content of catalogue/ and papers/."""

    root: Path
    tasks: dict[str, Task]
    methods: dict[str, Method]
    scales: dict[str, Scale]
    papers: dict[str, Paper] = field(default_factory=dict)


def load_config(content: dict | None = None, root: str | Path = ".") -> Config:
    """Validate the configuration: config.yaml in `root`, or `content`, into which Snakemake has merged --config."""
    content = read_yaml_mapping(Path(root) / "config.yaml") if content is None else content
    content = {key: value for key, value in content.items() if key != "pathvars"}
    config = parse_as(Config, content, "config.yaml")
    scales = _entries(Scale, Path(root) / "catalogue/scales.yaml")
    if config.scale not in scales:
        raise UserError(f"config.yaml: key 'scale' is '{config.scale}'; {suggest_name(config.scale, scales)}")
    folders = [path.parent.name for path in Path(root).glob("papers/*/experiments.yaml")]
    for paper in config.papers:
        if paper not in folders:
            raise UserError(f"config.yaml: key 'papers' names '{paper}'; {suggest_name(paper, folders)}")
    return config


def _entries(model: type, file: Path) -> dict:
    return {name: parse_as(model, entry, file, name) for name, entry in read_yaml_mapping(file).items()}


def load_catalogue(root: str | Path = ".") -> Catalogue:
    """Read and cross-check catalogue/ and papers/. Raises UserError naming file and key."""
    return read_catalogue(str(root))


@lru_cache(maxsize=8)
def read_catalogue(folder: str) -> Catalogue:
    """Read a folder once for all calls of `load_catalogue`."""
    root = Path(folder)
    catalogue = Catalogue(root, read_tasks(root), read_methods(root), _entries(Scale, root / "catalogue/scales.yaml"))
    units = _units(root / "catalogue/metrics.yaml")
    for file in sorted(root.glob("papers/*/experiments.yaml")):
        displays, analyses = _displays(file.with_name("displays.yaml"), units)
        catalogue.papers[file.parent.name] = Paper(
            parse_as(Experiments, read_yaml_mapping(file), file),
            displays,
            analyses,
            _claims(file.with_name("claims.yaml"), displays),
            _plan(file.with_name("analysis_plan.yaml")),
        )
    _check_characters(catalogue)
    _check_names(catalogue)
    for paper, entry in catalogue.papers.items():
        _check_cells(root / "papers" / paper, entry)
    return catalogue


def find_scale(catalogue: Catalogue, name: str) -> Scale:
    """Return the scale called `name`. Raises UserError with the nearest known name."""
    if name not in catalogue.scales:
        raise UserError(f"no scale '{name}' in catalogue/scales.yaml; {suggest_name(name, catalogue.scales)}")
    return catalogue.scales[name]


def _check_characters(catalogue: Catalogue) -> None:
    """Raise UserError for a name that could leave results/ as a path, or be more than a word for a shell."""
    names = {"catalogue/scales.yaml": [*catalogue.scales], "catalogue/tasks": [*catalogue.tasks]}
    names["catalogue/methods"] = [*catalogue.methods]
    names["catalogue/methods"] += [name for method in catalogue.methods.values() for name in method.variants]
    names["papers"] = [*catalogue.papers]
    for paper, entry in catalogue.papers.items():
        names[f"papers/{paper}/displays.yaml"] = [*entry.displays, *entry.analyses]
    for file, found in names.items():
        for name in found:
            if not NAME.fullmatch(name):
                raise UserError(
                    f"{catalogue.root / file}: the name {name[:100]!r} needs at most 100 letters a-z, A-Z, digits, "
                    "'.', '_' and '-', and start with a letter or digit"
                )


def _units(file: Path) -> dict[str, tuple[str, int]]:
    """Return metric -> (unit, decimals)."""
    content = read_yaml(file)
    entries = [parse_as(Metrics, entry, file) for entry in content] if isinstance(content, list) else []
    return {metric: (entry.unit, entry.decimals) for entry in entries for metric in entry.metrics}


def _claims(file: Path, displays: dict[str, dict]) -> list[dict]:
    content = parse_as(Claims, read_yaml_mapping(file), file)
    claims = expand_claims(read_axes(content.axes), content.quotes, content.claims, displays, str(file))
    for claim in claims:
        parse_as(Claim, claim, file, str(claim.get("claim", "")))
    return claims


def _plan(file: Path) -> AnalysisPlan | None:
    return parse_as(AnalysisPlan, read_yaml_mapping(file), file) if file.exists() else None


def _displays(file: Path, units: dict[str, tuple[str, int]]) -> tuple[dict[str, dict], dict[str, dict]]:
    """Read the displays and the analyses of a paper, with their axes written out."""
    content = parse_as(Displays, read_yaml_mapping(file), file)
    axes = read_axes(content.axes)
    analyses = {name: expand_runs(axes, entry, f"{file}: analyses.{name}") for name, entry in content.analyses.items()}
    for name, analysis in analyses.items():
        parse_as(Analysis, analysis, file, f"analyses.{name}")
    displays = {}
    for name, entry in content.displays.items():
        displays[name] = expand_display(axes, units, entry, f"{file}: displays.{name}")
        parse_as(FigureDisplay if "module" in entry else TableDisplay, displays[name], file, f"displays.{name}")
    return displays, analyses


def _check_cells(folder: Path, paper: Paper) -> None:
    """Check that published numbers and claims name existing cells.

    A misspelt name would otherwise be found after all trainings, or never.
    """
    cells, tables = set(), set()
    for name, display in paper.displays.items():
        if display["kind"] != "table":
            continue
        tables.add(name)
        for row in display["rows"]:
            for column in display["columns"]:
                spec = column | row
                for key in ("metric", "unit"):
                    if key not in spec:
                        where = f"displays.{name}: row '{row['row']}' and column '{column['column']}'"
                        raise UserError(f"{folder / 'displays.yaml'}: {where} name no {key}; one of them must")
                cells.add(f"{name}/{row['row']}/{column['column']}/{spec['metric']}")
    file = folder / "published.csv"
    for display, *parts in read_published(file):
        if display not in paper.displays:
            raise UserError(f"{file}: no display '{display}' in displays.yaml; {suggest_name(display, paper.displays)}")
        if display in tables and (cell := "/".join((display, *parts))) not in cells:
            raise UserError(f"{file}: no cell '{cell}' in displays.yaml; {suggest_name(cell, cells)}")
    for claim in paper.claims:
        for side in SIDES:
            for cell in list_cells(claim.get(side)):
                if cell not in cells and not any(match_stars(cell, known) for known in cells):
                    where = f"{folder / 'claims.yaml'}: key '{claim['claim']}.{side}'"
                    raise UserError(f"{where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, cells)}")
    for entry in paper.plan.primary if paper.plan else ():
        control = entry.control
        for cell in [*list_cells(control.floor), *(requirement.cell for requirement in control.requires)]:
            if cell not in cells:
                where = f"{folder / 'analysis_plan.yaml'}: control of claim '{entry.claim}'"
                raise UserError(f"{where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, cells)}")


def _check_limits(claim: dict, primary: PrimaryClaim, file: Path) -> None:
    """Check that a claim and its entry in the analysis plan have the same margin and the same measure."""
    where, rates = f"{file}: claim '{primary.claim}'", claim.get("measure") == "success_rate"
    if rates != (primary.threshold is not None):
        raise UserError(f"{where}: threshold goes with measure success_rate in claims.yaml, and only with it")
    margin = claim.get("at_least", 0) * (-1 if claim["relation"] == "no_gain" else 1)
    if not rates and margin != primary.margin:
        raise UserError(
            f"{where}: margin is {primary.margin}, but {margin} by at_least in claims.yaml; make them equal"
        )


def _check_condition(catalogue: Catalogue, block: Block) -> None:
    """Check that each name of a rule's condition matches something."""
    for key, among in (("task", catalogue.tasks), ("kind", list_packages("tasks")), ("scale", catalogue.scales)):
        for name in list_names(getattr(block.content, key) or []):
            if not any(fnmatchcase(one, name) for one in among):
                raise UserError(f"{block.place / key}: no {key} '{name}'; {suggest_name(name, among)}")


def _check_names(catalogue: Catalogue) -> None:
    """Check that every name that a file uses is defined."""

    def known(name: str, among: Any, file: str, key: str) -> None:
        if name not in among:
            raise UserError(f"{catalogue.root / file}: key '{key}' names '{name}'; {suggest_name(name, among)}")

    def named(part: dict, file: str, key: str) -> None:
        tasks = part.get("task") or []
        for task in [tasks] if isinstance(tasks, str) else tasks:
            known(task, catalogue.tasks, file, f"{key}.task")
        if method := part.get("method"):
            known(method, catalogue.methods, file, f"{key}.method")
            variants = part.get("variant") or []
            for variant in [variants] if isinstance(variants, str) else dict(variants).values():
                known(variant, catalogue.methods[method].variants, file, f"{key}.variant")

    for name, scale in catalogue.scales.items():
        for method in scale.jobs.memory_of:
            known(method, catalogue.methods, "catalogue/scales.yaml", f"{name}.jobs.memory_of")
    for entry in (*catalogue.tasks.values(), *catalogue.methods.values()):
        for block in entry.blocks:
            if isinstance(block.content, Condition):
                _check_condition(catalogue, block)
    for paper, entry in catalogue.papers.items():
        file = f"papers/{paper}/displays.yaml"
        for name, display in entry.displays.items():
            for analysis in list_display_analyses(display):
                known(analysis, entry.analyses, file, f"displays.{name}")
            # An analysis may give its scores names of its own.
            cells = [] if list_display_analyses(display) else [*display.get("rows", ()), *display.get("columns", ())]
            for part in (*cells, *display.get("runs", ())):
                named(part, file, f"displays.{name}")
        for name, analysis in entry.analyses.items():
            for part in analysis.get("runs", ()):
                named(part, file, f"analyses.{name}")
            if "published" in analysis:
                known(analysis["published"], catalogue.papers, file, f"analyses.{name}")
        for claim in entry.claims:
            for side in SIDES:
                for cell in list_cells(claim.get(side)):
                    display = cell.split("/")[0]
                    known(display, entry.displays, f"papers/{paper}/claims.yaml", f"{claim['claim']}.{side}")
        if entry.plan:
            file, claims = f"papers/{paper}/analysis_plan.yaml", {claim["claim"]: claim for claim in entry.claims}
            known(entry.plan.scale, catalogue.scales, file, "scale")
            for number, primary in enumerate(entry.plan.primary):
                known(primary.claim, claims, file, f"primary.{number}.claim")
                _check_limits(claims[primary.claim], primary, catalogue.root / file)
                if primary.control.same_sign:
                    known(primary.control.same_sign, claims, file, f"primary.{number}.control.same_sign")
            for claim in entry.plan.secondary:
                known(claim, claims, file, "secondary")
        file = f"papers/{paper}/experiments.yaml"
        for part in ("demo", "experiments"):
            for number, experiment in enumerate(getattr(entry.experiments, part)):
                for task in list_names(experiment.task):
                    known(task, catalogue.tasks, file, f"{part}.{number}.task")
                for method, variants in experiment.methods.items():
                    known(method, catalogue.methods, file, f"{part}.{number}.methods")
                    for variant in variants:
                        known(variant, catalogue.methods[method].variants, file, f"{part}.{number}.methods.{method}")
                for scale in (*experiment.seeds, *list_names(experiment.at or [])):
                    known(scale, catalogue.scales, file, f"{part}.{number}")
        for scale in entry.experiments.seeds:
            known(scale, catalogue.scales, file, "seeds")
