"""Which runs papers, tables and claims need, and which claims a budget affords."""

import itertools
import random

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.workflow.cost_groups import (
    CostGroup,
    choose_claims,
    find_cost_groups,
    list_cost_groups,
)
from workflow_scripts.workflow.gpu_hours import HoursRange
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.targets import list_wildcards


def make_config(*papers: str):
    return load_config({"scale": "full", "papers": list(papers) or list(load_catalogue().papers)})


def make_run(number: int) -> Run:
    return Run("task", "method", "variant", number)


def make_claim(name: str, numbers: tuple[int, ...], kind: str = "paper") -> CostGroup:
    runs = frozenset(map(make_run, numbers))
    jobs = tuple(SnakemakeJob("train", list_wildcards(run)) for run in runs)
    return CostGroup(name, kind, runs, jobs)


def make_estimate(hours: dict[int, float]):
    """An estimate by which the run with seed n takes hours[n], at the upper end."""

    def estimate(job: SnakemakeJob) -> HoursRange:
        assert job.run
        return HoursRange(hours[job.run.seed] / 2, hours[job.run.seed])

    return estimate


def sum_by_hand(groups, hours: dict[int, float]) -> float:
    """The hours of the runs of some claims, each run once."""
    return sum(hours[run.seed] for run in frozenset().union(*(group.runs for group in groups)))


def test_runs_that_claims_share_count_once_and_primary_claims_come_first():
    hours = {1: 10.0, 2: 1.0, 3: 4.0, 4: 100.0}
    cheap, shared = make_claim("a/cheap", (2,)), make_claim("a/shared", (1, 2, 3))
    primary, large = make_claim("a/primary", (1, 2), "primary"), make_claim("a/large", (4,))
    chosen = choose_claims([cheap, shared, large, primary], make_estimate(hours), 20)
    shown = [(entry.group.name, entry.added.upper, entry.total.upper) for entry in chosen]
    assert shown == [("a/primary", 11, 11), ("a/cheap", 0, 11), ("a/shared", 4, 15)]
    assert chosen[0].added == HoursRange(5.5, 11)


@pytest.mark.parametrize("seed", range(20))
def test_a_choice_fits_and_nothing_more_fits(seed: int):
    rng = random.Random(seed)
    hours = {number: rng.choice([1.0, 2.0, 5.0, 13.0]) for number in range(9)}
    kinds = ("primary", "paper", "control")
    groups = []
    for number in range(8):
        runs = tuple(rng.sample(range(9), rng.randint(1, 4)))
        groups.append(make_claim(f"a/{number}", runs, rng.choice(kinds)))
    budget = rng.uniform(0, 40)
    chosen = choose_claims(groups, make_estimate(hours), budget)
    names = [entry.group.name for entry in chosen]
    taken = [group for group in groups if group.name in names]
    assert len(set(names)) == len(names)
    assert sum(entry.added.upper for entry in chosen) == pytest.approx(sum_by_hand(taken, hours))
    assert sum_by_hand(taken, hours) <= budget
    for group in groups:
        if group.name not in names:
            assert sum_by_hand([*taken, group], hours) > budget
    order = [kinds.index(entry.group.kind) for entry in chosen]
    assert order == sorted(order)


@pytest.mark.parametrize("seed", range(10))
def test_of_claims_that_share_no_run_as_many_as_possible_are_chosen(seed: int):
    rng = random.Random(seed)
    hours = {number: rng.uniform(1, 10) for number in range(7)}
    groups = [make_claim(f"a/{number}", (number,)) for number in range(7)]
    budget = rng.uniform(5, 30)
    most = max(
        size
        for size in range(8)
        for some in itertools.combinations(groups, size)
        if sum_by_hand(some, hours) <= budget
    )
    assert len(choose_claims(groups, make_estimate(hours), budget)) == most


def test_groups_are_found_by_name():
    catalogue, config = load_catalogue(), make_config()
    names = ("cat", "cat/table2", "cat/comp-over-bert-bird")
    paper, table, claim = find_cost_groups(catalogue, config, names)
    assert (paper.kind, table.kind, claim.kind) == ("paper", "table", "primary")
    assert claim.runs < table.runs | claim.runs <= paper.runs
    pretrainings = {run for run in claim.runs if run.task == "wikipedia-bookcorpus"}
    assert {run.method for run in pretrainings} == {"bert", "cat"}
    assert claim.runs == frozenset(
        list_requested_runs(
            catalogue,
            make_config("cat").model_copy(update={"claims": ["cat/comp-over-bert-bird"]}),
        )
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("dog", "no paper 'dog'"),
        ("figure2b", "no paper 'figure2b' in papers/; did you mean 'carma/figure2b'?"),
        ("sal-success-addjump", "; did you mean 'sq_transformer/sal-success-addjump'?"),
        ("cat/tabel2", "no table, figure or claim 'tabel2'; did you mean 'table2'?"),
        ("sq_transformer/sal-official-above-transformer-addjump", "is not measured at full"),
    ],
)
def test_other_names_are_refused_in_one_line(name: str, problem: str):
    with pytest.raises(UserError, match=problem):
        find_cost_groups(load_catalogue(), make_config(), [name])


def test_tables_and_claims_of_a_paper_need_its_runs_and_no_others():
    catalogue, config = load_catalogue(), make_config("lrf")
    (paper,) = list_cost_groups(catalogue, config, "paper")
    for by in ("table", "claim"):
        groups = list_cost_groups(catalogue, config, by)
        assert len(groups) > 3
        assert all(group.runs <= paper.runs for group in groups)
    claims = list_cost_groups(catalogue, config, "claim")
    kinds = [group.kind for group in claims]
    assert kinds == sorted(kinds, key=["primary", "paper", "control"].index)
    assert len({group.name for group in claims}) == len(claims)
