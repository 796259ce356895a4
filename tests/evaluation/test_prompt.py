"""When an answer to a prompt counts as right."""

import numpy as np
from tokenizers import Tokenizer, decoders, models

from workflow_scripts.evaluation.prompt import matches, token_texts


def test_an_answer_is_right_as_a_token_or_by_its_text(tmp_path):
    """By its text without the space before it and whatever its case, as the official code reads sentiments."""
    tokens = ["positive", "Ġpositive", "ĠPositive", "negative", "posit", "Ġ"]
    tokenizer = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, "posit"))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    texts = token_texts(tmp_path)
    assert texts.tolist() == ["positive", "positive", "Positive", "negative", "posit", ""]
    written, label = np.arange(6), np.zeros(6, int)
    assert matches(written, label, texts, "token").tolist() == [True, False, False, False, False, False]
    assert matches(written, label, texts, "text").tolist() == [True, True, True, False, False, False]
