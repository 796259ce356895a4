"""CoGnition, split by compound: a share of the compounds of its test set is trained on.

The others are new. Without upstream's training set most words of these compounds are so rare that
every model gets them wrong. Here `train` also has the sentences of the trained compounds, so that
each word is frequent and only its combination is new. `cg_test` has the sentences of the new
compounds, in upstream's order; its column `item` is the number of the compound there, from 0.
`valid` and `test` are those of `cognition`.

A compound is trained on if the sha256 of `<salt>/<compound>` is in the first `trained_share` of all
digests. No other compound matters, so a larger share adds compounds and removes none. No pair with
a new compound is trained on, not even where it is a part of a trained one, as `the dog` is of `saw
the dog he liked`. A part of a new compound may be.

Contexts are not crossed with compounds: upstream has five sentences for each compound, and most of
their contexts are those of one compound alone. In dataset.json, `atoms` has how often each word of
the new compounds is in `train`.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated

from pydantic import Field, NonNegativeInt

from workflow_scripts.data.datasets import cognition
from workflow_scripts.data.datasets.contamination import PhraseIndex
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins.cognition import write_cognition
from workflow_scripts.evaluation.compounds import MODIFIERS, PART_OF, split_compound

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
    with settings.open_sources(sources, write_cognition, settings.seed) as files:
        split_words = cognition.load_subword_splitter(settings, files)
        dataset = cognition.build_cognition(settings, files, split_words)
        divided = split_by_compound(dataset, settings, split_words)
        return cognition.add_cg_valid(divided, settings, split_words)


@dataclass(frozen=True)
class Division:
    """How the compounds of upstream's test set are divided.

    numbers: compound -> its number there. new: the compounds that are tested. tested: their pairs,
    each with its compound. trained: the pairs that move to training, each with its compound. train:
    all pairs of training.
    """

    numbers: dict[str, int]
    new: set[str]
    tested: list[tuple[Example, str]]
    trained: list[tuple[Example, str]]
    train: list[Example]


def split_by_compound(
    dataset: Seq2SeqDataset, settings: Options, split_words: cognition.SplitWords
) -> Seq2SeqDataset:
    """Move the pairs of the trained compounds from `cg_test` to `train`.

    Raises UserError if no compound or all
    compounds are new, or if a word of the new ones is too rare in `train`.
    """
    division = assign_pairs(dataset, settings, split_words)
    atoms = count_atoms(division.new, (row.source for row in division.train))
    check_atoms(atoms, settings)
    columns = {
        "compound": [compound for _row, compound in division.tested],
        "item": [str(division.numbers[compound]) for _row, compound in division.tested],
    }
    cg_test = [row for row, _compound in division.tested]
    return replace(
        dataset,
        splits=dataset.splits | {"train": division.train, "cg_test": cg_test},
        columns=dataset.columns | {"cg_test": columns},
        notes=dataset.notes + describe_division(division, atoms),
        protocol="reduced",
        described={"atoms": collect_by_part(atoms)},
    )


def assign_pairs(
    dataset: Seq2SeqDataset, settings: Options, split_words: cognition.SplitWords
) -> Division:
    """Assign the pairs of `cg_test` to test or to training.

    No pair of training has a new compound, even as a part of another one.
    """
    compounds = dataset.columns["cg_test"]["compound"]
    pairs = list(zip(dataset.splits["cg_test"], compounds, strict=True))
    numbers = {compound: number for number, compound in enumerate(dict.fromkeys(compounds))}
    new = select_new_compounds(numbers, settings)
    usual = drop_compounds(dataset.splits["train"], new)
    added = drop_compounds([row for row, compound in pairs if compound not in new], new)
    added_rows = set(added)
    return Division(
        numbers,
        new,
        tested=[(row, compound) for row, compound in pairs if compound in new],
        trained=[(row, compound) for row, compound in pairs if row in added_rows],
        train=usual + cognition.split_targets(added, usual, split_words),
    )


def check_atoms(atoms: dict[str, int], settings: Options) -> None:
    """Raise UserError if an atom of the new compounds is too rare in training."""
    rarest = min(atoms, key=atoms.__getitem__)
    if atoms[rarest] < settings.min_atom_count:
        raise settings.make_error(
            f"key 'min_atom_count' is {settings.min_atom_count}, "
            f"but '{rarest}' is {atoms[rarest]} times in train; choose a larger trained_share"
        )


def describe_division(division: Division, atoms: dict[str, int]) -> list[str]:
    """Say how many compounds and pairs are trained and tested, and how often their words occur."""
    n_compounds = len(division.numbers)
    n_new = len(division.new)
    n_trained = len({compound for _row, compound in division.trained})
    n_in_trained_context = count_trained_contexts(division.tested, division.trained)
    rarest = min(atoms, key=atoms.__getitem__)
    return [
        f"train: {len(division.trained)} more pairs, those of {n_trained} of the {n_compounds} "
        "compounds of cg_test",
        f"cg_test: the {len(division.tested)} pairs of {n_new} compounds, of which no pair of "
        "train has one",
        f"left out: {n_compounds - n_new - n_trained} compounds whose pairs all have one of "
        "cg_test",
        f"cg_test: {n_in_trained_context} pairs have a context that is in train with another "
        "compound",
        f"train: each of the {len(atoms)} atoms of cg_test at least {atoms[rarest]} times "
        f"('{rarest}'), in the median {median(atoms.values()):g} times",
    ]


def count_trained_contexts(
    tested: list[tuple[Example, str]], trained: list[tuple[Example, str]]
) -> int:
    """Return how many tested pairs have the context of a trained one, with another compound.

    tested, trained: pairs of sentences, each with its compound.
    """
    contexts = {mask_compound(row.source, compound) for row, compound in trained}
    return sum(mask_compound(row.source, compound) in contexts for row, compound in tested)


def select_new_compounds(compounds: Collection[str], settings: Options) -> set[str]:
    """Return the compounds that are not trained on. Raises UserError if those are none or all."""
    new = set()
    for compound in compounds:
        if not is_trained_on(compound, settings.salt, settings.trained_share):
            new.add(compound)
    if not 0 < len(new) < len(compounds):
        raise settings.make_error(
            f"key 'trained_share' is {settings.trained_share}, "
            f"which leaves {len(new)} of {len(compounds)} compounds to test; choose another one"
        )
    return new


def is_trained_on(compound: str, salt: str, share: float) -> bool:
    """Return whether the sha256 of `<salt>/<compound>` is in the first `share` of all digests."""
    digest = hashlib.sha256(f"{salt}/{compound}".encode()).digest()
    return int.from_bytes(digest) < share * 2**256


def drop_compounds(rows: Sequence[Example], compounds: Iterable[str]) -> list[Example]:
    """Return the rows whose source has none of the compounds."""
    phrases = PhraseIndex(compounds)
    return [row for row in rows if not phrases.is_part_of(row.source)]


def count_atoms(compounds: Iterable[str], sentences: Iterable[str]) -> dict[str, int]:
    """Count in the sentences each word that `split_compound` finds in the compounds.

    Returns word -> count, alphabetically; 0 for a word that no sentence has.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(split_compound(sentence))
    atoms: set[str] = set()
    for compound in compounds:
        atoms.update(split_compound(compound))
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
