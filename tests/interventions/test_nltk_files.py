"""Archives are read without trusting them."""

import json

import pytest

from tests.interventions.small_lexicon import write_sources, write_tar, write_zip
from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.synonym_resources import load_tagger, read_archive_texts


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_texts_are_found_by_name_and_nothing_is_written(tmp_path, write):
    inside = tmp_path / "inside"
    inside.mkdir()
    archive = write(inside / "archive", {"../outside/english": "the\n", "/etc/german": "der\n"})
    assert read_archive_texts(archive, ["english", "german"]) == {"english": "the\n", "german": "der\n"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["archive", "inside"]
    with pytest.raises(UserError, match=r"archive does not contain french; fetch it again$"):
        read_archive_texts(archive, ["french"])


@pytest.mark.parametrize("name", ["wordnet/wordnet-3.0-dict.tar.xz", "nltk/averaged_perceptron_tagger_eng.zip"])
def test_damaged_archives_are_one_line(tmp_path, name):
    source = write_sources(tmp_path)[name]
    wanted = "data.noun" if "wordnet" in name else "averaged_perceptron_tagger_eng.weights.json"
    whole = source.read_bytes()
    middle = len(whole) // 2
    flipped = [whole[:i] + bytes([whole[i] ^ 255]) + whole[i + 1 :] for i in range(0, len(whole), 7)]
    for content in [b"no archive", b"", whole[:middle], *flipped]:
        (tmp_path / "damaged").write_bytes(content)
        try:
            read_archive_texts(tmp_path / "damaged", [wanted])
        except UserError as error:
            assert "\n" not in str(error) and str(tmp_path / "damaged") in str(error)


def test_a_tagger_of_the_wrong_form_is_refused(tmp_path):
    name = "averaged_perceptron_tagger_eng"
    for weights in ("not JSON", json.dumps(["a list"])):
        parts = {f"{name}.weights.json": weights, f"{name}.tagdict.json": "{}", f"{name}.classes.json": '["NN"]'}
        with pytest.raises(UserError, match=r"fetch it again$"):
            load_tagger(write_zip(tmp_path / "tagger.zip", parts))


def test_the_real_stop_words_and_tagger(mirror):
    words = set(read_archive_texts(mirror / "nltk/stopwords.zip", ["english"])["english"].split())
    assert {"the", "you're", "wouldn't"} < words and not {"dog", "der"} & words
    made = load_tagger(mirror / "nltk/averaged_perceptron_tagger_eng.zip")
    # The example of NLTK's own documentation.
    tags = [tag for _, tag in made.tag(["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"])]
    assert tags == ["DT", "JJ", "NN", "NN", "VBZ", "IN", "DT", "JJ", "NN"]
