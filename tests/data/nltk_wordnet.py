"""NLTK's own reader of a dictionary folder, as an oracle."""

from pathlib import Path

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader


def nltk_reader(folder: Path, monkeypatch) -> WordNetCorpusReader:
    """NLTK's reader on a dictionary folder that has `lexnames` and `index.sense` too."""
    # NLTK opens nothing outside the folders on this list, and looks up index.sense in the first of them.
    monkeypatch.setattr(nltk.data, "path", [str(folder.resolve().parents[1]), *nltk.data.path])
    return WordNetCorpusReader(str(folder.resolve()), None)
