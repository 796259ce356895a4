"""Read what cells are made from: published numbers, and the scores of runs and analyses."""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.config.displays import score_files
from workflow_scripts.config.loading import Catalogue
from workflow_scripts.config.paths import analysis_folder, evaluation_folder, run_folder
from workflow_scripts.config.runs import Run, Variant
from workflow_scripts.evaluation.published import Key, Published, read_published
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.reporting.evidence.pairing import get_initial_weights


@dataclass(frozen=True)
class Evidence:
    """Published numbers and scores of a paper at one scale."""

    paper: str
    scale: str
    published: dict[Key, Published]
    scores: dict[Variant, list[dict]]  # rows of scores.csv of runs asked for
    analyses: dict[str, list[dict]]  # rows of scores.csv by name of the analysis
    weights: dict[Variant, str] = field(default_factory=dict)  # what the runs of a measured variant start from
    absent: dict[Variant, list[dict]] = field(default_factory=dict)  # scores not defined: `seed` and `reason`, no value


def read_evidence(
    catalogue: Catalogue,
    paper: str,
    scale: str,
    runs: Iterable[Run],
    analyses: Iterable[str],
    results: Path,
    intervened: Container[Variant] = (),
) -> Evidence:
    """Read published.csv of a paper, and scores.csv of runs and analyses under `results`, the folder of the scale.

    Runs of the variants `intervened` come with the scores of their interventions. Raises UserError if the scores of one
    of `runs` are missing or of another run.
    """
    scores: dict[Variant, list[dict]] = {}
    absent: dict[Variant, list[dict]] = {}
    for run in runs:
        if (described := results / evaluation_folder(run) / "evaluation.json").exists():
            found = read_json(described).get("absent", [])
            absent.setdefault(run.unseeded, []).extend(row | {"seed": run.seed} for row in found)
        found = scores.setdefault(run.unseeded, [])
        for file in score_files(run, intervened):
            rows = read_scores(results / file)
            for row in rows:
                other = Run(row["task"], row["method"], row["variant"], row["seed"])
                if other != run:
                    raise UserError(
                        f"{results / file} holds scores of {other}; move {results / run_folder(run)} away, "
                        "then call ./reproduce"
                    )
            found += rows
    files = {name: results / analysis_folder(paper, name) / "scores.csv" for name in analyses}
    analysed = {name: read_scores(file) for name, file in files.items()}
    named = {(row["task"], row["method"], row["variant"]) for rows in analysed.values() for row in rows}
    measured = sorted({*scores, *(variant for variant in named if None not in variant)})
    return Evidence(
        paper,
        scale,
        read_published(catalogue.root / "papers" / paper / "published.csv"),
        scores,
        analysed,
        {variant: get_initial_weights(catalogue, variant, scale) for variant in measured},
        absent,
    )
