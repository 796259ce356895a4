"""The README.md of an exported checkpoint: its scores next to published numbers, and its origin."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import RESULTS, ScaleFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.catalogue import Catalogue, check_run
from workflow_scripts.config.display_schema import TableDisplay
from workflow_scripts.config.requested import list_decided_claims
from workflow_scripts.data.sources.declared import load_repositories, load_sources, select_sources
from workflow_scripts.evaluation.published_numbers import Key, read_published
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.models.causal_lm.settings import Settings as CausalSettings
from workflow_scripts.reporting.evidence.selected_scores import (
    ScoreSelection,
    load_scores,
    make_selection,
    select_scores,
)
from workflow_scripts.tasks.checkpoints import read_run
from workflow_scripts.tasks.run_spec import HubModel, ParentRun, RunSpec

COLUMNS = ("split", "subset", "metric", "readout")
INPUTS = {  # of `predict`, by kind of task
    "seq2seq": '["a sentence, as tokens with spaces between"])',
    "prompt": '["a text"])',
    "sentence_prediction": '["a sentence"])  # of pairs: [("first", "second")]',
    "question_answering": '[("a question", "a paragraph")])',
}
CAUSAL = ("prompt", "language_modelling")  # kinds of tasks of causal language models
CARD = """---
library_name: {library}
license: other
tags: [recompose, {method}]
---

# {title}

The run `{name}` of Recompose at scale `{scale}` ({scale_title}), one seed, trained for tables of

{papers}

Primary claims that are judged on this run, among others:

{claims}

```python
from workflow_scripts.results import read_checkpoint

checkpoint = read_checkpoint("FOLDER")  # this folder
{calls}
```

{hints}
## Scores

Protocol `{protocol}`. Published numbers are those that tables show next to such runs: \
of the papers' own
models and data, over the papers' seeds.

{scores}

## Training

    ./reproduce {target}

Commit {commit}{machine}; {parameters:,} parameters, {steps:,} steps.
Weights of step {best_step:,}, sha256 `{weights}`.

## Data and their licences

