"""Cleaning and tokenisation of text like the Moses scripts, with `sacremoses`."""

from functools import lru_cache

import regex
from sacremoses import MosesPunctNormalizer, MosesTokenizer

NOT_PRINTABLE = regex.compile(r"\p{C}")
ALPHABETIC = frozenset(MosesTokenizer.IsAlpha)


@lru_cache
def _load_tools(language: str) -> tuple[MosesPunctNormalizer, MosesTokenizer]:
    tokenizer = MosesTokenizer(lang=language)
    # The library's method rebuilds its set of letters for each sentence, which takes 10 times as
    # long as all the rest.
    tokenizer.isanyalpha = lambda text: not ALPHABETIC.isdisjoint(text)
    return MosesPunctNormalizer(lang=language, perl_parity=True), tokenizer


def tokenise_moses(line: str, language: str, normalise: bool) -> str:
    """Tokenise a line; tokens are joined by one space, with `@-@` for hyphens in words and Moses escapes like `&apos;`.

    normalise: first normalise punctuation and replace characters that are not printable, as in
        training text.
    """
    normaliser, tokenizer = _load_tools(language)
    if normalise:
        line = NOT_PRINTABLE.sub(" ", normaliser.normalize(line))
    return tokenizer.tokenize(line, aggressive_dash_splits=True, return_str=True)


def tokenise_pairs(
    lines: list[tuple[str, str]], source: str, target: str, normalise: bool = True
) -> tuple[list[str], list[str], set[str], set[str]]:
    """Tokenise pairs of lines.

    Returns both sides, the set of all characters, and the set of those that end a token.
    """
    sides = [
        [tokenise_moses(line[side], language, normalise) for line in lines]
        for side, language in enumerate((source, target))
    ]
    tokens = {token for side in sides for token in " ".join(side).split(" ") if token}
    return sides[0], sides[1], set("".join(tokens)), {token[-1] for token in tokens}
