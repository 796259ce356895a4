"""NLTK's own reader of a dictionary folder, as an oracle."""

import tarfile
from pathlib import Path, PurePosixPath

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader


class ReaderOfOneVersion(WordNetCorpusReader):
    def map_wn(self, version="wordnet"):
        """Maps to other versions of WordNet, which would have to be there."""


def nltk_reader(folder: Path, monkeypatch) -> WordNetCorpusReader:
    """NLTK's reader on a dictionary folder that has `lexnames` and `index.sense` too."""
    # NLTK opens nothing outside the folders on this list, and looks up index.sense in the first of
    # them.
    monkeypatch.setattr(nltk.data, "path", [str(folder.resolve().parents[1]), *nltk.data.path])
    return WordNetCorpusReader(str(folder.resolve()), None)


def unpack_for_nltk(archive: Path, folder: Path, monkeypatch) -> WordNetCorpusReader:
    """Unpack the pinned archive of the dictionary into a folder, and return NLTK's reader on it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile():
                (folder / PurePosixPath(member.name).name).write_bytes(
                    tar.extractfile(member).read()
                )
    # The names of the 45 lexicographer files: missing in the archive, and of no weight here.
    (folder / "lexnames").write_text("".join(f"{n:02d}\tname{n}\t1\n" for n in range(45)))
    # NLTK opens nothing outside its data folders
    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    return ReaderOfOneVersion(str(folder), None)
