"""Read config.yaml, catalogue/ and papers/, and check that they are consistent."""

import os
import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.files import list_files
from workflow_scripts.common.validation import (
    describe_unknown,
    find_close_name,
    locate,
    parse_as,
    suggest_name,
)
from workflow_scripts.common.yaml_files import read_yaml, read_yaml_mapping
from workflow_scripts.config import agreement
from workflow_scripts.config.analysis_plan import (
    FIRST_PLAN,
    LATER_PLANS,
    AnalysisPlan,
    FirstPlan,
    LaterPlan,
    PlannedClaim,
)
from workflow_scripts.config.axes import (
    Axes,
    Entry,
    Units,
    expand_claims,
    expand_display,
    expand_runs,
    find_unit,
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
from workflow_scripts.config.display_schema import (
    Analysis,
    Claim,
    Display,
    FigureDisplay,
    TableDisplay,
)
from workflow_scripts.config.entries import read_methods, read_tasks
from workflow_scripts.config.overrides import name_option, read_overrides
from workflow_scripts.config.own_code import check_settings
from workflow_scripts.config.schema import Config, Experiments, Metrics, Scale, parse_config
from workflow_scripts.config.unread_files import (
    find_unread_catalogue_files,
    find_unread_paper_files,
    find_unread_papers,
)


def load_config(
    content: dict | None = None,
    root: str | Path = ".",
    overrides: Collection[str] | None = None,
) -> Config:
    """Validate the configuration: config.yaml in `root`, or `content`.

    overrides: of config.yaml with the words of a call's --config these words, so that a message
    names the option that sets a wrong value. Where the configuration names claims, the papers are
    theirs.
    """
    file: str | Path = "config.yaml"
    if not content or overrides is not None:
        file = Path(root) / "config.yaml"
    if content is None:
        content = read_yaml_mapping(Path(root) / "config.yaml")
    known_scales = list(read_yaml_mapping(Path(root) / "catalogue/scales.yaml"))
    known_papers = [path.parent.name for path in list_files(root, "papers/*/experiments.yaml")]
    problems = ErrorList()
    set_keys = read_overrides(overrides or ()).keys()
    for key in set_keys:
        option = name_option(overrides or (), key)
        known = known_scales if key == "scale" else known_papers
        value = content[key]
        if key == "claims" and isinstance(value, list) and value:
            value = _check_claim_papers(root, option, value, problems)
            if not value:
                continue
        _check_option(option, key, value, known, problems)
    from_file = {key: value for key, value in content.items() if key not in set_keys}
    scale = from_file.get("scale")
    if isinstance(scale, str) and scale not in known_scales:
        problems.add(describe_unknown(file, ("scale",), scale, known_scales))
    for key in ("papers", "claims"):
        for paper in _find_unknown_papers(key, from_file.get(key), known_papers):
            suggestion = _suggest_paper(paper, known_papers)
            problems.add(f"{locate(file, (key,))}: key '{key}' names '{paper}'; {suggestion}")
    with problems.collect():
        parse_config(from_file, file)
    problems.check_empty()
    config = parse_config(content, file)
    if config.claims:
        papers = [name.split("/")[0] for name in config.claims]
        config = config.model_copy(update={"papers": list(dict.fromkeys(papers))})
    return config


def name_place(key: str, overrides: Collection[str]) -> str:
    """Return where a call sets a key: the option, or file and line of config.yaml."""
    if key in read_overrides(overrides):
        return name_option(overrides, key)
    return locate(Path("config.yaml"), (key,))


def _check_option(
    option: str, key: str, value: Any, known_names: list[str], problems: ErrorList
) -> None:
    """Add what is wrong with the value that an option gives a key.

    known_names: the papers, of the key `scale` the scales.
    """
    noun = "scale" if key == "scale" else "paper"
    is_own_option = option != "--config"
    if is_own_option and value in ([], None):
        known = ", ".join(sorted(known_names))
        advice = "write <paper>/<claim>" if key == "claims" else f"known: {known}"
        problems.add(f"{option} names nothing; {advice}")
        return
    unknown = _find_unknown_papers(key, value, known_names)
    if key == "scale" and isinstance(value, str) and value not in known_names:
        unknown = [value]
    place = option if is_own_option else f"{option} {key}"
    for name in unknown:
        problems.add(f"{place}: no {noun} '{name}'; {_suggest_paper(name, known_names)}")
    try:
        parse_config({key: value}, option)
    except UserError as error:
        for line in str(error).splitlines():
            # The option says which key it is.
            own_line = re.sub(rf"key '{key}(\.\d+)?' is ", "", line) if is_own_option else line
            problems.add(own_line)


def _suggest_paper(name: str, known_names: list[str]) -> str:
    """Suggest the paper, or the scale, that was probably meant."""
    paper, slash, _ = name.partition("/")
    if slash and paper in known_names:
        return f"write {paper}, the whole paper; --claim takes <paper>/<claim>"
    return suggest_name(name, known_names)


def _check_claim_papers(
    root: str | Path, option: str, names: list[Any], problems: ErrorList
) -> list[Any]:
    """Return the claims without those that name no paper.

    Adds for each of these the claim that was probably meant.
    """
    complete = []
    for name in names:
        if not isinstance(name, str) or "/" in name:
            complete.append(name)
            continue
        close = _find_full_claim_name(read_catalogue(str(root), os.getcwd()), name)
        advice = "write <paper>/<claim>, such as lrf/lrf-over-transformer-cter-instance"
        if close:
            advice = f"did you mean '{close}'?"
        problems.add(f"{option}: '{name}' names no paper; {advice}")
    return complete


def _find_full_claim_name(catalogue: Catalogue, name: str) -> str | None:
    """Return `<paper>/<claim>` of the claim that is called so, or nearly so; None without one."""
    full_names: list[str] = []
    for paper, content in catalogue.papers.items():
        full_names += [f"{paper}/{claim}" for claim in content.claims_by_name]
    for full_name in full_names:
        if full_name.endswith(f"/{name}"):
            return full_name
    return find_close_name(name, full_names)


def _find_unknown_papers(key: str, names: Any, known_papers: list[str]) -> list[str]:
    """Return the papers without a folder of those that a key of a configuration names."""
    if key not in ("papers", "claims") or not isinstance(names, list):
        return []
    unknown = []
    for name in names:
        if not isinstance(name, str):
            continue
        paper, _, claim = name.partition("/")
        if key == "papers":
            paper = name
        elif not claim:
            continue
        if paper not in known_papers:
            unknown.append(paper)
    return unknown


def load_catalogue(root: str | Path = ".") -> Catalogue:
    """Read and cross-check catalogue/ and papers/.

    Raises UserError with every problem, each with file and line.
    """
    catalogue = read_catalogue(str(root), os.getcwd())
    catalogue.problems.check_empty()
    return catalogue


@lru_cache(maxsize=8)
def read_catalogue(folder: str, _current_folder: str) -> Catalogue:
    """Read what is right of catalogue/ and papers/, once for all calls from one current folder."""
    root, problems = Path(folder), ErrorList()
    problems.add(*check_settings())
    problems_before = len(problems.lines)
    tasks, methods = read_tasks(root, problems), read_methods(root, problems)
    scales: dict[str, Scale] = {}
    metrics: list[Metrics] | None = None
    with problems.collect():
        scales = _read_scales(root / "catalogue/scales.yaml")
    with problems.collect():
        metrics = _read_metrics(root / "catalogue/metrics.yaml")
    catalogue_is_right = len(problems.lines) == problems_before
    catalogue = Catalogue(root, tasks, methods, scales, problems=problems)
    units = None if metrics is None else _list_units(metrics)
    for entry in metrics or ():
        catalogue.meanings.update(entry.meanings)
    for file in list_files(root, "papers/*/experiments.yaml"):
        catalogue.papers[file.parent.name] = _read_paper(file.parent, units, problems)
    problems.add(*find_unread_catalogue_files(root), *find_unread_papers(root))
    problems.add(*agreement.check_characters(catalogue))
    if catalogue_is_right:  # names of a broken entry are not reported wherever they are used
        problems.add(*agreement.check_conditions(catalogue))
        problems.add(*agreement.check_names(catalogue))
    return catalogue


def _read_scales(file: Path) -> dict[str, Scale]:
    """Return the scales by name."""
    entries = read_yaml_mapping(file)
    return {name: parse_as(Scale, entry, file, name) for name, entry in entries.items()}


def _read_metrics(file: Path) -> list[Metrics]:
    """Return the metrics by their units."""
    content = read_yaml(file)
    if not isinstance(content, list):
        raise UserError(f"{file}: must be a list of units with their metrics")
    metrics = [parse_as(Metrics, entry, file, (number,)) for number, entry in enumerate(content)]
    unit_of_metric: dict[str, str] = {}
    for number, entry in enumerate(metrics):
        for metric in entry.metrics:
            if metric in unit_of_metric:
                line = locate(file, (number, "metrics"))
                other = f"is also in {unit_of_metric[metric]}"
                raise UserError(f"{line}: metric '{metric}' {other}; remove one")
            unit_of_metric[metric] = entry.unit
    return metrics


def _list_units(metrics: list[Metrics]) -> Units:
    """Return metric -> (unit, decimals)."""
    units: Units = {}
    for entry in metrics:
        units |= dict.fromkeys(entry.metrics, (entry.unit, entry.decimals))
    return units


def _read_paper(folder: Path, units: Units | None, problems: ErrorList) -> Paper:
    """Read the files of a paper, each as far as possible, and check that they agree."""
    file = folder / "experiments.yaml"
    experiments = Experiments.model_validate({"title": "", "citation": ""})
    problems_before = len(problems.lines)
    with problems.collect():
        experiments = parse_as(Experiments, read_yaml_mapping(file), file)
    problems_before_displays = len(problems.lines)
    displays, analyses = _read_displays(folder / "displays.yaml", units, problems)
    displays_are_right = len(problems.lines) == problems_before_displays
    problems.add(*find_unread_paper_files(folder, displays if displays_are_right else None))
    problems_before_plans = len(problems.lines)
    plans = _read_plans(folder, problems)
    problems_before_claims = len(problems.lines)
    plans_are_right = problems_before_claims == problems_before_plans
    claims, lines = _read_claims(folder, displays, plans, plans_are_right, problems)
    claims_are_right = len(problems.lines) == problems_before_claims
    paper = Paper(experiments, displays, analyses, claims, plans)
    problems.add(*agreement.check_experiments(file, paper))
    if claims_are_right:
        problems.add(*agreement.check_plans(folder, paper))
        problems.add(*agreement.check_given(paper, lines))
    if displays_are_right:  # cells of a broken display are not reported wherever they are used
        problems.add(*agreement.check_labels(folder / "displays.yaml", paper))
        problems.add(*agreement.check_claims(paper, lines))
        problems.add(*agreement.check_controls(folder, paper))
        with problems.collect():
            problems.add(*agreement.check_published(folder, paper, units or {}))
    if len(problems.lines) == problems_before:
        # Which variants a plan names is known if all else is right.
        problems.add(*agreement.check_planned_seeds(file, paper))
        problems.add(*agreement.check_measured_claims(paper, lines))
    return paper


def _read_plans(folder: Path, problems: ErrorList) -> dict[str, AnalysisPlan]:
    """Read the analysis plans of a paper, the oldest first."""
    plans: dict[str, AnalysisPlan] = {}
    first = folder / FIRST_PLAN
    if first.exists():
        with problems.collect():
            plans[FIRST_PLAN] = parse_as(FirstPlan, read_yaml_mapping(first), first)
    for file in list_files(folder, f"{LATER_PLANS}/*.yaml"):
        with problems.collect():
            name = file.relative_to(folder).as_posix()
            plans[name] = parse_as(LaterPlan, read_yaml_mapping(file), file)
    return plans


def _read_displays(
    file: Path, units: Units | None, problems: ErrorList
) -> tuple[dict[str, Display], dict[str, Analysis]]:
    """Read the displays and the analyses of a paper, and write out their axes."""
    displays: dict[str, Display] = {}
    analyses: dict[str, Analysis] = {}
    with problems.collect():
        content = read_yaml_mapping(file)
        parse_as(DisplayFile, content, file)
        axes = read_axes(content.get("axes", {}))
        entries = content.get("analyses", {})
        for name in entries:
            with problems.collect():
                analyses[name] = _read_analysis(file, axes, entries, name)
        entries = content["displays"]
        for name in entries:
            with problems.collect():
                displays[name] = _read_display(file, axes, units, entries, name)
    return displays, analyses


def _read_analysis(file: Path, axes: Axes, entries: dict[str, Entry], name: str) -> Analysis:
    """Read the analysis `name` of the entries that displays.yaml has under `analyses`."""
    keys = ("analyses", name)
    place = f"{locate(file, keys)}: analyses.{name}"
    entry = _merge_entry(file, entries, keys)
    return parse_as(Analysis, expand_runs(axes, entry, place), file, keys, at=keys)


def _merge_entry(file: Path, entries: dict[str, Entry], keys: tuple[str, str]) -> Entry:
    """Return an entry at `keys` of displays.yaml over the one that it extends.

    Raises UserError if the form of either is wrong.
    """
    part, name = keys
    merged = merge_extended(entries, name, locate(file, (*keys, "extends")))
    model: type[BaseModel] = TableEntry
    if part == "analyses":
        model = AnalysisEntry
    elif "module" in merged:
        model = FigureEntry
    parse_as(model, entries[name], file, keys)
    base = entries[name].get("extends")
    if base is not None:
        _merge_entry(file, entries, (part, base))
    return merged


def _read_display(
    file: Path,
    axes: Axes,
    units: Units | None,
    entries: dict[str, Entry],
    name: str,
) -> Display:
    """Read the display `name` of the entries that displays.yaml has under `displays`."""
    keys = ("displays", name)
    place = f"{locate(file, keys)}: displays.{name}"
    entry = _merge_entry(file, entries, keys)
    is_figure = "module" in entry
    display = expand_display(axes, units, entry, place)
    return parse_as(FigureDisplay if is_figure else TableDisplay, display, file, keys, at=keys)


def _read_claims(
    folder: Path,
    displays: dict[str, Display],
    plans: dict[str, AnalysisPlan],
    plans_are_right: bool,
    problems: ErrorList,
) -> tuple[list[Claim], list[str]]:
    """Read the claims of a paper, and write out their axes. Returns also file and line of each.

    plans_are_right: whether the measures of all primary claims, and so their units, are known.
    """
    file = folder / "claims.yaml"
    primary_claims = _map_primary_claims(plans)
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
                place = f"{line}: claim '{entry['claim']}'"
                for fields in expand_claims(axes, quotes, entry, find_cell, place):
                    planned = primary_claims.get(str(fields["claim"]))
                    if planned is not None:
                        fields |= _collect_planned_fields(fields, planned, folder, keys)
                    unit = find_unit(fields, find_cell)
                    written = fields.setdefault("unit", unit)
                    if plans_are_right and unit and written != unit:
                        problem = f"claim '{fields['claim']}' is in {unit}, not in {written}"
                        raise UserError(f"{line}: {problem}; leave out `unit`")
                    claims.append(parse_as(Claim, fields, file, str(fields["claim"]), at=keys))
                    lines.append(line)
    return claims, lines


def _map_primary_claims(plans: dict[str, AnalysisPlan]) -> dict[str, PlannedClaim]:
    """Return the primary claims by name."""
    primary_claims: dict[str, PlannedClaim] = {}
    for file, plan in plans.items():
        for entry in plan.primary:
            primary_claims[entry.claim] = PlannedClaim(file, plan, entry)
    return primary_claims


def _collect_planned_fields(
    claim: Entry,
    planned: PlannedClaim,
    folder: Path,
    keys: tuple[str, int],
) -> Entry:
    """Return the fields of a primary claim that its plan has.

    These are the margin, and the measure if the plan names it. `claim`: the fields that
    claims.yaml has at `keys`. Raises UserError if one of the plan's is among them, and if the
    margin has the wrong sign.
    """
    fields: Entry = {"at_least": _read_margin(claim, planned, folder)}
    if planned.entry.measure is not None:
        fields["measure"] = planned.entry.measure
    for key in fields:
        if key in claim:
            line = locate(folder / "claims.yaml", (*keys, key))
            advice = f"leave out {key}, which follows from {planned.file}"
            raise UserError(f"{line}: claim '{planned.name}' is primary: {advice}")
    return fields


def _read_margin(claim: Entry, planned: PlannedClaim, folder: Path) -> float:
    """Return `at_least` of a primary claim: the margin, of a claim of no gain without its sign."""
    margin = planned.entry.margin
    if claim.get("relation") == "no_gain":
        at_least = 0.0 - margin  # never -0
        limit = "not above 0 for a claim of no gain"
    else:
        at_least = margin
        limit = "not below 0 but for a claim of no gain"
    if at_least < 0:
        number = planned.plan.primary.index(planned.entry)
        line = locate(folder / planned.file, ("primary", number, "margin"))
        raise UserError(f"{line}: claim '{planned.name}': margin is {margin:g}; it is {limit}")
    return at_least
