"""CoGnition (Li et al. 2021): English to Chinese, with a test set of 2,160 new compounds in five contexts each.

`test` is of the training distribution. In `cg_test`, the new compounds in upstream's order,
`subset` is the phrase type (NP, VP or PP), the column `compound` is the compound, and targets are
whole texts, because upstream does not split them into words. Other targets are subwords of
upstream's byte-pair encoding (`@@` joins a subword to the next one).
"""

import random
from pathlib import Path
from typing import Literal

from pydantic import PositiveInt

from workflow_scripts.data.datasets.contamination import iterate_ngrams
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import read_aligned_lines, read_text_lines
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins import cognition as stand_in
from workflow_scripts.evaluation.compounds import Lexicon, find_phrase_type

NEW_COMPOUNDS = ["cg-test_cg-test.en", "cg-test_cg-test.zh", "cg-test_cg-test.compound"]
LEXICON, CODE = "eval_lexicon", "processed_code"

Pair = tuple[str, str]


class Options(DataOptions):
    """`training: valid_and_test` trains on upstream's validation and test sets, without sentences with a new compound.

    `held_out` of these pairs are then sampled for each of valid and test.
    """

    training: Literal["upstream", "valid_and_test"] = "upstream"
    held_out: PositiveInt = 1000
    seed: int = 0


def read_cognition_lexicon(path: Path) -> Lexicon:
    """Read lines `word TAB translation/translation/...`; `/` means that a word needs no translation and gets []."""
    lines = (line.split("\t") for line in read_text_lines(path))
    return {
        word: [] if translations == "/" else translations.split("/") for word, translations in lines
    }


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits and lexicon.json. Raises UserError for missing or malformed sources."""
    with settings.open_sources(sources, stand_in.write_cognition, settings.seed) as found:
        return build_cognition(settings, found)


def build_cognition(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Build the data set from upstream's files."""
    from subword_nmt.apply_bpe import (
        BPE,
    )  # not at the top, because reading the catalogue imports this module

    reduced = settings.training == "valid_and_test"
    splits = ["valid", "test"] if reduced else ["train", "valid", "test"]
    names = [f"{split}.{side}" for split in splits for side in ("en", "zh")] + [
        *NEW_COMPOUNDS,
        LEXICON,
        CODE,
    ]
    files = {name: settings.find_source(sources, f"cognition/{name}") for name in names}
    lexicon = read_cognition_lexicon(files[LEXICON])
    new = [
        tuple(map(reduce_spaces, line))
        for line in read_aligned_lines([files[name] for name in NEW_COMPOUNDS])
    ]
    compounds = [compound for *_, compound in new]
    pairs: dict[str, list[Pair]] = {
        split: [
            (reduce_spaces(english), reduce_spaces(chinese))
            for english, chinese in read_aligned_lines([files[f"{split}.en"], files[f"{split}.zh"]])
        ]
        for split in splits
    }
    notes = []
    if reduced:
        pairs, notes = sample_splits(pairs["valid"] + pairs["test"], compounds, settings)
    with open(files[CODE], encoding="utf-8") as stream:
        divide = BPE(stream).process_line  # splits words into subwords: `幼@@ 儿@@ 园`
    made = {
        split: [Example(source, divide(target)) for source, target in pairs[split]]
        for split in pairs
    }
    made["cg_test"] = [
        Example(text, target.replace(" ", ""), find_phrase_type(found))
        for text, target, found in new
    ]
    columns, extra = {"cg_test": {"compound": compounds}}, {"lexicon.json": lexicon}
    protocol = "reduced" if reduced else "paper"
    return Seq2SeqDataset(
        made, notes, protocol, columns=columns, files=extra, whole_targets=["cg_test"]
    )


def reduce_spaces(line: str) -> str:
    """Reduce repeated spaces, which a few of upstream's lines contain, to one."""
    return " ".join(line.split())


def sample_splits(
    pairs: list[Pair], compounds: list[str], settings: Options
) -> tuple[dict[str, list[Pair]], list[str]]:
    """Sample train, valid and test from the pairs whose source has none of `compounds`.

    Returns (splits, notes).
    """
    new = {tuple(compound.split(" ")) for compound in compounds}
    lengths = {len(words) for words in new}
    kept = [
        pair for pair in pairs if new.isdisjoint(iterate_ngrams(tuple(pair[0].split(" ")), lengths))
    ]
    if len(kept) <= 2 * settings.held_out:
        raise settings.make_error(
            f"key 'held_out' is {settings.held_out}; it must be below half of {len(kept)} pairs"
        )
    drawn = random.Random(f"{settings.seed}/held_out").sample(
        range(len(kept)), 2 * settings.held_out
    )
    places = {
        "valid": sorted(drawn[: settings.held_out]),
        "test": sorted(drawn[settings.held_out :]),
    }
    splits = {"train": [kept[i] for i in sorted(set(range(len(kept))) - set(drawn))]}
    splits |= {split: [kept[i] for i in rows] for split, rows in places.items()}
    return splits, [
        f"train: {len(splits['train'])} of the {len(pairs)} pairs of upstream's validation and test sets, in place of "
        "upstream's training set: numbers are not comparable with published ones",
        f"left out: {len(pairs) - len(kept)} pairs with a compound of cg_test",
        f"valid and test: {settings.held_out} pairs each, drawn with seed {settings.seed}",
    ]
