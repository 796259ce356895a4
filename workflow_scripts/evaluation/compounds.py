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

    The translation has no spaces. A word whose list of translations is empty is never wrong and has
    no place in the order; a verb of this kind counts as no verb. Raises KeyError for a word of the
    compound that is not in the lexicon.
    """
    # Of two words with the same part of speech, the later one counts.
    translations_of = {PART_OF[word]: lexicon[word] for word in split_compound(compound)}

    def is_wrong(translation: str) -> bool:
        spans: dict[str, Span] = {}
        for part, translations in translations_of.items():
            if not translations:
                continue
            span = find_span(translations, translation)
            if span is None:
                return True
            spans[part] = span
        order = ORDER_WITHOUT_VERB
        if "V" in spans:
            order = ORDER
        for earlier, later in order:
            if earlier not in spans or later not in spans:
                continue
            if spans[earlier].first >= spans[later].last:
                return True
        return False

    return is_wrong


def find_span(texts: Sequence[str], sentence: str) -> Span | None:
    """Return the first and last place at which one of the texts begins; None if none occurs."""
    occurring = [text for text in texts if text in sentence]
    if not occurring:
        return None
    first = min(sentence.find(text) for text in occurring)
    last = max(sentence.rfind(text) for text in occurring)
    return Span(first, last)


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
    n_groups = len(errors) // SENTENCES_PER_COMPOUND
    if not n_groups:
        return instance, None
    n_wrong = 0
    for group in range(n_groups):
        start = SENTENCES_PER_COMPOUND * group
        if any(errors[start : start + SENTENCES_PER_COMPOUND]):
            n_wrong += 1
    return instance, 100 * n_wrong / n_groups


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
    """Return the error rates of all sentences ("all"), and of each phrase type that occurs.

    compounds: of each sentence; those of one compound follow each other. errors: whether the
    sentence has an error.
    """
    errors_of: dict[str, list[bool]] = {name: [] for name in ("all", *PHRASES)}
    for compound, is_wrong in zip(compounds, errors, strict=True):
        errors_of["all"].append(is_wrong)
        errors_of[find_phrase_type(compound)].append(is_wrong)
    rates = {}
    for name, phrase_errors in errors_of.items():
        if phrase_errors:
            instance, aggregate = compute_error_rates(phrase_errors)
            rates[name] = ErrorRates(instance, aggregate, len(phrase_errors))
    return rates
