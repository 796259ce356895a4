"""provenance.json of an export: how each run was made, and each run that its weights come from."""

from collections.abc import Iterable
from typing import Any

# Provenance of a run. Its spec can be resolved again from the catalogue of the same commit.
PROVENANCE = (
    "run",
    "scale",
    "protocol",
    "weights",
    "spec_digest",
    "data_digest",
    "code_digest",
    "steps",
    "best_step",
    "best_validation",
    "parameters",
    "started",
    "finished",
    "seconds",
    "seconds_per_step",
    "resumed",
    "device",
    "device_name",
    "cpu",
    "threads",
    "precision",
    "commit",
    "dirty",
    "versions",
    "analysis_plans",
    "not_recorded",
)
PACKAGES = ("numpy", "python", "scipy", "tokenizers", "torch", "transformers")
# What a row has of any run, and of one that was trained. A value may be null: outside of git there
# is no commit.
EXPECTED = (
    "data_digest",
    "code_digest",
    "started",
    "finished",
    "seconds",
    "device",
    "device_name",
    "precision",
    "commit",
    "dirty",
    "versions",
)
OF_TRAININGS = ("spec_digest", "steps", "parameters")
NOT_RECORDED = "not recorded"


def select_provenance(run: dict[str, Any]) -> dict[str, Any]:
    """Select the fields of PROVENANCE from the manifest and record of a run.

    The versions are those of PACKAGES. `weights` are what the run starts from, or what it scores:
    a run with the digest of its spec, or a model of the hub.
    """
    row = {key: run[key] for key in PROVENANCE if key in run}
    origin = run.get("spec", {}).get("init")
    if origin and "weights" not in run:
        row["weights"] = origin
    versions = run.get("versions", {})
    row["versions"] = {name: versions[name] for name in PACKAGES if name in versions}
    return row


def name_parent(row: dict[str, Any]) -> str | None:
    """Return the run that a row's weights come from.

    None for random weights and for a model of the hub.
    """
    weights = row.get("weights")
    if not isinstance(weights, dict):
        return None
    return weights.get("run")


def complete_provenance(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows sorted by run, with a row for each parent.

    `not_recorded` lists fields that an earlier export left out, and in `weights` it says that the
    row of the parent is of other weights than those that were used.
    """
    rows_by_run = {row["run"]: row for row in rows}
    for row in list(rows_by_run.values()):
        parent = name_parent(row)
        if parent and parent not in rows_by_run:
            rows_by_run[parent] = {
                "run": parent,
                "scale": row.get("scale"),
                "spec_digest": row["weights"].get("spec"),
            }
    return [_mark_missing(rows_by_run[run], rows_by_run) for run in sorted(rows_by_run)]


def _mark_missing(row: dict[str, Any], rows_by_run: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a row with what is not recorded of its run and of the weights that it starts from."""
    row = dict(row)
    expected = [*row.pop("not_recorded", ()), *EXPECTED]
    if "@" not in row["run"]:
        expected += OF_TRAININGS
    missing = [name for name in dict.fromkeys(expected) if name not in row or row[name] == {}]
    if missing:
        row["not_recorded"] = missing
    parent = name_parent(row)
    if parent:
        weights = dict(row["weights"])
        weights.pop("provenance", None)
        if rows_by_run[parent].get("spec_digest") != weights.get("spec"):
            weights["provenance"] = NOT_RECORDED
        row["weights"] = weights
    return row
