"""Which runs are started first. That their jobs are submitted first: tests/slurm/test_submission.py."""

from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.workflow.job_order import rank_primary_variants


def list_tasks(**settings: object) -> list[str]:
    """The tasks of runs that are started first, in their order."""
    config = load_config({"scale": "small", "papers": ["cat", "lrf"], **settings})
    variants = rank_primary_variants(load_catalogue(), config)
    ordered = sorted(variants, key=variants.__getitem__)
    return list(dict.fromkeys(variant.task for variant in ordered))


def test_the_runs_of_all_primary_claims_come_first_claim_by_claim():
    assert list_tasks() == ["bird", "sst2", "cognition", "cognition-compounds"]


def test_where_claims_are_named_only_the_primary_ones_among_them_come_first():
    named = [
        "cat/mix-over-bert-bird",
        "lrf/lrf-over-matched-compounds",
        "lrf/lrf-over-matched-cogs",
    ]
    assert list_tasks(claims=named) == ["bird", "cognition-compounds"]
