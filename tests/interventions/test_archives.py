"""Archives are read without trusting them."""

import json
import tarfile

import pytest

from tests.interventions.small_lexicon import write_sources, write_tar, write_zip
from workflow_scripts.errors import UserError
from workflow_scripts.interventions import archives
from workflow_scripts.interventions.archives import read_members, stop_words, tagger


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_only_the_last_part_of_a_path_counts_and_nothing_is_written(tmp_path, write):
    inside = tmp_path / "inside"
    inside.mkdir()
    archive = write(inside / "archive", {"../outside/english": "the\n", "/etc/german": "der\n"})
    assert read_members(archive, ["english", "german"]) == {"english": "the\n", "german": "der\n"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["archive", "inside"]


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_what_is_wrong_with_an_archive_is_one_line(tmp_path, write, monkeypatch):
    archive = write(tmp_path / "archive", {"a/english": "the\n", "b/english": "and\n", "c/long": "x" * 100})
    with pytest.raises(UserError, match=r"archive holds no file german; fetch it again$"):
        read_members(archive, ["german"])
    with pytest.raises(UserError, match=r"archive holds two files english; fetch it again$"):
        read_members(archive, ["english"])
    monkeypatch.setattr(archives, "LARGEST", 99)
    with pytest.raises(UserError, match=r"long has 100 bytes, more than the 99 that are read; fetch it again$"):
        read_members(archive, ["long"])


def test_a_link_in_an_archive_is_no_file(tmp_path):
    with tarfile.open(tmp_path / "links.tar", "w") as archive:
        entry = tarfile.TarInfo("english")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(UserError, match="holds no file english"):
        read_members(tmp_path / "links.tar", ["english"])


def test_broken_archives_are_one_line(tmp_path):
    whole = write_sources(tmp_path)["wordnet/wordnet-3.0-dict.tar.xz"].read_bytes()
    for name, content in {"text": b"no archive", "half": whole[: len(whole) // 2], "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=rf"{name}: not a readable .zip or .tar archive; fetch it again$"):
            read_members(tmp_path / name, ["data.noun"])
    with pytest.raises(UserError, match="nowhere does not exist"):
        read_members(tmp_path / "nowhere", ["data.noun"])


def test_a_tagger_of_the_wrong_form_is_refused(tmp_path):
    name = "averaged_perceptron_tagger_eng"
    for weights in ("not JSON", json.dumps(["a list"])):
        parts = {f"{name}.weights.json": weights, f"{name}.tagdict.json": "{}", f"{name}.classes.json": '["NN"]'}
        with pytest.raises(UserError, match=r"fetch it again$"):
            tagger(write_zip(tmp_path / "tagger.zip", parts))


def test_the_real_stop_words_and_tagger(mirror):
    words = stop_words(mirror / "nltk/stopwords.zip")
    assert {"the", "you're", "wouldn't"} < words and not {"dog", "der"} & words
    made = tagger(mirror / "nltk/averaged_perceptron_tagger_eng.zip")
    # The example of NLTK's own documentation.
    tags = [tag for _, tag in made.tag(["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"])]
    assert tags == ["DT", "JJ", "NN", "NN", "VBZ", "IN", "DT", "JJ", "NN"]
