"""Copies of catalogue/ and papers/ with one thing changed."""

import shutil
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SEQ2SEQ, CAUSAL = "methods/seq2seq.yaml", "methods/causal.yaml"


def copy_project(folder: Path) -> Path:
    """Copy everything that a user can edit."""
    for name in ("catalogue", "papers"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "config.yaml", folder)
    return folder


def edit(file: Path, change) -> None:
    content = yaml.load(file.read_text(), yaml.CSafeLoader)
    change(content)
    file.write_text(yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False))


def name_planned_seeds(content: dict, seeds: list[int]) -> None:
    """Write these seeds in experiments.yaml wherever it has `planned`."""
    for entry in (content, *content.get("demo", []), *content["experiments"]):
        for scale, requested in entry.get("seeds", {}).items():
            if requested == "planned":
                entry["seeds"][scale] = seeds


def remove_plans(paper: Path) -> None:
    """Remove the analysis plans of a paper, and the units of its claims, which follow from them."""
    (paper / "analysis_plan.yaml").unlink(missing_ok=True)
    shutil.rmtree(paper / "plans", ignore_errors=True)
    edit(
        paper / "claims.yaml",
        lambda content: [claim.pop("unit", None) for claim in content["claims"]],
    )


def add_rule(copy: Path, file: str, entry: str, **rule: object) -> None:
    """Append a rule to an entry of the catalogue; it wins over all that the entry has."""
    edit(
        copy / "catalogue" / file,
        lambda entries: entries[entry].setdefault("when", []).append(rule),
    )
