from pathlib import Path

import numpy as np
import pytest

from tests.analyses.small_runs import ROOT
from workflow_scripts.analyses import head_agreement
from workflow_scripts.analyses.embedding_space import assign_codes
from workflow_scripts.analyses.head_agreement import compute_agreement
from workflow_scripts.analyses.options.head_agreement import CodeRun, Options
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.sources.archives import read_text_lines
from workflow_scripts.evaluation.published_numbers import read_published


def test_agreement_worked_by_hand() -> None:
    # One layer, two heads, two queries: three of the four largest weights are on the same key.
    first = np.array([[[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]]])
    second = np.array([[[[0.7, 0.3], [0.6, 0.4]], [[0.51, 0.49], [1.0, 0.0]]]])
    assert compute_agreement(first, second) == 0.75
    # The size of the weights does not matter.
    first = np.array([[[[0.4, 0.3, 0.3]]]])
    assert compute_agreement(first, np.array([[[[1.0, 0.0, 0.0]]]])) == 1
    assert compute_agreement(first, np.array([[[[0.33, 0.34, 0.33]]]])) == 0


def test_pairs_that_are_given_by_their_rows(trained) -> None:
    run = trained("cognition/transformer/default")
    sources = run.read_pairs("cg_test")["source"].tolist()
    lengths = [len(source.split()) for source in sources]
    same = next(row for row in range(1, len(sources)) if lengths[row] == lengths[0])
    other = next(row for row in range(1, len(sources)) if lengths[row] != lengths[0])
    rows = [[0, same], [0, other], [0, 0], [3, len(sources)]]
    found = head_agreement.analyse([run], Options(rows=rows, split="cg_test"))
    pairs = found.files["pairs"]
    assert pairs[["first", "second"]].to_numpy().tolist() == [
        [sources[0], sources[same]],
        [sources[0]] * 2,
    ]
    assert pairs["agreement"].tolist()[1] == 100
    (scored,) = found.scores
    assert (scored.metric, scored.n) == ("head_agreement_printed", 2)
    assert scored.value == pytest.approx(pairs["agreement"].mean())
    assert pairs["pair"].tolist() == [1, 3]
    assert "2 of 4 pairs" in found.notes[0]


def test_whether_our_codes_are_one_sequence_too(trained) -> None:
    names = ("transformer/default", "sq-transformer/srl")
    runs = [trained(f"cognition/{name}") for name in names]
    model, words = runs[1].load()
    code = dict(zip(words, assign_codes(model, "source", range(len(words))), strict=True))
    sources = runs[0].read_pairs("cg_test")["source"].tolist()
    rows = [[0, row] for row in range(60) if len(sources[row].split()) == len(sources[0].split())]
    coder = CodeRun(method="sq-transformer", variant="srl")
    options = Options(rows=rows, codes_from=coder, split="cg_test")
    found = head_agreement.analyse(runs, options)
    expected = [
        [code[w] for w in sources[0].split()] == [code[w] for w in sources[row].split()]
        for _, row in rows
    ]
    assert len(rows) > 2 and expected[0] and not all(expected)
    pairs = found.files["pairs"]
    for run in runs:
        assert pairs.loc[pairs["method"] == run.method, "same_codes"].tolist() == expected
    shares = [row for row in found.scores if row.metric == "printed_same_codes"]
    assert [(row.method, row.n) for row in shares] == [("sq-transformer", len(rows))]
    assert shares[0].value == pytest.approx(100 * sum(expected) / len(rows))


def test_the_papers_pairs_are_rows_of_the_real_test_set(mirror: Path) -> None:
    lines = [
        " ".join(line.split()) for line in read_text_lines(mirror / "cognition/cg-test_cg-test.en")
    ]
    options = (
        load_catalogue(ROOT).papers["sq_transformer"].analyses["head-agreement-cognition"].options
    )
    rows = parse_as(Options, options, "displays.yaml").rows
    assert len(rows) == 48
    first, second = (lines[row] for row in rows[0])
    assert (first, second) == (
        "she chose another child he liked .",
        "she chose another clown he liked .",
    )
    published = read_published(ROOT / "papers/sq_transformer/published.csv")
    for number, pair in enumerate(rows, start=1):
        for side, row in enumerate(pair, start=1):
            assert (
                published["table6", str(number), f"Sentence {side}", "sentence"].printed.lower()
                == lines[row]
            )
    words = {word for line in lines for word in line.split()}
    assert len(head_agreement.select_pairs(lines, rows, words)) == 46
