"""The arguments of Snakemake, changed."""

import pytest

from workflow_scripts.workflow.snakemake_call import (
    drop_force_words,
    format_own_call,
    parse_call,
    set_config_value,
)


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


@pytest.mark.parametrize(
    ("target", "scale"),
    [
        ("results/full/claims.csv", "full"),
        ("results/downloads/scan/tasks.txt", "demo"),
        ("results/smal/claims.csv", "demo"),  # which Snakemake refuses with its path
        ("results/", "demo"),
    ],
)
def test_a_target_chooses_a_scale_that_there_is(target: str, scale: str):
    assert parse_call(["--cores", "1", target]).config.scale == scale


@pytest.mark.parametrize(
    ("words", "options", "targets"),
    [
        (
            "--config scale=full --nolock downloads",
            "--config scale=full --nolock",
            "downloads",
        ),
        ("--cores 1 -- downloads runs", "--cores 1", "downloads runs"),
        (
            "--cores 1 --until train --nolock train",
            "--cores 1 --until train --nolock",
            "train",
        ),
        ("--cores 1", "--cores 1", ""),
    ],
)
def test_targets_are_told_from_the_words_of_options(words: str, options: str, targets: str):
    """So that an option can be left out, and no target becomes a word of the option before it."""
    call = parse_call(words.split())
    assert (call.options, call.targets) == (options.split(), targets.split())
    expected = [*call.options, "--", *call.targets] if targets else call.options
    assert call.arguments == expected
    without_option = [word for word in call.arguments if word != "--nolock"]
    assert parse_call(without_option).targets == call.targets


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--logger=terminal"], "./reproduce"),
        (
            ["--config", "papers=[]", "papers=[mine]", "--logger=terminal"],
            "./reproduce --papers mine",
        ),
        (
            [
                "--config",
                "scale=[]",
                "scale=small",
                "papers=[a,b]",
                "--logger=terminal",
                "downloads",
            ],
            "./reproduce downloads --scale small --papers a b",
        ),
        (
            ["--config", "claims=[mine/x]", "extra=true", "--logger=terminal", "-k", "--", "f"],
            "./reproduce -k --claim mine/x --config extra=true -- f",
        ),
        (["--config", "seeds=[1, 2]"], "./reproduce --config 'seeds=[1, 2]'"),
    ],
)
def test_a_call_is_told_in_the_words_of_its_user(words: list[str], expected: str):
    assert format_own_call(words) == expected
