"""Start the jobs that primary claims rest on before all others."""

from typing import Any

from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.workflow.snakemake_job import RUN_RULES
from workflow_scripts.workflow.wildcards import read_run_name


def rank_primary_variants(catalogue: Catalogue, config: Config) -> dict[VariantKey, int]:
    """Return variant -> place of the first primary claim that it decides, in the papers' order.

    Where the configuration names claims, only these count.
    """
    numbers: dict[VariantKey, int] = {}
    count = 0
    for key in config.papers:
        paper = catalogue.papers[key]
        for planned in paper.list_primary_claims():
            if config.claims and f"{key}/{planned.name}" not in config.claims:
                continue
            for variant in paper.list_deciding_variants(planned.entry):
                numbers.setdefault(variant, count)
            count += 1
    return numbers


def set_priorities(dag: Any, catalogue: Catalogue, config: Config) -> None:
    """Give the highest priority to the jobs on runs that decide primary claims.

    dag: Snakemake's graph of jobs. What these jobs need, such as data and initial weights, gets the
    priority, too. Files that --prioritize names keep theirs.
    """
    variants = rank_primary_variants(catalogue, config)
    files = set(dag.priorityfiles)
    for job in dag.needrun_jobs():
        if job.rule.name not in RUN_RULES:
            continue
        if read_run_name(job.wildcards_dict).variant_key in variants:
            files.update(job.output)
    dag.priorityfiles = files
    dag.update_priority()
