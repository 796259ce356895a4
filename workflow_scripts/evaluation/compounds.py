"""Compute the compound translation error rate, CTER (Li et al. 2021).

A translation is wrong unless it has all words of the new compound in the right order.

Instance CTER is the share of sentences with an error. Aggregate CTER is the share of compounds with
an error in any of their five sentences, which are on consecutive lines. Both follow upstream's
script, including its oddities:

- A word is right if any of its translations occurs anywhere in the sentence, even as a part of the
  context.
- An empty translation in the lexicon occurs in every sentence (`liked` has one).
- If two words of a compound have the same part of speech, only the later one counts.
- A word's place is the span from the first to the last occurrence of any of its translations. The
  order is wrong only if the first place of the earlier word is not before the last place of the
  later word.
- If a word has two lines in the lexicon, the later line counts.

Even perfect translations have errors: upstream's references score 2.6% (instance) and 9.8%
(aggregate).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

SENTENCES_PER_COMPOUND = 5
MODIFIERS = {"he liked": "mod0", "at the store": "mod1", "on the floor": "mod2"}
PARTS = {
    "P": (
        "about around before behind except for from inside like near on to toward towards under "
        "with without"
    ),
    "V": (
        "asked caught chose found gave hated heard invited left liked lost met saw stopped told "
        "took visited watched woke"
    ),
    "DET": "another any each every the",
    "ADJ": "dirty empty fake large lazy quiet red silly small smart special",
    "N": (
        "airplane apartment bee boyfriend building car chair child clown dog doctor farm farmer "
        "girl hat lawyer peanut sandwich waiter"
    ),
    "MOD": "mod0 mod1 mod2",
}
PART_OF: dict[str, str] = {}
for _part, _words in PARTS.items():
    PART_OF |= dict.fromkeys(_words.split(), _part)
PHRASES = ["NP", "VP", "PP"]
# (earlier, later): required order of the translations of two parts of speech.
ORDER = [("DET", "N"), ("ADJ", "N")]
ORDER_WITHOUT_VERB = [*ORDER, ("MOD", "N")]

Lexicon = dict[str, list[str]]


def split_compound(compound: str) -> list[str]:
    """Split a compound into words.

    A modifier of several words (`he liked`) becomes one word, `mod0`.
    """
    text = f" {compound} "
    for phrase, name in MODIFIERS.items():
        text = text.replace(f" {phrase} ", f" {name} ")
    return text.split()


def find_phrase_type(compound: str) -> str:
    """Return the phrase type.

    It is PP if the compound starts with a preposition, VP if it has a verb, else NP.
    """
    parts = [PART_OF.get(word) for word in split_compound(compound)]
    if parts and parts[0] == "P":
        return "PP"
    if "V" in parts:
        return "VP"
    return "NP"


class Span(NamedTuple):
    """First and last place in a sentence at which a translation of a word begins."""

    first: int
    last: int


def make_checker(compound: str, lexicon: Lexicon) -> Callable[[str], bool]:
    """Return a function that is True for a translation with an error in `compound`.

    The translation has no spaces. Raises KeyError for a word that is not in the lexicon.
    """
    expected = [(PART_OF[word], lexicon[word]) for word in split_compound(compound)]

    def is_wrong(translation: str) -> bool:
        right: dict[str, bool] = {}
        spans: dict[str, Span] = {}
        for part, translations in expected:
            occurring = [text for text in translations if text in translation]
            right[part] = bool(occurring) or not translations
            spans.pop(part, None)
            if occurring:
                first = min(translation.find(text) for text in occurring)
                last = max(translation.rfind(text) for text in occurring)
                spans[part] = Span(first, last)
        if not all(right.values()):
            return True
        order = ORDER if "V" in spans else ORDER_WITHOUT_VERB
        for earlier, later in order:
            has_both = earlier in spans and later in spans
            if has_both and spans[earlier].first >= spans[later].last:
                return True
        return False

    return is_wrong


def remove_spaces(translation: str) -> str:
    """Join subwords (`@@`) and remove all spaces."""
    return translation.replace("@@ ", "").replace(" ", "")


def find_compound_errors(
    compounds: Sequence[str], translations: Sequence[str], lexicon: Lexicon
) -> list[bool]:
    """Return, for each sentence, whether the translation of its compound has an error."""
    checkers = {compound: make_checker(compound, lexicon) for compound in dict.fromkeys(compounds)}
    pairs = zip(compounds, translations, strict=True)
    return [checkers[compound](remove_spaces(text)) for compound, text in pairs]


def compute_error_rates(errors: Sequence[bool]) -> tuple[float, float | None]:
    """Return the (instance, aggregate) error rates in percent, for at least one sentence.

    The aggregate rate ignores sentences after the last complete group of five, and is None for
    fewer than five.
    """
    instance = 100 * sum(errors) / len(errors)
    size = SENTENCES_PER_COMPOUND
    whole = len(errors) // size
    if not whole:
        return instance, None
    wrong_groups = 0
    for group in range(whole):
        if any(errors[size * group : size * (group + 1)]):
            wrong_groups += 1
    return instance, 100 * wrong_groups / whole


class ErrorRates(NamedTuple):
    """Error rates in percent of a number of sentences; see `compute_error_rates`."""

    instance: float
    aggregate: float | None
    sentences: int

    @property
    def compounds(self) -> int:
        """Number of compounds with all of their sentences."""
        return self.sentences // SENTENCES_PER_COMPOUND


def compute_rates_by_phrase(
    compounds: Sequence[str], errors: Sequence[bool]
) -> dict[str, ErrorRates]:
    """Return the error rates of all sentences ("all"), and of each phrase type that occurs."""
    errors_of: dict[str, list[bool]] = {name: [] for name in ("all", *PHRASES)}
    for compound, wrong in zip(compounds, errors, strict=True):
        errors_of["all"].append(wrong)
        errors_of[find_phrase_type(compound)].append(wrong)
    rates = {}
    for name, of_phrase in errors_of.items():
        if of_phrase:
            instance, aggregate = compute_error_rates(of_phrase)
            rates[name] = ErrorRates(instance, aggregate, len(of_phrase))
    return rates
