"""What displays are made from: published numbers, and the scores of runs and analyses."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_mapping, write_json
from workflow_scripts.config.catalogue import Catalogue, Run, VariantKey
from workflow_scripts.config.display_schema import list_display_analyses
from workflow_scripts.config.displays import find_intervened_variants, score_files
from workflow_scripts.config.paths import analysis_folder, evaluation_folder, run_folder
from workflow_scripts.evaluation.published import Key, Published, read_published
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.provenance.record import make_record
from workflow_scripts.provenance.spec_fingerprints import Fingerprint
from workflow_scripts.reporting.evidence.pairing import get_initial_weights
from workflow_scripts.reporting.evidence.withholding import find_withheld


@dataclass(frozen=True)
class Evidence:
    """Published numbers and scores of a paper at one scale."""

    paper: str
    scale: str
    published: dict[Key, Published]
    scores: dict[VariantKey, list[dict]]  # rows of scores.csv of runs asked for
    analyses: dict[str, list[dict]]  # rows of scores.csv by name of the analysis
    weights: dict[VariantKey, str] = field(default_factory=dict)  # what the runs of a measured variant start from
    absent: dict[VariantKey, list[dict]] = field(default_factory=dict)  # undefined scores: `seed` and `reason`
    withheld: dict[VariantKey, str] = field(default_factory=dict)  # why a variant's scores are not shown yet

    def drop_withheld(self) -> "Evidence":
        """Return the evidence without the scores that are not shown yet."""
        scores = {variant: rows for variant, rows in self.scores.items() if variant not in self.withheld}
        analyses = {
            name: [row for row in rows if (row["task"], row["method"], row["variant"]) not in self.withheld]
            for name, rows in self.analyses.items()
        }
        return replace(self, scores=scores, analyses=analyses)


def read_evidence(
    catalogue: Catalogue, paper: str, scale: str, runs: Iterable[Run], displays: list[dict], results: Path
) -> Evidence:
    """Read published.csv of a paper, and the scores under `results` that its `displays` show of `runs` and analyses.

    Raises UserError if the scores of one of `runs` are missing or of another run.
    """
    runs, intervened = list(runs), find_intervened_variants(displays)
    scores: dict[VariantKey, list[dict]] = {}
    absent: dict[VariantKey, list[dict]] = {}
    for run in runs:
        if (described := results / evaluation_folder(run) / "evaluation.json").exists():
            found = read_mapping(described).get("absent", [])
            absent.setdefault(run.unseeded, []).extend(row | {"seed": run.seed} for row in found)
        found = scores.setdefault(run.unseeded, [])
        for file in score_files(run, intervened):
            rows = read_scores(results / file)
            for row in rows:
                other = Run(row["task"], row["method"], row["variant"], row["seed"])
                if other != run:
                    where = f"{results / file} holds scores of {other}"
                    raise UserError(f"{where}; move {results / run_folder(run)} away, then call ./reproduce")
            found += rows
    analyses = [name for display in displays for name in list_display_analyses(display)]
    analysed = {name: read_scores(results / analysis_folder(paper, name) / "scores.csv") for name in analyses}
    named = {(row["task"], row["method"], row["variant"]) for rows in analysed.values() for row in rows}
    measured = sorted({*scores, *(variant for variant in named if None not in variant)})
    published = read_published(catalogue.root / "papers" / paper / "published.csv")
    weights = {variant: get_initial_weights(catalogue, variant, scale) for variant in measured}
    shown = [(row["task"], row["method"], row["variant"], row["seed"]) for rows in analysed.values() for row in rows]
    shown += [(*run.unseeded, run.seed) for run in runs]
    withheld = find_withheld(catalogue, paper, scale, shown, results)
    return Evidence(paper, scale, published, scores, analysed, weights, absent, withheld)


def select_rows(rows: list[dict], selection: dict[str, Any]) -> list[dict]:
    """Select the scores of a cell.

    Without a readout these are scores without one, if there are such: those of the best checkpoint. A layer such as
    "25%" is the one nearest to that share of the deepest layer; of two equally near, the earlier.
    """
    wanted = {"intervention": None} | selection
    layer = wanted.pop("layer", None)
    rows = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    if "readout" not in wanted:
        rows = [row for row in rows if row["readout"] is None] or rows
    if layer is None or not rows:
        return rows
    if isinstance(layer, str):
        if not re.fullmatch(r"\d+(\.\d+)?%", layer):
            raise UserError(f"displays.yaml: layer '{layer}' is neither a number of a block nor a depth like 25%")
        depth = float(layer.removesuffix("%")) / 100
        layers = [row["layer"] for row in rows]
        layer = min(layers, key=lambda one: (abs(one - depth * max(layers)), one))
    return [row for row in rows if row["layer"] == layer]


def matches_intervention(row: dict, selection: dict[str, Any], analysed: bool = False) -> bool:
    """Whether a score has the intervention (an analysis may have several) and the rate of a cell."""
    intervened = analysed or row["intervention"] == selection.get("intervention")
    return intervened and row["rate"] in (None, selection.get("rate"))


def has_empty_item_set(seen: list[dict], selection: dict[str, Any]) -> bool:
    """Whether the intervention of a cell was measured, but no item was right before, so that there is no share."""
    # An intervention also has scores on all items; an analysis of such a set has its size.
    of_right = str(selection.get("item_set")).endswith("_correct")
    return of_right and any(row["n"] == 0 or row["item_set"] == "all" for row in seen)


def write_record(
    file: Path, fingerprint: Fingerprint, results: Path, runs: Iterable[Run], displays: list[tuple], **more: Any
) -> None:
    """Write the record of `displays` (paper, entry) with `more`; its data are what they show of `runs`."""
    runs, variants = list(runs), find_intervened_variants(entry for _, entry in displays)
    read = [name for run in runs for name in score_files(run, variants)]
    read += [f"{analysis_folder(p, name)}/scores.csv" for p, entry in displays for name in list_display_analyses(entry)]
    if any(entry.get("curves") for _, entry in displays):
        read += [f"{run_folder(run)}/training.csv" for run in runs]
    digests = {name: hash_file(results / name) for name in read if (results / name).exists()}
    write_json(file, make_record(fingerprint, digests) | more)
