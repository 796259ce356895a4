"""The arguments of Snakemake, changed."""

import pytest

from workflow_scripts.workflow.snakemake_call import drop_force_words, set_config_value


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--forcerun a b --cores 1 -- a", "--cores 1 -- a"),
        ("-R train --config scale=demo", "--config scale=demo"),
        ("-F --cores 1", "--cores 1"),
        ("--forceall --forcerun=a b", "b"),
        ("-f a", "a"),
        ("--cores 1 -- a b", "--cores 1 -- a b"),
    ],
)
def test_without_what_forces_jobs(words: str, expected: str):
    assert drop_force_words(words.split()) == expected.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--config scale=demo -- a", "--config b=1 scale=demo -- a"),
        ("--cores 1", "--config b=1 --cores 1"),
    ],
)
def test_a_value_is_added_to_the_configuration(words: str, expected: str):
    assert set_config_value(words.split(), "b=1") == expected.split()
