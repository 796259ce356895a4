"""Our reader of WordNet against NLTK's, and on a dictionary small enough to check by eye; stop
words and the tagger.
"""

import random

import pytest

from tests.data.nltk_wordnet import unpack_for_nltk
from workflow_scripts.interventions.settings import WORDNET


def test_words_of_all_synsets_with_the_part_of_speech(resources):
    assert resources.lexicon.find_synonyms("dog", "n") == {
        "dog",
        "domestic_dog",
        "Canis_familiaris",
        "frump",
    }
    assert resources.lexicon.find_synonyms("dog", "v") == {"dog", "chase"}
    assert resources.lexicon.find_synonyms("dog", "a") == set()
    assert resources.lexicon.find_synonyms("big", "a") == {"big", "large"}  # without the marker (a)
    # a satellite
    assert resources.lexicon.find_synonyms("pleasant", "a") == {
        "pleasant",
        "nice",
        "nice_the",
    }


def test_base_forms(resources):
    find_base_forms = resources.lexicon.find_base_forms
    assert find_base_forms("dogs", "n") == ["dog"]
    assert find_base_forms("axes", "n") == ["ax", "axis"]  # an exception, and so not `axe`
    assert find_base_forms("ran", "v") == ["run"]
    assert find_base_forms("ate", "v") == []  # its exception leads to a word that is not there
    assert find_base_forms("largest", "a") == ["large"]
    assert find_base_forms("chasing", "v") == ["chase"]


def test_the_size_of_the_real_dictionary(real):
    # The numbers that WordNet 3.0 itself gives: wnstats(7WN).
    counts = {pos: sum(key[0] == pos for key in real.lexicon.senses) for pos in "nvar"}
    assert counts == {"n": 117_798, "v": 11_529, "a": 21_479, "r": 4_481}
    assert len(real.lexicon.synsets) == 117_659


@pytest.mark.filterwarnings("ignore:The multilingual functions")
def test_synonyms_of_the_real_dictionary_are_those_that_nltk_finds(
    real, mirror, tmp_path, monkeypatch
):
    reader = unpack_for_nltk(mirror / WORDNET, tmp_path, monkeypatch)
    lexicon = real.lexicon
    words = sorted(
        {word for _, word in lexicon.senses if word.isalpha()}
        | {word for _, word in lexicon.exceptions}
    )
    for word in random.Random(0).sample(words, 600):
        for form in (word, word + "s", word + "ed", word + "ing", word + "er"):
            for pos in "nvar":
                theirs = {
                    name for synset in reader.synsets(form, pos) for name in synset.lemma_names()
                }
                assert lexicon.find_synonyms(form, pos) == theirs, (form, pos)


def test_the_real_stop_words_and_tagger(real):
    assert {"the", "you're", "wouldn't"} < real.stop_words and not {"dog", "der"} & real.stop_words
    # The example of NLTK's own documentation.
    tags = [
        tag
        for _, tag in real.tag(
            ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
        )
    ]
    assert tags == ["DT", "JJ", "NN", "NN", "VBZ", "IN", "DT", "JJ", "NN"]
