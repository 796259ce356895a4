import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workflow_scripts.analyses import neighbours
from workflow_scripts.analyses.embedding_space import make_word_table, project_tsne
from workflow_scripts.analyses.neighbours import find_nearest_rows
from workflow_scripts.analyses.options.neighbours import Options


@given(
    arrays(np.float64, (9, 3), elements=st.integers(-3, 3)), st.integers(0, 8), st.integers(1, 8)
)
def test_nearest_rows_agree_with_brute_force(points: np.ndarray, row: int, k: int) -> None:
    others = [other for other in range(len(points)) if other != row]
    expected = sorted(others, key=lambda other: (((points[other] - points[row]) ** 2).sum(), other))
    assert find_nearest_rows(points, row, k).tolist() == expected[:k]


def test_neighbours_of_a_run(plain) -> None:
    options = Options(words=["jump", "left", "no-such-word"], k=3, classes="scan", seed=1)
    found = neighbours.analyse([plain], options)
    table = found.files["neighbours"]
    assert table.groupby("word")["rank"].apply(list).to_dict() == {
        "jump": [1, 2, 3],
        "left": [1, 2, 3],
    }
    words, vectors = make_word_table(plain, "scan")
    words["x"], words["y"] = project_tsne(vectors, 1).T
    real = words[words["word"] != "</s>"].reset_index(drop=True)
    jump = real[real["word"] == "jump"].iloc[0]
    real["distance"] = np.hypot(real["x"] - jump["x"], real["y"] - jump["y"])
    expected = real[real["word"] != "jump"].nsmallest(3, "distance")
    mine = table[table["word"] == "jump"]
    assert mine["neighbour"].tolist() == expected["word"].tolist()
    assert mine["neighbour_class"].tolist() == expected["class"].tolist()
    np.testing.assert_allclose(mine["distance"], expected["distance"], rtol=1e-5)


def test_share_of_neighbours_of_the_same_class(trained) -> None:
    run = trained("cogs/transformer/default")
    found = neighbours.analyse([run], Options(k=2, classes="cogs"))
    words, vectors = make_word_table(run, "cogs")
    keep = (words["word"] != "</s>").to_numpy()
    of_class, points = words["class"].to_numpy()[keep], project_tsne(vectors, 0)[keep].astype(float)
    same = []
    for row in range(len(points)):
        order = np.argsort(((points - points[row]) ** 2).sum(-1), kind="stable")
        same += [of_class[other] == of_class[row] for other in order if other != row][:2]
    (score,) = found.scores
    assert (score.value, score.n) == (pytest.approx(100 * np.mean(same)), len(points))
    classes = found.files["classes"]
    assert (
        classes[["word", "class"]].to_numpy().tolist()
        == words[["word", "class"]].to_numpy().tolist()
    )
