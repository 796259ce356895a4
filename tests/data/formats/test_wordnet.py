"""The reader of WordNet's dictionary format: small files and the real ones."""

import tarfile

import pytest

from workflow_scripts.data.datasets.inverse_dictionary import SOURCE
from workflow_scripts.data.formats.wordnet import DATA, INDEX, Synset, read_wordnet
from workflow_scripts.data.stand_ins.wordnet import write_wordnet

LICENCE = "  1 This line belongs to the licence.  \n"
DOG = '00000041 03 n 02 dog 0 Canis_familiaris 0 001 ;c 00000140 n 0000 | a tame wolf; "the dog barked"  \n'
GALORE = "00000041 00 s 01 galore(ip) 0 000 | in great numbers  \n"


@pytest.fixture
def folder(tmp_path):
    for name in DATA | INDEX:
        (tmp_path / name).write_text(LICENCE)
    (tmp_path / "data.noun").write_text(LICENCE + DOG)
    (tmp_path / "index.noun").write_text(LICENCE + "dog n 1 1 ;c 1 1 00000041  \n")
    (tmp_path / "data.adj").write_text(LICENCE + GALORE)
    (tmp_path / "index.adj").write_text(LICENCE + "galore a 1 0 1 1 00000041  \n")
    (tmp_path / "cntlist.rev").write_text(
        "dog%1:03:00:: 1 42\ndog%1:04:00:: 2 1\ngalore%5:00:00:many:00 1 3\n"
    )
    return tmp_path


def test_synsets_and_counts(folder):
    found = read_wordnet(folder)
    assert found.synsets == {
        "00000041n": Synset(
            "00000041n",
            ("dog", "Canis_familiaris"),
            'a tame wolf; "the dog barked"',
            ("00000140n",),
        ),
        "00000041a": Synset("00000041a", ("galore",), "in great numbers", ()),
    }
    # The second sense of dog is counted, but is in no index.
    assert found.counts == {("dog", "00000041n"): 42, ("galore", "00000041a"): 3}


def test_a_count_is_of_the_sense_with_its_number_and_words_are_counted_in_hexadecimal(folder):
    many = [f"word{number}" for number in range(10)]
    line = f"00000130 03 n 0a {' '.join(f'{word} 0' for word in many)} 001 ;c 00000041 s 0000 | ten words"
    (folder / "data.noun").write_text(f"{LICENCE}{DOG}{line}\n")
    (folder / "index.noun").write_text(f"{LICENCE}word0 n 2 1 @ 2 1 00000041 00000130  \n")
    (folder / "cntlist.rev").write_text("word0%1:03:01:: 2 5\nword0%1:03:00:: 1 9\n")
    found = read_wordnet(folder)
    assert found.synsets["00000130n"] == Synset(
        "00000130n", tuple(many), "ten words", ("00000041a",)
    )
    assert found.counts == {("word0", "00000041n"): 9, ("word0", "00000130n"): 5}


def test_an_archive_reads_as_the_folder(tmp_path):
    (tmp_path / "dict").mkdir()
    write_wordnet(tmp_path / "dict")
    with tarfile.open(tmp_path / "wn.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "dict", "any/where")
    assert read_wordnet(tmp_path / "wn.tar.xz") == read_wordnet(tmp_path / "dict")


def test_the_real_dictionary(mirror):
    found = read_wordnet(mirror / SOURCE)
    assert len(found.synsets) == 117_659
    parts = [sum(key.endswith(letter) for key in found.synsets) for letter in "nvar"]
    assert parts == [82_115, 13_767, 18_156, 3_621]  # as wnstats(7WN) has them
    assert found.counts["dog", "02084071n"] == 42
