"""Reader of WikiText-2 (Merity et al. 2017).

Its text is tokenised and has `<unk>` for rare words.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.data.sources.archives import read_numbered_lines

SOURCES = ("wikitext2/valid.txt", "wikitext2/test.txt")
UNTOKENISED = {  # pattern -> replacement
    r" @([-,.])@ ": r"\1",
    r" ([.,;:!?%)\]}])": r"\1",
    r"([(\[{$]) ": r"\1",
    r" (n't|'(?:s|re|ve|ll|d|m))\b": r"\1",
    r'" ([^"]*?) ?"': r'"\1"',
    r"\s+": " ",
}


def read_paragraphs(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, tokenised sentences) of each paragraph; headings are skipped."""
    for number, line in read_numbered_lines(path):
        if not line.strip().startswith("="):
            yield number, re.split(r"(?<= [.!?]) ", line.strip())


def detokenise_wikitext(text: str) -> str:
    """Remove the spaces around punctuation that the tokenisation has added."""
    joined = text
    for pattern, replacement in UNTOKENISED.items():
        joined = re.sub(pattern, replacement, joined)
    return joined
