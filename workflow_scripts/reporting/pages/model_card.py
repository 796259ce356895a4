"""The README.md of an exported checkpoint: what it is, its scores next to published numbers, and how it was made."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_mapping
from workflow_scripts.config.catalogue import Catalogue, VariantKey, parse_run
from workflow_scripts.config.display_schema import SELECTORS
from workflow_scripts.config.displays import list_run_cells
from workflow_scripts.config.paths import data_folder, evaluation_folder, run_folder
from workflow_scripts.config.requested import list_decided_claims
from workflow_scripts.data.sources.declared import load_repositories, load_sources, select_sources
from workflow_scripts.evaluation.published import read_published
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.reporting.evidence.evidence import select_rows
from workflow_scripts.tasks.checkpoints import read_run
from workflow_scripts.tasks.run_spec import HubModel, ParentRun, RunSpec

PublishedCells = dict[VariantKey, list[tuple[dict[str, Any], str, str]]]
COLUMNS = ("split", "subset", "metric", "readout")
INPUTS = {  # of `predict`, by kind of task
    "seq2seq": '["a sentence, as tokens with spaces between"])',
    "prompt": '["a text"])',
    "sentence_prediction": '["a sentence"])  # of pairs: [("first", "second")]',
    "question_answering": '[("a question", "a paragraph")])',
}


def collect_published_cells(catalogue: Catalogue) -> PublishedCells:
    """Return what the papers print of each variant: the cell's selection of scores, the number, and where it is."""
    found: PublishedCells = defaultdict(list)
    for key, paper in catalogue.papers.items():
        numbers = read_published(catalogue.root / "papers" / key / "published.csv")
        for name, display in paper.displays.items():
            for variant, cell in list_run_cells(display):
                number = numbers.get((name, cell["row"], cell["column"], cell["metric"]))
                if number and "over" not in cell:
                    selection = {name: cell[name] for name in ("metric", *SELECTORS) if name in cell}
                    where = f"{key}: {display['source']}, {cell['row']}, {cell['column']}"
                    found[variant].append((selection, number.printed, where))
    return found


def make_model_card(catalogue: Catalogue, published: PublishedCells, results: Path, name: str) -> str:
    """Return the Markdown for a run of `results`, the folder of its scale. Raises UserError if a file is missing."""
    run, folder = parse_run(catalogue, name), results / run_folder(name)
    manifest, record = read_run(folder), read_mapping(folder / "record.json", "commit", "dirty")
    made = read_mapping(folder / "run.json", "parameters", "steps", "best_step")
    spec, scale, method = manifest.spec, manifest.scale, catalogue.methods[run.method]
    asked = [
        f"- {paper.experiments.title} ({paper.experiments.citation})"
        for paper in catalogue.papers.values()
        if any(run.unseeded in one.list_variants() for one in paper.experiments.list_at(scale))
    ]
    decided = [f"- {paper}: `{planned.name}`" for paper, planned in list_decided_claims(catalogue, run, scale)]
    predict = f"\ncheckpoint.predict(model, {INPUTS[spec.kind]}" if spec.kind in INPUTS else ""
    causal = spec.kind in ("prompt", "language_modelling")
    also = "`AutoModelForCausalLM` of transformers reads the folder, too.\n" * causal
    if spec.kind == "prompt":
        also += f"A prompt is `{spec.model.settings.template}`, and the next token is the answer.\n"
    code = f"`{record['commit']}`{', which was changed' * bool(record['dirty'])}" if record["commit"] else "unknown"
    return f"""---
library_name: {"transformers" if causal else "recompose"}
license: other
tags: [recompose, {run.method}]
---

# {method.title}, {method.variants[run.variant].title}: {catalogue.tasks[run.task].title}

The run `{name}` of Recompose at scale `{scale}` ({catalogue.scales[scale].title}), one seed, trained for tables of

{chr(10).join(asked) or "- no paper any more"}

Primary claims that are judged on this run, among others:

{chr(10).join(decided) or "- none"}

```python
from workflow_scripts.results import read_checkpoint

checkpoint = read_checkpoint("FOLDER")  # this folder
model = checkpoint.load_model(){predict}
```

{also}
## Scores

Protocol `{spec.protocol}`. Published numbers are those that tables show next to such runs: of the papers' own
models and data, over the papers' seeds.

{format_card_scores(read_scores(results / evaluation_folder(name) / "scores.csv"), published.get(run.unseeded, []))}

## Training

    ./reproduce results/{scale}/runs/{name}/run.json

Commit {code}; {made["parameters"]:,} parameters, {made["steps"]:,} steps.
Weights of step {made["best_step"]:,}, sha256 `{manifest.weights_sha256}`.

## Data and their licences

{chr(10).join(dict.fromkeys(list_origins(results, spec)))}
"""


def format_card_scores(rows: list[dict[str, Any]], published: list[tuple[dict[str, Any], str, str]]) -> str:
    """Format the scores of whole splits, and those that a paper prints, as a table with the published numbers."""
    lines = [f"| {' | '.join(COLUMNS)} | this run | published |", "|---" * (len(COLUMNS) + 2) + "|"]
    chosen = [(select_rows(rows, selection), f"{printed} ({where})") for selection, printed, where in published]
    for row in rows:
        numbers = dict.fromkeys(text for found, text in chosen if any(row is one for one in found))
        if numbers or row["subset"] in (None, "all"):
            cells = [*(row[name] or "" for name in COLUMNS), f"{row['value']:.2f} {row['unit']}", "; ".join(numbers)]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def list_origins(results: Path, spec: RunSpec) -> Iterator[str]:
    """Yield a line for each source of a run's data and of the weights that it starts from, with the licence."""
    notes = read_mapping(results / data_folder(spec.task) / "dataset.json", "notes")["notes"]
    sources = select_sources(spec.data.sources if spec.data else [], load_sources())
    for dataset in dict.fromkeys((source.name.split("/")[0], source.licence, source.citation) for source in sources):
        yield f"- {spec.task}: {dataset[0]} ({dataset[2]}), licence: {dataset[1]}"
    yield f"- {spec.task}: {'; '.join(notes if sources else ['no source files', *notes])}"
    if isinstance(spec.origin, HubModel):
        licence = load_repositories()[spec.origin.hub].licence
        yield f"- initial weights: {spec.origin.hub} at {spec.origin.revision}, licence: {licence}"
    if isinstance(spec.origin, ParentRun):
        yield from list_origins(results, read_run(results / run_folder(spec.origin.run)).spec)
