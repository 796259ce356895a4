"""Regular expressions that match names of the catalogue only, so that a misspelled target is refused."""

import re
from collections.abc import Iterable

from workflow_scripts.config.catalogue import START, Catalogue
from workflow_scripts.config.specs import resolve_data
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.workflow.wildcards import NamePatterns


def match_catalogue(catalogue: Catalogue) -> NamePatterns:
    """Return the patterns of the names of a catalogue."""
    return NamePatterns(
        match_names(catalogue), match_variants(catalogue), match_large_data(catalogue)
    )


def match_names(catalogue: Catalogue) -> dict[str, str]:
    """Return wildcard constraints that match names of the catalogue only."""
    return {
        "scale": match_any(catalogue.scales),
        "source": match_any(load_sources()),
        "model": match_any(
            name for name, entry in load_repositories().items() if entry.kind == "model"
        ),
        "task": match_any(catalogue.tasks),
        "method": match_any(catalogue.methods),
        "variant": f"(?:{match_variants(catalogue)})(?:@(?:{match_any([START, *catalogue.tasks])}))?",
        "paper": match_any(catalogue.papers),
        "display": match_any(
            {name for paper in catalogue.papers.values() for name in paper.displays}
        ),
        "analysis": match_any(
            {name for paper in catalogue.papers.values() for name in paper.analyses}
        ),
        # The whole name of the folder, so that task/method/variant/seed is the name of the run.
        "seed": r"seed-\d+",
    }


def match_variants(catalogue: Catalogue) -> str:
    """Return a regular expression that matches the variants that can be trained."""
    return match_any(
        {variant for method in catalogue.methods.values() for variant in method.variants}
    )


def match_large_data(catalogue: Catalogue) -> dict[str, str]:
    """Return wildcard constraints for tasks that need much disk, at scales with real data."""
    tasks = [name for name, task in catalogue.tasks.items() if task.disk]
    sources = {
        scale: [resolve_data(catalogue, task, scale).sources for task in tasks]
        for scale in catalogue.scales
    }
    return {
        "task": match_any(tasks),
        "scale": match_any(scale for scale, found in sources.items() if any(found)),
    }


def match_any(names: Iterable[str]) -> str:
    """Return a regular expression that matches these names only."""
    return "|".join(sorted(map(re.escape, names)))
