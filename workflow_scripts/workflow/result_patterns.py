"""The results of each rule, with the wildcards of the rule as names."""

from pathlib import Path

from workflow_scripts.common.result_folders import DOWNLOADS, RESULTS

VARIANT_NAME = "{task}/{method}/{variant}"
RUN_NAME = f"{VARIANT_NAME}/{{seed}}"

SOURCE = DOWNLOADS.source("{source}")
HUB_MODEL = DOWNLOADS.model("{model}")

SCALE = RESULTS.scale("{scale}")
DATA = SCALE.data("{task}")
CANDIDATES = SCALE.candidates("{task}")
SEARCH = SCALE.search(VARIANT_NAME)
TRAINING = SCALE.run(RUN_NAME)
EVALUATION = TRAINING.evaluation
INTERVENTIONS = TRAINING.interventions
ANALYSIS = SCALE.analysis("{paper}", "{analysis}")
TABLE = SCALE.table("{paper}", "{display}")
FIGURE = SCALE.figure("{paper}", "{display}")
CLAIM = SCALE.claim("{paper}", "{claim}")

# Rule -> the stage of which it does some jobs: those on large data, and on files that are there.
# The other rules have the names of their stages.
STAGES = {"prepare_large": "prepare", "fetch_again": "fetch"}

# Stage -> the record of how its result was made, or the manifest of a download. The stages are in
# the order in which data flow.
RECORDS: dict[str, Path] = {
    "fetch": SOURCE.manifest,
    "fetch_model": HUB_MODEL.manifest,
    "prepare": DATA.record,
    "candidates": CANDIDATES.record,
    "search": SEARCH.record,
    "train": TRAINING.record,
    "evaluate": EVALUATION.record,
    "intervene": INTERVENTIONS.record,
    "analyse": ANALYSIS.record,
    "table": TABLE.record,
    "figure": FIGURE.record,
    "claims": SCALE.claims.record,
    "claim": CLAIM.record,
}

# Stage -> the folder of its result. Its `names` are those of the files that the job writes; the
# folder of a run has those of its scores, too.
FOLDERS = {
    "prepare": DATA,
    "candidates": CANDIDATES,
    "search": SEARCH,
    "train": TRAINING,
    "evaluate": EVALUATION,
    "intervene": INTERVENTIONS,
    "analyse": ANALYSIS,
}

# Stage -> the files of its result that stay. Weights, data and downloads may be deleted.
KEPT_FILES: dict[str, list[Path]] = {
    "prepare": [DATA.manifest],
    "candidates": [CANDIDATES.words, CANDIDATES.manifest],
    "search": [SEARCH.chosen, SEARCH.pairs],
    "train": [TRAINING.curve, TRAINING.manifest],
    "evaluate": [EVALUATION.predictions, EVALUATION.scores, EVALUATION.manifest],
    "intervene": [INTERVENTIONS.scores, INTERVENTIONS.answers, INTERVENTIONS.manifest],
    "analyse": [ANALYSIS.scores, ANALYSIS.manifest],
    "table": TABLE.files,
    "figure": FIGURE.files,
    "claims": [*SCALE.claims.files, SCALE.claims.overview],
    "claim": CLAIM.files,
}


def get_stage(rule: str) -> str:
    """Return the stage of a rule; the rules of one stage run the same command."""
    return STAGES.get(rule, rule)


def locate_record(stage: str, wildcards: dict[str, str]) -> Path:
    """Return the record of a job of a stage; the values of the wildcards may be patterns."""
    return Path(str(RECORDS[stage]).format(**wildcards))
