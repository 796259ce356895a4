"""Archives are read without trusting them."""

import json

import pytest

from tests.data.packing import pack
from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.synonym_resources import load_tagger, read_archive_texts


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"any/german": "der"}, "does not contain english"),
        ({"any/english": b"caf\xe9"}, "a file in it is not UTF-8 text"),
    ],
)
def test_a_missing_text_and_bytes_that_are_no_text_are_named(tmp_path, files, message):
    with pytest.raises(UserError, match=f"archive.zip:? {message}; fetch it again$"):
        read_archive_texts(pack(tmp_path / "archive.zip", files), ["english"])


def test_a_tagger_of_the_wrong_form_is_refused(tmp_path):
    name = "averaged_perceptron_tagger_eng"
    for weights in ("not JSON", json.dumps(["a list"])):
        parts = {f"{name}.weights.json": weights, f"{name}.tagdict.json": "{}", f"{name}.classes.json": '["NN"]'}
        with pytest.raises(UserError, match=r"fetch it again$"):
            load_tagger(pack(tmp_path / "tagger.zip", parts))


def test_the_real_stop_words_and_tagger(mirror):
    words = set(read_archive_texts(mirror / "nltk/stopwords.zip", ["english"])["english"].split())
    assert {"the", "you're", "wouldn't"} < words and not {"dog", "der"} & words
    made = load_tagger(mirror / "nltk/averaged_perceptron_tagger_eng.zip")
    # The example of NLTK's own documentation.
    tags = [tag for _, tag in made.tag(["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"])]
    assert tags == ["DT", "JJ", "NN", "NN", "VBZ", "IN", "DT", "JJ", "NN"]
