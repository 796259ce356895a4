"""What is said of a target that no rule makes."""

from pathlib import Path

import pytest

from tests.config.copies import copy_project
from workflow_scripts.workflow.missing_targets import (
    GENERAL_ADVICE,
    describe_missing_target,
    find_missing_target,
)

RUN = "scan-jump/transformer/default/seed-1"
SCORES = f"runs/{RUN}/eval/scores.csv"


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        (RUN, f"the scores of a run, which train it first, are results/SCALE/{SCORES}"),
        (f"results/small/runs/{RUN}", f"are results/small/{SCORES}"),
        (f"results/small/runs/{RUN}/scores.csv", f"are results/small/{SCORES}"),
        ("scan-jmp/transformer/default/seed-1", "no task 'scan-jmp' in catalogue/; did you mean"),
        ("results/small/runs/scan-jump/transformr/default/seed-1/run.json", "'transformer'?"),
        ("results/smal/claims.csv", "no scale 'smal'; did you mean 'small'?"),
        ("results/demo/tables/sq_transformer/table11.csv", "did you mean 'table1'?"),
        ("results/demo/tables/sq_transformr/table1.csv", "did you mean 'sq_transformer'?"),
        (
            "results/demo/tables/lrf/table2.csv",
            "; lrf has no table 'table2'; did you mean 'table-cfq'?",
        ),
        (
            "results/demo/figures/lrf/figure2.svg",
            "; lrf has no figure 'figure2'; none are known here",
        ),
        (
            "results/demo/tables/carma/figure2b.csv",
            "; figure2b of carma is a figure: results/demo/figures/carma/figure2b.svg",
        ),
        ("cat", "a paper is --papers cat"),
        ("sal-success-addjump", "; did you mean 'sq_transformer/sal-success-addjump'?"),
        ("cat/table2", "a table is results/SCALE/tables/cat/table2.csv"),
        ("cat/mix-over-bert-bird", "a claim is --claim cat/mix-over-bert-bird"),
        ("cat/mix-over-bert-brid", "did you mean 'mix-over-bert-bird'?"),
        ("nothing.txt", GENERAL_ADVICE),
        ("results/small/nothing.txt", GENERAL_ADVICE),
        ("a/b", GENERAL_ADVICE),
    ],
)
def test_the_advice_is_what_was_probably_meant(target, advice):
    text = describe_missing_target(target)
    assert text.startswith(f"no rule makes {target}; ")
    assert text.endswith(advice) or advice in text
    assert "\n" not in text


def test_a_download_that_is_there_is_checked_by_its_manifest(tmp_path, monkeypatch):
    monkeypatch.chdir(copy_project(tmp_path))
    file = Path("results/downloads/wordnet/COPYRIGHT")
    assert describe_missing_target(str(file)).endswith(GENERAL_ADVICE)
    file.parent.mkdir(parents=True)
    file.touch()
    text = describe_missing_target(str(file))
    assert text.endswith(f"the file is there, and {file}.json checks it")


def test_a_figure_is_a_picture():
    text = describe_missing_target("carma/figure2b")
    assert text.endswith("a figure is results/SCALE/figures/carma/figure2b.svg")


def test_a_folder_without_a_catalogue_has_general_advice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert describe_missing_target(RUN) == f"no rule makes {RUN}; {GENERAL_ADVICE}"


def test_the_target_is_read_from_the_message_of_snakemake():
    message = "MissingRuleException:\nNo rule to produce a b.csv (if you use input functions make"
    assert find_missing_target(message) == "a b.csv"
    assert find_missing_target("another error") is None
