"""What a table says of its trainings."""

import pytest

from workflow_scripts.reporting.tables.trainings import TrainedVariant, describe_precision


@pytest.mark.parametrize(
    ("precisions", "said"),
    [
        ({}, []),
        ({"default": {"bf16"}}, ["Trained in bf16."]),
        (
            {"default": {"bf16"}, "plain": {"fp32"}},
            ["Precision differs: default in bf16, plain in fp32."],
        ),
    ],
)
def test_precision_is_said_and_that_it_differs(precisions, said):
    trained = [
        TrainedVariant(name, [1], 10, 100, "paper", frozenset(found))
        for name, found in precisions.items()
    ]
    assert describe_precision(trained) == said
