"""Cleaning and tokenising of text as the scripts of Moses do it, by `sacremoses`."""

from functools import lru_cache

import regex
from sacremoses import MosesPunctNormalizer, MosesTokenizer

NOT_PRINTABLE = regex.compile(r"\p{C}")
ALPHABETIC = frozenset(MosesTokenizer.IsAlpha)


class Tokenizer(MosesTokenizer):
    """The library builds the set of all letters for each sentence anew, which takes ten times as long as all else."""

    def isanyalpha(self, text: str) -> bool:
        return not ALPHABETIC.isdisjoint(text)


@lru_cache
def _tools(language: str) -> tuple[MosesPunctNormalizer, Tokenizer]:
    return MosesPunctNormalizer(lang=language, perl_parity=True), Tokenizer(lang=language)


def tokenised(line: str, language: str, normalise: bool) -> str:
    """Tokens joined by one space, with `@-@` for a hyphen in a word and `&apos;` and the like for marks of Moses.

    normalise: make punctuation uniform and replace what cannot be printed by spaces first, as for training text.
    """
    normaliser, tokenizer = _tools(language)
    if normalise:
        line = NOT_PRINTABLE.sub(" ", normaliser.normalize(line))
    return tokenizer.tokenize(line, aggressive_dash_splits=True, return_str=True)


def tokenised_pairs(
    lines: list[tuple[str, str]], source: str, target: str, normalise: bool = True
) -> tuple[list[str], list[str], set[str], set[str]]:
    """Both sides of some lines, tokenised; all characters in them; and those that end a token."""
    sides = [
        [tokenised(line[side], language, normalise) for line in lines] for side, language in enumerate((source, target))
    ]
    tokens = {token for side in sides for token in " ".join(side).split(" ") if token}
    return sides[0], sides[1], set("".join(tokens)), {token[-1] for token in tokens}
