"""Check that the files of catalogue/ and papers/ agree with each other. Each function yields one line per problem."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from workflow_scripts.common.validation import describe_unknown, locate, suggest_name
from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.config.catalogue import START, Catalogue, Paper
from workflow_scripts.config.display_schema import (
    SIDES,
    list_cell_variants,
    list_cells,
    list_claim_cells,
    list_display_analyses,
    list_table_cells,
    match_stars,
    name_cell,
)
from workflow_scripts.config.schema import Condition, list_names
from workflow_scripts.evaluation.published import read_published
from workflow_scripts.tasks.packages import list_packages

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def map_cells(paper: Paper) -> dict[str, dict]:
    """Return `<display>/<row>/<column>/<metric>` -> cell (column | row) of all tables."""
    displays = paper.displays.items()
    return {name_cell(name, cell): cell for name, display in displays for cell in list_table_cells(display)}


def check_published(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield displays without a metric, published numbers of unknown cells, and claims about cells without a number."""
    cells, displays = map_cells(paper), folder / "displays.yaml"
    seen = set()
    for key, cell in cells.items():
        name = key.split("/")[0]
        for lacking in {"metric", "unit"} - cell.keys():
            if (name, lacking) in seen:  # one cell of a display is enough
                continue
            seen.add((name, lacking))
            where = f"{locate(displays, ('displays', name))}: displays.{name}: row '{cell['row']}' and column"
            yield f"{where} '{cell['column']}' name no {lacking}; one of them must"
    published = read_published(folder / "published.csv")
    empty = {key for key, cell in cells.items() if not list_cell_variants(cell) and "analysis" not in cell}
    empty -= {"/".join(parts) for parts in published}
    for claim in paper.claims:
        for cell in empty.intersection(list_claim_cells(claim)):
            where = f"{locate(folder / 'claims.yaml', ('claims',))}: claim '{claim['claim']}'"
            yield f"{where}: {cell} has neither a run nor a number in published.csv; name another cell"
    for (display, *parts), found in published.items():
        where, cell = found.where, "/".join((display, *parts))
        if display not in paper.displays:
            yield f"{where}: no display '{display}' in displays.yaml; {suggest_name(display, paper.displays)}"
        elif "rows" in paper.displays[display] and cell not in cells:
            yield f"{where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, cells)}"


def check_claims(paper: Paper, lines: list[str]) -> Iterator[str]:
    """Yield what is wrong with the cells that claims and their plan compare.

    A misspelt name would otherwise be found after all trainings, or never.
    """
    cells, seen = map_cells(paper), set()
    for claim, line in zip(paper.claims, lines, strict=True):
        name = claim["claim"]
        if name in seen:
            yield f"{line}: claim '{name}' is listed twice; give one of them another name"
        seen.add(name)
        unlike: dict[str, dict[str, str]] = {"units": {}, "metrics": {}}
        for side in SIDES:
            for cell in list_cells(claim.get(side)):
                where, display = f"{line}: key '{name}.{side}'", cell.split("/")[0]
                matching = [cell] if cell in cells else [known for known in cells if match_stars(cell, known)]
                if display not in paper.displays:
                    yield f"{where} names '{display}'; {suggest_name(display, paper.displays)}"
                elif not matching:
                    yield f"{where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, cells)}"
                for one in matching if side != "published" else ():
                    unlike["units"].setdefault(cells[one].get("unit", ""), cell)
                    if "analysis" not in cells[one] and side != "floor":
                        unlike["metrics"].setdefault(cells[one].get("metric", ""), cell)
        printed = cells.get(claim.get("published", ""), {})
        if printed.get("unit", claim["unit"]) != claim["unit"]:
            units = f"{claim['unit']}, its printed effect in {printed['unit']}"
            yield f"{line}: claim '{name}' is in {units}; name another cell"
        if claim["left"] == claim["right"]:
            yield f"{line}: claim '{name}' compares {claim['left']} with itself; name two cells"
        for what, found in unlike.items():
            if len(found) > 1 and claim["relation"] != "falls_with":
                said = " and ".join(f"{cell} in {one}" for one, cell in found.items())
                yield f"{line}: claim '{name}' compares unlike {what}, {said}; name cells of one"


