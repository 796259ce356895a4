"""The splitter of sentences from either packing of its files."""

import tarfile

from tests.data.packing import pack
from workflow_scripts.data.formats import punkt

TEXT = "Mr. Smith went to Washington, D.C. on Jan. 5. He met Dr. Jones there."
CZECH = {"punkt_tab/czech/abbrev_types.txt": "atd\n"}
SENTENCES = ["Mr. Smith went to Washington, D.C. on Jan. 5.", "He met Dr. Jones there."]


def test_upstreams_zip_of_all_languages_gives_the_same_splitter(tmp_path, mirror):
    packed = mirror / punkt.SOURCE
    with tarfile.open(packed) as content:
        files = {
            member.name: content.extractfile(member).read() for member in content if member.isfile()
        }
    upstream = pack(tmp_path / "punkt_tab.zip", files | CZECH)
    for archive in (packed, upstream):
        assert punkt.load_sentence_splitter(archive).tokenize(TEXT) == SENTENCES, archive
