import pytest

from workflow_scripts.evaluation.seeds import list_common_seeds


@pytest.mark.parametrize(
    ("scores", "common"),
    [
        ([], []),
        ([[]], []),
        ([[3, 1, 2]], [1, 2, 3]),
        ([{5: 0.5, 1: 0.1, 9: 0.9}, [9, 5, 2], {9, 5}], [5, 9]),
        ([[1, 2], [3]], []),
        ([[1, 2], []], []),
    ],
)
def test_common_seeds_are_those_of_all_scores_lowest_first(scores, common):
    assert list_common_seeds(scores) == common
    assert list_common_seeds(iter(scores)) == common
