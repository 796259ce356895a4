"""Paths of results, relative to results/<scale>/.

The rules write these paths out; all other code uses this module.
"""

from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.common.run_names import Run, VariantKey

RESULTS = Path("results")
DOWNLOADS = RESULTS / "downloads"  # shared by all scales

# For each rule, in the order in which data flow: the record of how a result was made.
RECORDS = {
    "fetch": "results/downloads/{source}.json",
    "fetch_model": "results/downloads/models/{model}/model.json",
    "prepare": "results/{scale}/data/{task}/record.json",
    "candidates": "results/{scale}/candidates/{task}/record.json",
    "search": "results/{scale}/search/{task}/{method}/{variant}/record.json",
    "train": "results/{scale}/runs/{task}/{method}/{variant}/{seed}/record.json",
    "evaluate": "results/{scale}/runs/{task}/{method}/{variant}/{seed}/eval/record.json",
    "intervene": "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/record.json",
    "analyse": "results/{scale}/analyses/{paper}/{analysis}/record.json",
    "table": "results/{scale}/tables/{paper}/{display}.json",
    "figure": "results/{scale}/figures/{paper}/{display}.json",
    "claims": "results/{scale}/claims.json",
}


def run_spec_file(run: Run) -> str:
    """Return the file with what the jobs of a run are given."""
    return f"specs/{run}.json"


def search_spec_file(variant: VariantKey) -> str:
    """Return the file with what the search before the trainings of a variant is given."""
    return f"specs/{variant}/search.json"


def data_spec_file(task: str) -> str:
    """Return the file with the data spec of a task."""
    return f"specs/data/{task}.json"


def candidate_spec_file(task: str) -> str:
    """Return the file with the spec of the synonym candidates of a task."""
    return f"specs/candidates/{task}.json"


def analysis_spec_file(paper: str, analysis: str) -> str:
    """Return the file with what the job of an analysis is given."""
    return f"specs/analyses/{paper}/{analysis}.json"


def data_folder(task: str) -> str:
    """Return the folder of the prepared data of a task."""
    return f"data/{task}"


def run_folder(run: Run) -> str:
    """Return the folder of a run."""
    return f"runs/{run}"


def manifest_file(run: Run) -> str:
    """Return the manifest of a training, or of an evaluation of given weights."""
    if run.weights:
        return f"{evaluation_folder(run)}/evaluation.json"
    return f"{run_folder(run)}/run.json"


def evaluation_folder(run: Run) -> str:
    """Return the folder of the evaluation of a run."""
    return f"runs/{run}/eval"


def intervention_folder(run: Run) -> str:
    """Return the folder of the interventions on a run."""
    return f"runs/{run}/interventions"


def candidate_folder(task: str) -> str:
    """Return the folder of the synonym candidates of a task."""
    return f"candidates/{task}"


def search_folder(variant: VariantKey) -> str:
    """Return the folder of the hyperparameter search of a variant."""
    return f"search/{variant}"


def analysis_folder(paper: str, analysis: str) -> str:
    """Return the folder of an analysis."""
    return f"analyses/{paper}/{analysis}"


def display_file(kind: str, paper: str, display: str, ending: str = "csv") -> str:
    """Return a file of a table or figure."""
    return f"{kind}s/{paper}/{display}.{ending}"


def locate_downloads(sources: Iterable[str]) -> list[str]:
    """Return the paths to which files of sources.yaml are downloaded, of the whole project."""
    return [f"{DOWNLOADS}/{source}" for source in sources]


def locate_manifests(files: Iterable[str]) -> list[str]:
    """Return the manifest of each downloaded file."""
    return [f"{file}.json" for file in files]
