"""CoGnition, split by compound: a share of the compounds of its test set is trained on, the others are new.

Without upstream's training set most words of these compounds are so rare that every model gets them wrong. Here `train`
also has the sentences of the trained compounds, so that each word is frequent and only its combination is new. `cg_test`
has the sentences of the new compounds, in upstream's order; its column `item` is the number of the compound there, from
0. `valid` and `test` are those of `cognition`.

A compound is trained on if the sha256 of `<salt>/<compound>` is in the first `trained_share` of all digests. No other
compound matters, so a larger share adds compounds and removes none. No pair with a new compound is trained on, not even
where it is a part of a trained one, as `the dog` is of `saw the dog he liked`.

Contexts are not crossed with compounds: upstream has five sentences for each compound, and most of their contexts are
those of one compound alone. The key `atoms` of dataset.json says how often each word of the new compounds is in `train`.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated

from pydantic import Field, NonNegativeInt

from workflow_scripts.data.datasets import cognition
from workflow_scripts.data.datasets.contamination import iterate_ngrams
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins.cognition import write_cognition
from workflow_scripts.evaluation.compounds import MODIFIERS, PART_OF, split_compound

UNSEEN = 0.1  # times that a character counts which is no word of `train`
ATOMS = {name: phrase for phrase, name in MODIFIERS.items()}  # as they are shown


class Options(cognition.Options):
    """Options of `cognition`, and how the compounds are divided.

    Atoms are the words of the compounds, with `he liked`, `at the store` and `on the floor` as one word each. Each atom
    of a new compound must occur at least `min_atom_count` times in `train`.
    """

    trained_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    salt: str = ""
    min_atom_count: NonNegativeInt = 1


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits and lexicon.json. Raises UserError for wrong sources, and for an atom that is too rare."""
    with settings.open_sources(sources, write_cognition, settings.seed) as found:
        made = cognition.build_cognition(settings, found)
        return divide_compounds(made, settings, found)


def divide_compounds(made: Seq2SeqDataset, settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Move the sentences of the trained compounds of a data set from cg_test to train."""
    from subword_nmt.apply_bpe import BPE  # not at the top, because reading the catalogue imports this module

    compounds, rows = made.columns["cg_test"]["compound"], made.splits["cg_test"]
    numbers = {compound: str(number) for number, compound in enumerate(dict.fromkeys(compounds))}
    new = {compound for compound in numbers if not is_trained_on(compound, settings.salt, settings.trained_share)}
    if not 0 < len(new) < len(numbers):
        few = f"of {len(numbers)} compounds it leaves {len(new)} to test; choose another share"
        raise settings.make_error(f"key 'trained_share' is {settings.trained_share}; {few}")

    pairs = list(zip(rows, compounds, strict=True))
    usual = leave_out_compounds(made.splits["train"], new)
    added = leave_out_compounds([row for row, compound in pairs if compound not in new], new)
    words = Counter(word for row in usual for word in row.target.replace("@@ ", "").split(" "))
    with open(settings.find_source(sources, f"cognition/{cognition.CODE}"), encoding="utf-8") as stream:
        divide = BPE(stream).process_line
    targets = [divide(" ".join(found)) for found in split_into_words([row.target for row in added], words)]
    train = usual + [Example(row.source, target) for row, target in zip(added, targets, strict=True)]
    atoms = count_atoms(new, (row.source for row in train))
    rarest = min(atoms, key=atoms.__getitem__)
    if atoms[rarest] < settings.min_atom_count:
        found = f"'{rarest}' is {atoms[rarest]} times in train; choose a larger trained_share"
        raise settings.make_error(f"key 'min_atom_count' is {settings.min_atom_count}, but {found}")

    tested, seen = [(row, compound) for row, compound in pairs if compound in new], set(added)
    trained = {compound for row, compound in pairs if row in seen}
    contexts = {mask_compound(row.source, compound) for row, compound in pairs if compound not in new}
    known = sum(mask_compound(row.source, compound) in contexts for row, compound in tested)
    made.splits |= {"train": train, "cg_test": [row for row, _ in tested]}
    items = {"compound": [compound for _, compound in tested], "item": [numbers[compound] for _, compound in tested]}
    made.notes += [
        f"train: {len(added)} more pairs, those of {len(trained)} of the {len(numbers)} compounds of cg_test",
        f"cg_test: the {len(tested)} pairs of {len(new)} compounds, of which no pair of train has one",
        f"left out: {len(numbers) - len(new) - len(trained)} compounds whose pairs all have one of cg_test",
        f"cg_test: {known} pairs have their compound in a context that a trained compound has, too",
        f"each of the {len(atoms)} atoms of these compounds is at least {atoms[rarest]} times in train ('{rarest}'); "
        f"median {median(atoms.values()):g}",
    ]
    described = made.described | {"atoms": describe_atoms(atoms)}
    return replace(made, protocol="reduced", columns={"cg_test": items}, described=described)


def is_trained_on(compound: str, salt: str, share: float) -> bool:
    """Return whether the sha256 of `<salt>/<compound>` is in the first `share` of all digests."""
    return int.from_bytes(hashlib.sha256(f"{salt}/{compound}".encode()).digest()) < share * 2**256


def leave_out_compounds(rows: Sequence[Example], compounds: Iterable[str]) -> list[Example]:
    """Return the rows whose source has none of the compounds."""
    new = {tuple(compound.split(" ")) for compound in compounds}
    lengths = {len(words) for words in new}
    return [row for row in rows if new.isdisjoint(iterate_ngrams(tuple(row.source.split(" ")), lengths))]


def mask_compound(sentence: str, compound: str) -> str:
    """Return the context of a compound: its sentence with `_` in its place."""
    return f" {sentence} ".replace(f" {compound} ", " _ ").strip()


def split_into_words(texts: Sequence[str], words: Counter[str]) -> list[list[str]]:
    """Split each text into its most probable words, where a word is as probable as it is frequent.

    A character that is no word is a rare one. Of held-out sentences of CoGnition 97% of upstream's words are found.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    known = dict.fromkeys(sorted({character for text in texts for character in text}), UNSEEN) | words
    vocabulary = [("", 0.0), *((word, math.log(count / words.total())) for word, count in known.items())]
    tokenizer = Tokenizer(Unigram(vocabulary, unk_id=0))
    return [encoded.tokens for encoded in tokenizer.encode_batch(list(texts))]


def count_atoms(compounds: Iterable[str], sentences: Iterable[str]) -> dict[str, int]:
    """Count how often each atom of the compounds occurs in sentences: name of `split_compound` -> count."""
    counts = Counter(word for sentence in sentences for word in split_compound(sentence))
    return {
        atom: counts[atom] for atom in sorted({atom for compound in compounds for atom in split_compound(compound)})
    }


def describe_atoms(counts: dict[str, int]) -> dict[str, dict[str, int]]:
    """Sort the counts of atoms by part of speech."""
    described: dict[str, dict[str, int]] = {}
    for atom, count in counts.items():
        described.setdefault(PART_OF[atom], {})[ATOMS.get(atom, atom)] = count
    return described
