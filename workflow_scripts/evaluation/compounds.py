"""Compute the compound translation error rate, CTER (Li et al. 2021).

A translation is wrong unless it has all words of the new compound in the right order.

Instance CTER is the share of sentences with an error. Aggregate CTER is the share of compounds with an error in any of
their five sentences, which are on consecutive lines. Both follow upstream's script, including its oddities:

- A word is right if any of its translations occurs anywhere in the sentence, even as a part of the context.
- An empty translation in the lexicon occurs in every sentence (`liked` has one).
- If two words of a compound have the same part of speech, only the later one counts.
- A word's place is the span from the first to the last occurrence of any of its translations. The order is wrong only
  if the first place of the earlier word is not before the last place of the later word.
- If a word has two lines in the lexicon, the later line counts.

Even perfect translations have errors: upstream's references score 2.6% (instance) and 9.8% (aggregate).
"""

from collections.abc import Callable, Sequence

SENTENCES_PER_COMPOUND = 5
MODIFIERS = {"he liked": "mod0", "at the store": "mod1", "on the floor": "mod2"}
PARTS = {
    "P": "about around before behind except for from inside like near on to toward towards under with without",
    "V": "asked caught chose found gave hated heard invited left liked lost met saw stopped told took visited watched "
    "woke",
    "DET": "another any each every the",
    "ADJ": "dirty empty fake large lazy quiet red silly small smart special",
    "N": "airplane apartment bee boyfriend building car chair child clown dog doctor farm farmer girl hat lawyer "
    "peanut sandwich waiter",
    "MOD": "mod0 mod1 mod2",
}
PART_OF = {word: part for part, words in PARTS.items() for word in words.split()}
PHRASES = ["NP", "VP", "PP"]
# (earlier, later): required order of the translations of two parts of speech.
ORDER = [("DET", "N"), ("ADJ", "N")]
ORDER_WITHOUT_VERB = [*ORDER, ("MOD", "N")]

Lexicon = dict[str, list[str]]


def split_compound(compound: str) -> list[str]:
    """Split a compound into words. A modifier of several words (`he liked`) becomes one word, `mod0`."""
    text = f" {compound} "
    for phrase, name in MODIFIERS.items():
        text = text.replace(f" {phrase} ", f" {name} ")
    return text.split()


def find_phrase_type(compound: str) -> str:
    """Return the phrase type: PP if the compound starts with a preposition, VP if it has a verb, else NP."""
    parts = [PART_OF.get(word) for word in split_compound(compound)]
    return "PP" if parts[:1] == ["P"] else "VP" if "V" in parts else "NP"


def make_checker(compound: str, lexicon: Lexicon) -> Callable[[str], bool]:
    """Return a function that is True for a translation (without spaces) with an error in `compound`.

    Raises KeyError for a word that is not in the lexicon.
    """
    expected = [(PART_OF[word], lexicon[word]) for word in split_compound(compound)]

    def is_wrong(translation: str) -> bool:
        right: dict[str, bool] = {}
        place: dict[str, tuple[int, int]] = {}
        for part, translations in expected:
            found = [text for text in translations if text in translation]
            right[part] = bool(found) or not translations
            place.pop(part, None)
            if found:
                place[part] = min(map(translation.find, found)), max(map(translation.rfind, found))
        if not all(right.values()):
            return True
        order = ORDER if "V" in place else ORDER_WITHOUT_VERB
        return any(a in place and b in place and place[a][0] >= place[b][1] for a, b in order)

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

    The aggregate rate ignores sentences after the last complete group of five, and is None for fewer than five.
    """
    size, whole = SENTENCES_PER_COMPOUND, len(errors) // SENTENCES_PER_COMPOUND
    groups = [any(errors[size * group : size * (group + 1)]) for group in range(whole)]
    return 100 * sum(errors) / len(errors), 100 * sum(groups) / whole if whole else None


def compute_rates_by_phrase(
    compounds: Sequence[str], errors: Sequence[bool]
) -> dict[str, tuple[float, float | None, int]]:
    """Return (instance rate, aggregate rate, number of sentences) for all sentences and for each phrase type."""
    chosen = {name: [] for name in ("all", *PHRASES)}
    for compound, wrong in zip(compounds, errors, strict=True):
        chosen["all"].append(wrong)
        chosen[find_phrase_type(compound)].append(wrong)
    return {
        name: (*compute_error_rates(found), len(found)) for name, found in chosen.items() if found
    }
