"""The trainings whose scores a table shows, and what to know of them and their data."""

from collections.abc import Iterable
from dataclasses import dataclass

from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.specs import find_parent_run, list_ancestors, read_precision
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.tables.cells import MEASURED, Cell


@dataclass(frozen=True)
class TrainedVariant:
    """The trainings of a variant. Steps and parameters are those of one of them."""

    variant_key: VariantKey
    seeds: list[int]
    steps: int
    parameters: int
    protocol: str
    precisions: frozenset[str]


def summarise_trainings(results: PaperResults, runs: Iterable[Run]) -> list[TrainedVariant]:
    """Summarise the trainings of `runs` by variant, from run.json.

    Given weights count as the runs that trained them; models of the hub have none. Raises UserError
    without a run.json.
    """
    by_variant: dict[VariantKey, dict[Run, None]] = {}
    for run in runs:
        training: Run | None = run
        if run.weights:
            training = find_parent_run(results.catalogue, run, results.scale)
        if training is not None:
            by_variant.setdefault(training.variant_key, {})[training] = None
    return [
        _summarise_variant(variant, list(trainings), results.folder)
        for variant, trainings in by_variant.items()
    ]


def _summarise_variant(
    variant: VariantKey, trainings: list[Run], folder: ScaleFolder
) -> TrainedVariant:
    """Summarise the trainings of one variant; steps and parameters are those of the first."""
    manifests = [read_json(folder.run(run).manifest) for run in trainings]
    return TrainedVariant(
        variant_key=variant,
        seeds=sorted(run.seed for run in trainings),
        steps=manifests[0]["steps"],
        parameters=manifests[0]["parameters"],
        protocol=find_worst_protocol(*(manifest["protocol"] for manifest in manifests)),
        precisions=frozenset(read_precision(manifest["spec"]) for manifest in manifests),
    )


def describe_reduced_data(results: PaperResults, cells: Iterable[Cell]) -> list[str]:
    """Describe the real data sets of measured cells that differ from the paper's.

    Those on which models were trained before are among them.
    """
    tasks: dict[str, None] = {}
    runs: dict[Run, None] = {}  # one of each variant: all seeds have the same data
    for cell in cells:
        if cell.status != MEASURED:
            continue
        if cell.selection.task is not None:
            tasks[cell.selection.task] = None
        if cell.selection.is_of_runs:
            runs[cell.variant_key.make_run(min(cell.seeds))] = None
    for run in list_ancestors(results.catalogue, runs, results.scale):
        tasks[run.task] = None
    sentences = []
    for task in tasks:
        manifest = results.folder.data(task).manifest
        if not manifest.exists():
            continue
        dataset = read_json(manifest)
        if dataset["protocol"] == "reduced" and dataset["notes"]:
            title = results.catalogue.tasks[task].title
            sentences.append(f"Data of {title}, protocol reduced: {'; '.join(dataset['notes'])}.")
    return sentences


def describe_precision(trained: Iterable[TrainedVariant]) -> list[str]:
    """Return one sentence, such as `Trained in bf16.`, or no sentence without trainings.

    Where precisions differ, the sentence names that of each variant.
    """
    pairs: list[tuple[str, VariantKey]] = []  # (precision, variant)
    for variant in trained:
        pairs += [(precision, variant.variant_key) for precision in variant.precisions]
    precisions = {precision for precision, _ in pairs}
    if not precisions:
        return []
    if len(precisions) == 1:
        (precision,) = precisions
        return [f"Trained in {precision}."]
    variants = [f"{variant} in {precision}" for precision, variant in sorted(pairs)]
    return [f"Precision differs: {', '.join(variants)}."]
