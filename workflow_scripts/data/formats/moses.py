"""Cleaning and tokenisation of text like the Moses scripts, with `sacremoses`."""

from functools import lru_cache
from typing import NamedTuple

import regex
from sacremoses import MosesPunctNormalizer, MosesTokenizer

NOT_PRINTABLE = regex.compile(r"\p{C}")
ALPHABETIC = frozenset(MosesTokenizer.IsAlpha)


@lru_cache
def _load_tools(language: str) -> tuple[MosesPunctNormalizer, MosesTokenizer]:
    """Load normaliser and tokenizer of a language, once in each process."""
    tokenizer = MosesTokenizer(lang=language)
    # The library's method rebuilds its set of letters for each sentence, which takes 10 times as
    # long as all the rest.
    tokenizer.isanyalpha = lambda text: not ALPHABETIC.isdisjoint(text)
    return MosesPunctNormalizer(lang=language, perl_parity=True), tokenizer


def tokenise_moses(line: str, language: str, normalise: bool) -> str:
    """Tokenise a line; tokens are joined by one space.

    Hyphens in words become `@-@`, and there are Moses escapes like `&apos;`.

    normalise: first normalise punctuation and replace characters that are not printable, as in
        training text.
    """
    normaliser, tokenizer = _load_tools(language)
    text = line
    if normalise:
        text = NOT_PRINTABLE.sub(" ", normaliser.normalize(line))
    return str(tokenizer.tokenize(text, aggressive_dash_splits=True, return_str=True))


class TokenisedPairs(NamedTuple):
    """The lines of both sides, the set of all characters, and of those that end a token."""

    source: list[str]
    target: list[str]
    characters: set[str]
    last_characters: set[str]


def tokenise_pairs(
    lines: list[tuple[str, str]], source: str, target: str, normalise: bool = True
) -> TokenisedPairs:
    """Tokenise pairs of lines in the languages `source` and `target`."""
    source_lines = [tokenise_moses(line, source, normalise) for line, _ in lines]
    target_lines = [tokenise_moses(line, target, normalise) for _, line in lines]
    tokens = set(" ".join(source_lines).split(" ")) | set(" ".join(target_lines).split(" "))
    tokens.discard("")
    characters = set("".join(tokens))
    last_characters = {token[-1] for token in tokens}
    return TokenisedPairs(source_lines, target_lines, characters, last_characters)
