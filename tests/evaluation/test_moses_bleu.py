"""BLEU of translations: against values worked out by hand from its definition, and what each of the
two reads.
"""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.measures import parse_measure_options
from workflow_scripts.evaluation.moses_bleu import score_outputs
from workflow_scripts.evaluation.options.moses_bleu import Options

TOKENS = ["The well @-@ known member can &apos;t vote .", "He said : &quot; yes &quot; ."]
TEXTS = ["The well-known member can't vote.", 'He said: "yes".']


@pytest.fixture
def data(tmp_path):
    pq.write_table(
        pa.table({"target_words": TOKENS, "target_text": TEXTS}), tmp_path / "test.parquet"
    )
    pq.write_table(pa.table({"target_words": TOKENS}), tmp_path / "valid.parquet")
    return tmp_path


def scores(outputs, data, split="test", language="en"):
    options = Options(language=language)
    rows = score_outputs(outputs, ["", ""], read_table(data, split), data, options)
    return {row.metric: row.value for row in rows}


def test_the_reference_itself_scores_100(data):
    assert scores(TOKENS, data) == pytest.approx({"bleu_tokenised": 100, "bleu_detokenised": 100})


def test_a_split_without_published_text_has_tokens_alone(data):
    assert scores(TOKENS, data, "valid") == pytest.approx({"bleu_tokenised": 100})


def test_one_wrong_token_by_hand(data):
    """9 + 7 tokens, the fourth of the first sentence wrong: 15/16, 12/14, 9/12 and 6/10 n-grams are
    right.
    """
    outputs = [TOKENS[0].replace("known", "unknown"), TOKENS[1]]
    expected = 100 * (15 / 16 * 12 / 14 * 9 / 12 * 6 / 10) ** 0.25
    assert scores(outputs, data)["bleu_tokenised"] == pytest.approx(expected)


def test_short_outputs_are_punished_by_hand(data):
    """The first 7 of 9 tokens and all 7 others: all n-grams right, brevity penalty exp(1 - 16/14)."""
    outputs = [" ".join(TOKENS[0].split(" ")[:7]), TOKENS[1]]
    assert scores(outputs, data)["bleu_tokenised"] == pytest.approx(100 * math.exp(1 - 16 / 14))


def test_text_is_put_together_as_its_language_writes_it(tmp_path):
    """French has no space after an apostrophe, but one before a question mark."""
    tokens, text = (
        "L&apos; homme vient @-@ il d&apos; ici ou de Paris ?",
        "L'homme vient-il d'ici ou de Paris ?",
    )
    pq.write_table(
        pa.table({"target_words": [tokens], "target_text": [text]}), tmp_path / "test.parquet"
    )
    for language, right in (("fr", True), ("en", False)):
        found = scores([tokens], tmp_path, language=language)
        assert found["bleu_tokenised"] == pytest.approx(100)
        assert (found["bleu_detokenised"] == pytest.approx(100)) == right


def test_an_unknown_language_is_refused():
    with pytest.raises(UserError, match=r"^spec: key 'language' is 'zh'; input should be 'en', "):
        parse_measure_options("moses_bleu", {"language": "zh"}, "spec")
