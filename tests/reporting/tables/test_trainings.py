"""What a table says of its trainings."""

import pytest

from workflow_scripts.reporting.tables.trainings import describe_precision


@pytest.mark.parametrize(
    ("precisions", "said"),
    [
        ({}, []),
        ({"default": {"bf16"}}, ["Trained in bf16."]),
        ({"default": {"bf16"}, "plain": {"fp32"}}, ["Precision differs: default in bf16, plain in fp32."]),
    ],
)
def test_precision_is_said_and_that_it_differs(precisions, said):
    assert describe_precision([{"name": name, "precisions": found} for name, found in precisions.items()]) == said
