"""When an answer to a prompt counts as right."""

import numpy as np
from tokenizers import Tokenizer, decoders, models

from workflow_scripts.models.causal_lm.model import Settings, build
from workflow_scripts.tasks.prompt.scoring import decode_vocabulary, matches


def test_an_answer_is_right_as_a_token_or_by_its_text(tmp_path):
    """By its text without the space before it and whatever its case, as the official code reads
    sentiments.
    """
    tokens = ["positive", "Ġpositive", "ĠPositive", "negative", "posit", "Ġ"]
    tokenizer = Tokenizer(
        models.WordLevel({token: number for number, token in enumerate(tokens)}, "posit")
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    # The last two rows of the model's embeddings belong to no token, as in Qwen2.5.
    model = build(
        Settings(**{"family": "qwen2", "layers": 1, "heads": 2, "width": 8, "feed_forward": 8}), 8
    )
    texts = decode_vocabulary(tmp_path, model)
    assert texts.tolist() == ["positive", "positive", "Positive", "negative", "posit", "", "", ""]
    written, label = np.arange(8), np.zeros(8, int)
    assert matches(written, label, texts, "token").tolist() == [True] + 7 * [False]
    assert matches(written, label, texts, "text").tolist() == 3 * [True] + 5 * [False]
