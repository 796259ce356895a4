"""CoGnition, split by compound: a share of the compounds of its test set is trained on, the others are new.

Without upstream's training set most words of these compounds are so rare that every model gets them
wrong. Here `train` also has the sentences of the trained compounds, so that each word is frequent
and only its combination is new. `cg_test` has the sentences of the new compounds, in upstream's
order; its column `item` is the number of the compound there, from 0. `valid` and `test` are those
of `cognition`.

A compound is trained on if the sha256 of `<salt>/<compound>` is in the first `trained_share` of all
digests. No other compound matters, so a larger share adds compounds and removes none. No pair with
a new compound is trained on, not even where it is a part of a trained one, as `the dog` is of `saw
the dog he liked`. A part of a new compound may be.

Contexts are not crossed with compounds: upstream has five sentences for each compound, and most of
their contexts are those of one compound alone. In dataset.json, `atoms` has how often each word of
the new compounds is in `train`.
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

RARE = 0.1  # how often a character counts as a word if it is none in `train`
MODIFIER_TEXTS = {name: text for text, name in MODIFIERS.items()}


class Options(cognition.Options):
    """Options of `cognition`, and how the compounds are divided.

    Atoms are the words of the compounds, with `he liked`, `at the store` and `on the floor` as one
    word each. Each atom of a new compound must occur at least `min_atom_count` times in `train`.
    """

    trained_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    salt: str = ""
    min_atom_count: NonNegativeInt = 1


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits and lexicon.json.

    Raises UserError for wrong sources, and for an atom that is too rare.
    """
    from subword_nmt.apply_bpe import (
        BPE,
    )  # not at the top, because reading the catalogue imports this module

    with settings.open_sources(sources, write_cognition, settings.seed) as found:
        made = cognition.build_cognition(settings, found)
        with open(
            settings.find_source(found, f"cognition/{cognition.CODE}"), encoding="utf-8"
        ) as stream:
            return split_by_compound(made, settings, BPE(stream).process_line)


def split_by_compound(
    made: Seq2SeqDataset, settings: Options, divide: Callable[[str], str]
) -> Seq2SeqDataset:
    """Move the pairs of the trained compounds from `cg_test` to `train`; `divide` splits words into subwords."""
    compounds = made.columns["cg_test"]["compound"]
    pairs = list(zip(made.splits["cg_test"], compounds, strict=True))
    numbers = {compound: str(number) for number, compound in enumerate(dict.fromkeys(compounds))}
    new = {
        compound
        for compound in numbers
        if not is_trained_on(compound, settings.salt, settings.trained_share)
    }
    if not 0 < len(new) < len(numbers):
        left = f"which leaves {len(new)} of {len(numbers)} compounds to test; choose another one"
        raise settings.make_error(f"key 'trained_share' is {settings.trained_share}, {left}")
    usual = drop_compounds(made.splits["train"], new)
    added = drop_compounds([row for row, compound in pairs if compound not in new], new)
    words = Counter(word for row in usual for word in row.target.replace("@@ ", "").split(" "))
    targets = [
        divide(" ".join(found)) for found in split_into_words([row.target for row in added], words)
    ]
    train = usual + [
        Example(row.source, target) for row, target in zip(added, targets, strict=True)
    ]
    tested = [(row, compound) for row, compound in pairs if compound in new]
    atoms = count_atoms(new, (row.source for row in train))
    rarest = min(atoms, key=atoms.__getitem__)
    if atoms[rarest] < settings.min_atom_count:
        found = f"but '{rarest}' is {atoms[rarest]} times in train; choose a larger trained_share"
        raise settings.make_error(f"key 'min_atom_count' is {settings.min_atom_count}, {found}")

    seen = set(added)
    trained = {compound for row, compound in pairs if row in seen}
    contexts = {mask_compound(row.source, compound) for row, compound in pairs if row in seen}
    known = sum(mask_compound(row.source, compound) in contexts for row, compound in tested)
    columns = {
        "compound": [compound for _, compound in tested],
        "item": [numbers[compound] for _, compound in tested],
    }
    notes = [
        f"train: {len(added)} more pairs, those of {len(trained)} of the {len(numbers)} compounds of cg_test",
        f"cg_test: the {len(tested)} pairs of {len(new)} compounds, of which no pair of train has one",
        f"left out: {len(numbers) - len(new) - len(trained)} compounds whose pairs all have one of cg_test",
        f"cg_test: {known} pairs have a context that is in train with another compound",
        f"train: each of the {len(atoms)} atoms of cg_test at least {atoms[rarest]} times ('{rarest}'), "
        f"in the median {median(atoms.values()):g} times",
    ]
    return replace(
        made,
        splits=made.splits | {"train": train, "cg_test": [row for row, _ in tested]},
        columns=made.columns | {"cg_test": columns},
        notes=made.notes + notes,
        protocol="reduced",
        described={"atoms": collect_by_part(atoms)},
    )


def is_trained_on(compound: str, salt: str, share: float) -> bool:
    """Return whether the sha256 of `<salt>/<compound>` is in the first `share` of all digests."""
    return int.from_bytes(hashlib.sha256(f"{salt}/{compound}".encode()).digest()) < share * 2**256


def drop_compounds(rows: Sequence[Example], compounds: Iterable[str]) -> list[Example]:
    """Return the rows whose source has none of the compounds."""
    new = {tuple(compound.split(" ")) for compound in compounds}
    lengths = {len(words) for words in new}
    return [
        row for row in rows if new.isdisjoint(iterate_ngrams(tuple(row.source.split(" ")), lengths))
    ]


def split_into_words(texts: Sequence[str], words: Counter[str]) -> list[list[str]]:
    """Split each text into its most probable sequence of words; a word is as probable as it is frequent in `words`.

    Upstream splits Chinese in all its files but `cg_test`. On 2,000 of these sentences, with the
    words of the others, 97% of upstream's words are found.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    counts = (
        dict.fromkeys(sorted({character for text in texts for character in text}), RARE) | words
    )
    vocabulary = [
        ("", 0.0),
        *((word, math.log(count / words.total())) for word, count in counts.items()),
    ]
    tokenizer = Tokenizer(
        Unigram(vocabulary, unk_id=0)
    )  # needs an entry for unknown characters; there are none
    return [encoded.tokens for encoded in tokenizer.encode_batch(list(texts))]


def count_atoms(compounds: Iterable[str], sentences: Iterable[str]) -> dict[str, int]:
    """Count in the sentences each word that `split_compound` finds in the compounds."""
    counts = Counter(word for sentence in sentences for word in split_compound(sentence))
    atoms = {word for compound in compounds for word in split_compound(compound)}
    return {atom: counts[atom] for atom in sorted(atoms)}


def collect_by_part(atoms: dict[str, int]) -> dict[str, dict[str, int]]:
    """Return the counts of atoms by part of speech."""
    parts: dict[str, dict[str, int]] = {}
    for atom, count in atoms.items():
        parts.setdefault(PART_OF[atom], {})[MODIFIER_TEXTS.get(atom, atom)] = count
    return parts


def mask_compound(sentence: str, compound: str) -> str:
    """Return the context of a compound: its sentence with `_` in the place of the compound."""
    return f" {sentence} ".replace(f" {compound} ", " _ ").strip()
