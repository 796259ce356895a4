"""Syntactic classes of source words: from the grammar (SCAN), or from their positions in logical forms (COGS)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import SPECIAL_TOKENS

SCAN_CLASSES = {
    "verb": ("walk", "look", "run", "jump", "turn"),
    "direction": ("left", "right"),
    "preposition": ("around", "opposite"),
    "adverb": ("twice", "thrice"),
    "conjunction": ("and", "after"),
}
COGS_DETERMINERS = ("a", "the")
OTHER = "function word"
VERB_FORMS = {"was": "verb, participle", "to": "verb, infinitive"}  # by the word before


def find_scan_classes(words: Iterable[str]) -> dict[str, str]:
    """Find the class of each SCAN word except special tokens; `walk12`, a copy of `walk`, has the class of `walk`.

    The classes are those of the paper (section 5.2). `turn` is a verb, because the grammar has no other class for it,
    although it always has a direction, unlike the other verbs. Raises UserError for a word that is not in the grammar.
    """
    by_word = {word: name for name, members in SCAN_CLASSES.items() for word in members}
    originals = {word: word.rstrip("0123456789") for word in words if word not in SPECIAL_TOKENS}
    for word, original in originals.items():
        if original not in by_word:
            raise UserError(f"'{word}' is no word of SCAN; set option classes in displays.yaml to that of the data")
    return {word: by_word[original] for word, original in originals.items()}


def find_cogs_classes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Find the most frequent class of each COGS word in (sentence, logical form) pairs.

    In a logical form `noun ( x _ i )` makes the word at position i a common noun, `verb . role ( x _ i , ...` a verb;
    an argument that is not a variable is a proper name, and `noun . nmod . P` makes P a preposition. The logical form
    of a single word is `LAMBDA a . noun ( a )`, `LAMBDA ... verb . role ( e , ... )`, or the name itself. Verbs have a
    class for each form: infinitive (alone or after `to`), participle (after `was`), past (otherwise), and one for words
    that are both past and participle ("helped"). Among the other words, a and the are determiners; the rest (was, by,
    to, that and the full stop) are function words.
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence, form in pairs:
        words = sentence.split()
        if len(words) == 1:
            alone = "common noun" if re.fullmatch(r"LAMBDA a \. \w+ \( a \)", form) else "verb, infinitive"
            seen[words[0]]["proper name" if form == words[0] else alone] += 1
            continue
        nouns = {int(position) for position in re.findall(r"\w+ \( x _ (\d+) \)", form)}
        verbs = {int(position) for position in re.findall(r"\w+ \. \w+ \( x _ (\d+) ,", form)}
        names = set(re.findall(r", (\w+) \)", form))
        prepositions = set(re.findall(r"nmod \. (\w+)", form))
        for position, word in enumerate(words):
            if position in nouns:
                seen[word]["common noun"] += 1
            elif position in verbs:
                seen[word][VERB_FORMS.get(words[position - 1] if position else "", "verb, past")] += 1
            elif word in names:
                seen[word]["proper name"] += 1
            elif word in prepositions:
                seen[word]["preposition"] += 1
            else:
                seen[word]["determiner" if word.lower() in COGS_DETERMINERS else OTHER] += 1
    for counts in seen.values():
        if counts["verb, past"] and counts["verb, participle"]:
            counts["verb, past or participle"] = counts.pop("verb, past") + counts.pop("verb, participle")
    # Ties alphabetically.
    return {word: min(counts, key=lambda name: (-counts[name], name)) for word, counts in seen.items()}
