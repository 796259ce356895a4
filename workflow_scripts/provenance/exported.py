"""provenance.json of an export: how each run was made, and each run that its weights come from."""

from collections.abc import Iterable
from typing import Any

# Provenance of a run. Its spec can be resolved again from the catalogue of the same commit.
PROVENANCE = (
    *("run", "scale", "protocol", "weights", "spec_digest", "data_digest", "code_digest"),
    *(
        "steps",
        "best_step",
        "best_validation",
        "parameters",
        "started",
        "finished",
        "seconds",
        "seconds_per_step",
    ),
    *(
        "resumed",
        "device",
        "device_name",
        "cpu",
        "threads",
        "precision",
        "commit",
        "dirty",
        "versions",
    ),
    *("analysis_plans", "not_recorded"),
)
PACKAGES = ("numpy", "python", "scipy", "tokenizers", "torch", "transformers")
# What a row has of any run, and of one that was trained. A value may be null: outside of git there is no commit.
EXPECTED = (
    *("data_digest", "code_digest", "started", "finished", "seconds"),
    *("device", "device_name", "precision", "commit", "dirty", "versions"),
)
OF_TRAININGS = ("spec_digest", "steps", "parameters")
NOT_RECORDED = "not recorded"


def select_provenance(run: dict[str, Any]) -> dict[str, Any]:
    """Select the fields of PROVENANCE from the manifest and record of a run, with the versions of PACKAGES.

    `weights` are what the run starts from, or what it scores: a run with the digest of its spec, or a model of the hub.
    """
    found = {key: run[key] for key in PROVENANCE if key in run}
    if "weights" not in run and (origin := run.get("spec", {}).get("init")):
        found["weights"] = origin
    return found | {
        "versions": {
            name: run["versions"][name] for name in PACKAGES if name in run.get("versions", ())
        }
    }


def name_parent(row: dict[str, Any]) -> str | None:
    """Return the run that a row's weights come from; None for random weights and for a model of the hub."""
    weights = row.get("weights")
    return weights.get("run") if isinstance(weights, dict) else None


def complete_provenance(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows sorted by run, with a row for each parent, and with what is not recorded of each.

    `not_recorded` lists fields that an earlier export left out, and in `weights` it says that the row of the parent is
    of other weights than those that were used.
    """
    found = {row["run"]: row for row in rows}
    for row in list(found.values()):
        parent = name_parent(row)
        if parent and parent not in found:
            found[parent] = {
                "run": parent,
                "scale": row.get("scale"),
                "spec_digest": row["weights"].get("spec"),
            }
    return [_mark_missing(found[name], found) for name in sorted(found)]


def _mark_missing(row: dict[str, Any], rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    trained = "@" not in row["run"]
    expected = dict.fromkeys(
        (*row.get("not_recorded", ()), *EXPECTED, *(OF_TRAININGS if trained else ()))
    )
    missing = [name for name in expected if name not in row or row[name] == {}]
    row = {key: value for key, value in row.items() if key != "not_recorded"}
    if parent := name_parent(row):
        row["weights"] = {
            key: value for key, value in row["weights"].items() if key != "provenance"
        }
        if rows[parent].get("spec_digest") != row["weights"].get("spec"):
            row["weights"]["provenance"] = NOT_RECORDED
    return row | ({"not_recorded": missing} if missing else {})
