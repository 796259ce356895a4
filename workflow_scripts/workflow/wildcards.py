"""Wildcards of the rules: their type, and the names that they may have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from workflow_scripts.common.run_names import Run, VariantKey, parse_seed


class Wildcards(Protocol):
    """The wildcards of a job, as attributes: `scale`, `task`, `method`, `variant`, `seed` etc."""

    def __getattr__(self, name: str) -> str: ...
    def items(self) -> Iterable[tuple[str, str]]:
        """Return (name, value) of each wildcard."""
        ...


class WildcardValues(dict[str, str]):
    """Wildcards of a job that is not Snakemake's."""

    def __getattr__(self, name: str) -> str:
        return self[name]


def read_variant_key(names: Mapping[str, str]) -> VariantKey:
    """Return the variant of a job with these wildcards."""
    return VariantKey(names["task"], names["method"], names["variant"])


def read_run_name(names: Mapping[str, str]) -> Run:
    """Return the run of a job with these wildcards. `seed` is `seed-<n>`."""
    return read_variant_key(names).make_run(parse_seed(names["seed"]))


@dataclass(frozen=True)
class NamePatterns:
    """Regular expressions of names.

    names: of all rules, by wildcard. missing_sources, present_sources: of the files of sources.yaml
    that are not in results/downloads, and of those that are. trained_variants: of the variants that
    can be trained. large_data: of the tasks and scales whose data need much disk. displays: of the
    tables and the figures of each paper, by their kind.
    """

    names: dict[str, str] = field(default_factory=dict)
    missing_sources: str = ".+"
    present_sources: str = ".+"
    trained_variants: str = "[^/@]+"
    large_data: dict[str, str] = field(default_factory=dict)
    displays: dict[str, str] = field(default_factory=dict)


# For a job on a cluster, which is given by its wildcards: their names have been checked.
ANY_NAMES = NamePatterns()