def check_plans(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield where the analysis plans and the claims do not agree on names, margins and measures."""
    claims = {claim["claim"]: claim for claim in paper.claims}
    planned: dict[str, str] = {}
    for name, plan in paper.plans.items():
        yield from _check_plan(folder / name, plan, claims)
        for claim in (*(entry.claim for entry in plan.primary), *plan.secondary):
            if claim in planned:
                yield f"{folder / name}: claim '{claim}' is also in {planned[claim]}; a claim is judged by one plan"
            planned[claim] = name


def _check_plan(file: Path, plan: AnalysisPlan, claims: dict[str, dict]) -> Iterator[str]:
    for number, entry in enumerate(plan.primary):
        keys: tuple = ("primary", number)
        for name, key in ((entry.claim, "claim"), (entry.control.same_sign, "control.same_sign")):
            if name and name not in claims:
                yield describe_unknown(file, (*keys, *key.split(".")), name, claims)
        if entry.claim not in claims:
            continue
        claim, where = claims[entry.claim], f"{locate(file, keys)}: claim '{entry.claim}'"
        measure = claim.get("measure", "difference")
        if (measure == "success_rate") != entry.counts_successes:
            yield f"{where}: threshold goes with measure success_rate in claims.yaml, and only with it"
        if entry.measure and entry.measure != measure:
            yield f"{where}: measure is {entry.measure}, but {measure} in claims.yaml; make them equal"
        margin = claim.get("at_least", 0) * (-1 if claim["relation"] == "no_gain" else 1)
        if measure != "success_rate" and margin != entry.margin:
            yield f"{where}: margin is {entry.margin}, but {margin} by at_least in claims.yaml; make them equal"
    for number, name in enumerate(plan.secondary):
        if name not in claims:
            yield describe_unknown(file, ("secondary", number), name, claims)


def check_controls(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield cells of analysis plans that do not exist."""
    cells = map_cells(paper)
    for name, plan in paper.plans.items():
        for number, entry in enumerate(plan.primary):
            for cell in (cell for cell in entry.control.cells if cell not in cells):
                where = f"{locate(folder / name, ('primary', number, 'control'))}: control of claim '{entry.claim}'"
                yield f"{where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, cells)}"


def check_characters(catalogue: Catalogue) -> Iterator[str]:
    """Yield names that could leave results/ as a path, or be more than a word for a shell."""
    names = {"catalogue/scales.yaml": [*catalogue.scales], "catalogue/tasks": [*catalogue.tasks]}
    names["catalogue/methods"] = [*catalogue.methods]
    names["catalogue/methods"] += [name for method in catalogue.methods.values() for name in method.variants]
    names["papers"] = [*catalogue.papers]
    for paper, entry in catalogue.papers.items():
        names[f"papers/{paper}/displays.yaml"] = [*entry.displays, *entry.analyses]
    for file, name in ((file, name) for file, found in names.items() for name in found if not NAME.fullmatch(name)):
        rule = "needs at most 100 letters a-z, A-Z, digits, '.', '_' and '-', and start with a letter or digit"
        yield f"{catalogue.root / file}: the name {name[:100]!r} {rule}"


def check_conditions(catalogue: Catalogue) -> Iterator[str]:
    """Yield names in the condition of a rule that match nothing."""
    known = {"task": catalogue.tasks, "kind": list_packages("tasks"), "scale": catalogue.scales}
    for entry in (*catalogue.tasks.values(), *catalogue.methods.values()):
        for block in (block for block in entry.blocks if isinstance(block.content, Condition)):
            for key, among in known.items():
                for name in list_names(getattr(block.content, key) or []):
                    if not any(fnmatchcase(one, name) for one in among):
                        yield f"{block.place / key}: no {key} '{name}'; {suggest_name(name, among)}"


def check_names(catalogue: Catalogue) -> Iterator[str]:
    """Yield names of tasks, methods, variants, scales, analyses and papers that are not defined."""
    root, tasks, methods = catalogue.root, catalogue.tasks, catalogue.methods

    def known(name: str, among: Any, file: str, *keys: str | int) -> Iterator[str]:
        if name not in among:
            yield describe_unknown(root / file, keys, name, among)

    def named(part: dict, file: str, *keys: str) -> Iterator[str]:
        for task in list_names(part.get("task") or []):
            yield from known(task, tasks, file, *keys, "task")
        if method := part.get("method"):
            yield from known(method, methods, file, *keys, "method")
            variants = part.get("variant") or []
            for variant in [variants] if isinstance(variants, str) else dict(variants).values():
                name, _, weights = variant.partition("@")
                if method in methods:
                    yield from known(name, methods[method].variants, file, *keys, "variant")
                if weights := weights or part.get("weights"):
                    yield from known(weights, (START, *tasks), file, *keys, "weights")

    for name, scale in catalogue.scales.items():
        for method in scale.jobs.memory_of:
            yield from known(method, methods, "catalogue/scales.yaml", name, "jobs", "memory_of", method)
    for paper, entry in catalogue.papers.items():
        file = f"papers/{paper}/displays.yaml"
        for name, display in entry.displays.items():
            for analysis in list_display_analyses(display):
                yield from known(analysis, entry.analyses, file, "displays", name)
            # Scores of an analysis may have names that the catalogue does not have.
            cells = [cell for cell in list_table_cells(display) if "analysis" not in cell]
            for part in (*cells, *display.get("runs", ())):
                yield from named(part, file, "displays", name)
        for name, analysis in entry.analyses.items():
            for part in analysis.get("runs", ()):
                yield from named(part, file, "analyses", name)
            if "published" in analysis:
                yield from known(analysis["published"], catalogue.papers, file, "analyses", name, "published")
        for name, plan in entry.plans.items():
            yield from known(plan.scale, catalogue.scales, f"papers/{paper}/{name}", "scale")
        file = f"papers/{paper}/experiments.yaml"
        for part in ("demo", "experiments"):
            for number, experiment in enumerate(getattr(entry.experiments, part)):
                for task in list_names(experiment.task):
                    yield from known(task, tasks, file, part, number, "task")
                if experiment.weights:
                    yield from known(experiment.weights, (START, *tasks), file, part, number, "weights")
                for method, variants in experiment.methods.items():
                    yield from known(method, methods, file, part, number, "methods", method)
                    for variant in variants if method in methods else ():
                        yield from known(variant, methods[method].variants, file, part, number, "methods", method)
                for scale in (*experiment.seeds, *list_names(experiment.at or [])):
                    yield from known(scale, catalogue.scales, file, part, number)
        for scale in entry.experiments.seeds:
            yield from known(scale, catalogue.scales, file, "seeds", scale)