{origins}
"""


@dataclass(frozen=True)
class PublishedCell:
    """A number that a paper prints of a variant.

    printed: its text. place: where it is in the paper. selection: of the scores that it is of.
    """

    printed: str
    place: str
    selection: ScoreSelection


PublishedCells = dict[VariantKey, list[PublishedCell]]


def collect_published_cells(catalogue: Catalogue) -> PublishedCells:
    """Return the numbers that the papers print of each variant."""
    cells: PublishedCells = defaultdict(list)
    for key, paper in catalogue.papers.items():
        numbers = read_published(catalogue.root / "papers" / key / "published.csv")
        for name, display in paper.displays.items():
            if not isinstance(display, TableDisplay):
                continue
            for variant, cell in display.list_run_cells():
                number = numbers.get(Key(name, cell.row, cell.column, cell.metric or ""))
                if number and cell.over is None:
                    place = f"{key}: {display.source}, {cell.row}, {cell.column}"
                    selection = make_selection(cell, variant)
                    cells[variant].append(PublishedCell(number.printed, place, selection))
    return cells


def make_model_card(
    catalogue: Catalogue, published: PublishedCells, results: Path, run: Run
) -> str:
    """Return the Markdown for a run of `results`, the folder of its scale.

    Raises UserError if a file is missing.
    """
    check_run(catalogue, run)
    folder = ScaleFolder(results).run(run)
    manifest = read_run(folder.path)
    training = read_mapping(folder.manifest, "parameters", "steps", "best_step")
    record = read_mapping(folder.record, "commit", "dirty")
    spec = manifest.spec
    scale = manifest.scale
    if scale is None:
        raise UserError(f"{folder.manifest} names no scale, so nothing can be said of its papers")
    method = catalogue.methods[run.method]
    variant = method.variants[run.variant]
    scores = load_scores(folder.evaluation.scores)
    origins = dict.fromkeys(list_origins(results, spec))
    return CARD.format(
        library="transformers" if spec.kind in CAUSAL else "recompose",
        method=run.method,
        title=f"{method.title}, {variant.title}: {catalogue.tasks[run.task].title}",
        name=run,
        target=RESULTS.scale(scale).run(run).manifest,
        scale=scale,
        scale_title=catalogue.scales[scale].title,
        papers="\n".join(list_papers(catalogue, run, scale)) or "- no paper any more",
        claims="\n".join(list_claims(catalogue, run, scale)) or "- none",
        calls=format_calls(spec.kind),
        hints=format_hints(spec),
        protocol=spec.protocol,
        scores=format_card_scores(scores, published.get(run.variant_key, [])),
        commit=format_commit(record),
        machine=format_machine(record),
        parameters=training["parameters"],
        steps=training["steps"],
        best_step=training["best_step"],
        weights=manifest.weights_sha256,
        origins="\n".join(origins),
    )


def list_papers(catalogue: Catalogue, run: Run, scale: str) -> Iterator[str]:
    """Yield a line for each paper that asks for the run."""
    for paper in catalogue.papers.values():
        variants: set[VariantKey] = set()
        for experiment in paper.experiments.list_at(scale):
            variants.update(experiment.list_variants())
        if run.variant_key in variants:
            yield f"- {paper.experiments.title} ({paper.experiments.citation})"


def list_claims(catalogue: Catalogue, run: Run, scale: str) -> Iterator[str]:
    """Yield a line for each primary claim that is judged on the run."""
    for paper, planned in list_decided_claims(catalogue, run, scale):
        yield f"- {paper}: `{planned.name}`"


def format_calls(kind: str) -> str:
    """Format the calls that load the model and predict with it."""
    calls = "model = checkpoint.load_model()"
    if kind in INPUTS:
        calls += f"\ncheckpoint.predict(model, {INPUTS[kind]}"
    return calls


def format_hints(spec: RunSpec) -> str:
    """Format what else reads a causal language model, and what its prompts are."""
    hints = ""
    if spec.kind in CAUSAL:
        hints += "`AutoModelForCausalLM` of transformers reads the folder, too.\n"
    settings = spec.model.settings
    if spec.kind == "prompt" and isinstance(settings, CausalSettings):
        hints += f"A prompt is `{settings.template}`, and the next token is the answer.\n"
    return hints


def format_commit(record: dict[str, Any]) -> str:
    """Format the commit that trained a run, and whether its files were changed."""
    if not record["commit"]:
        return "unknown"
    commit = f"`{record['commit']}`"
    if record["dirty"]:
        commit += ", which was changed"
    return commit


def format_machine(record: dict[str, Any]) -> str:
    """Format the device and the version of torch of a training; empty if they are not recorded."""
    device = record.get("device_name") or record.get("device")
    torch = record.get("versions", {}).get("torch")
    if not device or not torch:
        return ""
    return f", on {device} ({record['device']}) with torch {torch}"


def format_card_scores(scores: list[Score], published: list[PublishedCell]) -> str:
    """Format the scores of whole splits, and those that a paper prints, as a table.

    Published numbers are in its last column.
    """
    # Each number once, in the order of the papers.
    published_numbers: dict[Score, dict[str, None]] = {score: {} for score in scores}
    for cell in published:
        for score in select_scores(scores, cell.selection):
            published_numbers[score][f"{cell.printed} ({cell.place})"] = None
    lines = [f"| {' | '.join(COLUMNS)} | this run | published |", "|---" * (len(COLUMNS) + 2) + "|"]
    for score in scores:
        if not published_numbers[score] and score.subset not in (None, "all"):
            continue
        names = [getattr(score, column) or "" for column in COLUMNS]
        texts = [*names, f"{score.value:.2f} {score.unit}", "; ".join(published_numbers[score])]
        escaped = [text.replace("|", "\\|") for text in texts]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)


def list_origins(results: Path, spec: RunSpec) -> Iterator[str]:
    """Yield a line, with the licence, for each source of a run's data and initial weights."""
    task = spec.task
    notes = read_mapping(ScaleFolder(results).data(task).manifest, "notes")["notes"]
    sources = select_sources(spec.data.sources if spec.data else [], load_sources())
    datasets = dict.fromkeys(
        (source.name.split("/")[0], source.citation, source.licence) for source in sources
    )
    for dataset, citation, licence in datasets:
        yield f"- {task}: {dataset} ({citation}), licence: {licence}"
    if not sources:
        notes = ["no source files", *notes]
    yield f"- {task}: {'; '.join(notes)}"
    if isinstance(spec.origin, HubModel):
        licence = load_repositories()[spec.origin.hub].licence
        yield f"- initial weights: {spec.origin.hub} at {spec.origin.revision}, licence: {licence}"
    if isinstance(spec.origin, ParentRun):
        parent = ScaleFolder(results).run(spec.origin.run)
        yield from list_origins(results, read_run(parent.path).spec)
