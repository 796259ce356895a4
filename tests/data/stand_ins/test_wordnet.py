"""The stand-in dictionary: WordNet's format, items that can be learnt, and cases that are difficult
for readers.
"""

from collections import Counter, defaultdict

import pytest

from tests.data.nltk_wordnet import nltk_reader
from tests.data.preparing import prepare_data
from workflow_scripts.data.datasets import inverse_dictionary
from workflow_scripts.data.formats import wordnet
from workflow_scripts.data.stand_ins.wordnet import SENSES, write_wordnet


# NLTK's readers of other languages need files that the stand-in has not.
@pytest.mark.filterwarnings("ignore:The multilingual functions are not available")
def test_nltk_reads_the_same(tmp_path, monkeypatch):
    folder = tmp_path / "corpora/wordnet"
    folder.mkdir(parents=True)
    write_wordnet(folder)
    read, reader = wordnet.read_wordnet(folder), nltk_reader(folder, monkeypatch)
    # all_synsets() of NLTK asks its own installed copy.
    theirs = {
        key: reader.synset_from_pos_and_offset(key[-1], int(key[:-1])) for key in read.synsets
    }
    for key, synset in read.synsets.items():
        assert theirs[key].lemma_names() == list(synset.lemmas)
        assert synset.gloss.startswith(theirs[key].definition().strip("; "))
        for lemma in theirs[key].lemmas():
            assert lemma.count() == read.counts.get((lemma.name().lower(), key), 0)


def test_words_have_many_senses_and_a_cue_each():
    prepared = prepare_data(inverse_dictionary, {"from": "stand_in"}, {})
    rows = [
        row
        for table in prepared.tables.values()
        for row in zip(table["content"], table["label"], strict=True)
    ]
    assert set(Counter(label for _, label in rows).values()) == {SENSES}
    assert len({content for content, _ in rows}) == len(rows)
    # No definition can be had by one word alone, since kinds and places are crossed; by two it can.
    words = defaultdict(set)
    for content, label in rows:
        tokens = content.split()
        for pair in ((a, b) for a in tokens for b in tokens):
            words[pair].add(label)
    assert all(
        any(words[a, b] == {label} for a in c.split() for b in c.split()) for c, label in rows
    )
    # Longer words than the rest are compounds, which tokenizers of a small vocabulary cut.
    assert (
        sum(any(len(word) > 9 for word in content.split()) for content, _ in rows) > len(rows) / 4
    )
