"""Regular expressions that match names of the catalogue only.

A misspelled target is therefore refused.
"""

import re
from collections.abc import Iterable

from workflow_scripts.common.result_folders import DOWNLOADS
from workflow_scripts.common.run_names import START
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.specs import resolve_data
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.workflow.wildcards import NamePatterns

NOTHING = "(?!)"
SEED_LIMIT = 2**31


def match_catalogue(catalogue: Catalogue) -> NamePatterns:
    """Return the patterns of the names of a catalogue."""
    present, missing = split_sources()
    return NamePatterns(
        names=match_names(catalogue),
        missing_sources=match_any(missing),
        present_sources=match_any(present),
        trained_variants=match_variants(catalogue),
        large_data=match_large_data(catalogue),
        displays={kind: match_displays(catalogue, kind) for kind in ("table", "figure")},
    )


def match_names(catalogue: Catalogue) -> dict[str, str]:
    """Return wildcard constraints that match names of the catalogue only."""
    repositories = load_repositories()
    models = [name for name, repository in repositories.items() if repository.kind == "model"]
    analyses: set[str] = set()
    claims: set[str] = set()
    for paper in catalogue.papers.values():
        analyses |= paper.analyses.keys()
        claims |= paper.claims_by_name.keys()
    weights = match_any([START, *catalogue.tasks])
    return {
        "scale": match_any(catalogue.scales),
        "source": match_any(load_sources()),
        "model": match_any(models),
        "task": match_any(catalogue.tasks),
        "method": match_any(catalogue.methods),
        "variant": f"(?:{match_variants(catalogue)})(?:@(?:{weights}))?",
        "paper": match_any(catalogue.papers),
        "analysis": match_any(analyses),
        "claim": match_any(claims),
        # The whole name of the folder, so that task/method/variant/seed is the name of the run.
        "seed": f"seed-(?:{match_numbers_below(SEED_LIMIT)})",
    }


def split_sources() -> tuple[list[str], list[str]]:
    """Return the files of sources.yaml that are in results/downloads, and those that are not."""
    present = []
    missing = []
    for name in load_sources():
        names = present if DOWNLOADS.source(name).path.exists() else missing
        names.append(name)
    return present, missing


def match_variants(catalogue: Catalogue) -> str:
    """Return a regular expression that matches the variants that can be trained."""
    variants: set[str] = set()
    for method in catalogue.methods.values():
        variants |= method.variants.keys()
    return match_any(variants)


def match_displays(catalogue: Catalogue, kind: str) -> str:
    """Return a regular expression that matches the tables, or the figures, after their paper.

    Snakemake has no constraint on two wildcards: so this one looks back at the paper's folder.
    """
    patterns = []
    for paper, content in catalogue.papers.items():
        names = [name for name, display in content.displays.items() if display.kind == kind]
        if names:
            patterns.append(f"(?<=/{re.escape(paper)}/)(?:{match_any(names)})")
    return "|".join(patterns)


def match_large_data(catalogue: Catalogue) -> dict[str, str]:
    """Return wildcard constraints for tasks that need much disk, at scales with real data."""
    tasks = [name for name, task in catalogue.tasks.items() if task.disk]
    scales = []
    for scale in catalogue.scales:
        if any(resolve_data(catalogue, task, scale).sources for task in tasks):
            scales.append(scale)
    return {"task": match_any(tasks), "scale": match_any(scales)}


def match_numbers_below(limit: int) -> str:
    """Return a regular expression that matches the numbers from 0 to below a limit.

    They are as `str` writes them, without leading zeros.
    """
    digits = str(limit)
    patterns = ["0", f"[1-9][0-9]{{0,{len(digits) - 2}}}"]  # the shorter ones
    for position, digit in enumerate(map(int, digits)):
        lowest = 1 if position == 0 else 0
        if digit > lowest:  # the first digit that is not that of the limit
            rest = len(digits) - position - 1
            patterns.append(f"{digits[:position]}[{lowest}-{digit - 1}][0-9]{{{rest}}}")
    return "|".join(patterns)


def match_any(names: Iterable[str]) -> str:
    """Return a regular expression that matches these names only, or nothing if there are none."""
    return "|".join(sorted(map(re.escape, names))) or NOTHING
