"""The abbreviations of a text, as the glossary explains them."""

import re
from pathlib import Path

LINKED_FILES = re.compile(r" \((\[[^\]]*\]\([^)]*\)(, )?)+\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"; |\. |\. ?$")  # of the first part of a meaning


def explain_words(glossary: Path, text: str) -> dict[str, str]:
    """Return the abbreviations and names of a text, each with the first part of its meaning.

    A word is one of those that a row of the glossary begins with and that have a capital letter.
    There are none where the glossary is not at hand.
    """
    if not glossary.exists():
        return {}
    meanings = {}
    for line in glossary.read_text(encoding="utf-8").splitlines():
        cells = line.strip().strip("|").split(" | ")
        if len(cells) != 2:
            continue
        words = [word.strip() for word in cells[0].split(", ")]
        if any(is_name_in(word, text) for word in words):
            meanings[", ".join(words)] = shorten_meaning(cells[1])
    return meanings


def is_name_in(word: str, text: str) -> bool:
    """Whether a word with a capital letter occurs in a text as a whole word."""
    if word == word.lower():
        return False
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def shorten_meaning(meaning: str) -> str:
    """Return the first part of a meaning, without links to files and marks of code."""
    text = LINK.sub(r"\1", LINKED_FILES.sub("", meaning)).replace("`", "").strip()
    return END.split(text)[0]
