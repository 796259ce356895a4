"""Cleaning and tokenisation of text like the Moses scripts, with `sacremoses`."""

from functools import lru_cache

import regex
from sacremoses import MosesPunctNormalizer, MosesTokenizer

NOT_PRINTABLE = regex.compile(r"\p{C}")
ALPHABETIC = frozenset(MosesTokenizer.IsAlpha)


class Tokenizer(MosesTokenizer):
    """Faster MosesTokenizer. The library rebuilds its set of letters per sentence, 10 times the cost of the rest."""

    def isanyalpha(self, text: str) -> bool:
        return not ALPHABETIC.isdisjoint(text)


@lru_cache
def _tools(language: str) -> tuple[MosesPunctNormalizer, Tokenizer]:
    return MosesPunctNormalizer(lang=language, perl_parity=True), Tokenizer(lang=language)


def tokenised(line: str, language: str, normalise: bool) -> str:
    """Tokenise a line. Tokens are joined by one space, with `@-@` for hyphens in words and Moses escapes like `&apos;`.

    normalise: first normalise punctuation and replace characters that are not printable by spaces, as in training text.
    """
    normaliser, tokenizer = _tools(language)
    if normalise:
        line = NOT_PRINTABLE.sub(" ", normaliser.normalize(line))
    return tokenizer.tokenize(line, aggressive_dash_splits=True, return_str=True)


def tokenised_pairs(
    lines: list[tuple[str, str]], source: str, target: str, normalise: bool = True
) -> tuple[list[str], list[str], set[str], set[str]]:
    """Tokenise pairs of lines. Returns both sides, the set of all characters, and the set of those that end a token."""
    sides = [
        [tokenised(line[side], language, normalise) for line in lines] for side, language in enumerate((source, target))
    ]
    tokens = {token for side in sides for token in " ".join(side).split(" ") if token}
    return sides[0], sides[1], set("".join(tokens)), {token[-1] for token in tokens}
