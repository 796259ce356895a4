"""The splitter of sentences from either packing of its files."""

import tarfile
import zipfile

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats import punkt

TEXT = "Mr. Smith went to Washington, D.C. on Jan. 5. He met Dr. Jones there."
SENTENCES = ["Mr. Smith went to Washington, D.C. on Jan. 5.", "He met Dr. Jones there."]


def test_upstreams_zip_of_all_languages_gives_the_same_splitter(tmp_path, mirror):
    packed = mirror / punkt.SOURCE
    with tarfile.open(packed) as content, zipfile.ZipFile(tmp_path / "punkt_tab", "w") as upstream:
        for member in content:
            if member.isfile():
                upstream.writestr(member.name, content.extractfile(member).read())
        upstream.writestr("punkt_tab/czech/abbrev_types.txt", "atd\n")
    for archive in (packed, tmp_path / "punkt_tab"):
        assert punkt.load_sentence_splitter(archive).tokenize(TEXT) == SENTENCES, archive


def test_a_zip_without_english_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "czech", "w") as upstream:
        upstream.writestr("punkt_tab/czech/abbrev_types.txt", "atd\n")
    with pytest.raises(UserError, match="czech holds no English sentence splitter; fetch it again"):
        punkt.load_sentence_splitter(tmp_path / "czech")
