"""CoGnition (Li et al. 2021): English to Chinese, with a test set of 2,160 new compounds in five contexts each.

`test` is of the training distribution. In `cg_test`, the new compounds in upstream's order, `subset` is the phrase type
(NP, VP or PP), the column `compound` is the compound, and targets are whole texts, because upstream does not split them
into words. Other targets are subwords of upstream's byte-pair encoding (`@@` joins a subword to the next one).
"""

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets.contamination import iterate_ngrams
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import read_aligned_lines, read_text_lines
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins import cognition as stand_in
from workflow_scripts.evaluation.compounds import PART_OF, Lexicon, find_phrase_type, split_compound

NEW_COMPOUNDS = ["cg-test_cg-test.en", "cg-test_cg-test.zh", "cg-test_cg-test.compound"]
LEXICON, CODE = "eval_lexicon", "processed_code"
VERSION = "#version: 0.2"  # of the merges in processed_code

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
    lexicon: Lexicon = {}
    for number, line in enumerate(read_text_lines(path), start=1):
        word, _, translations = line.partition("\t")
        if not (word and translations):
            raise UserError(f"{path}:{number}: not a word and its translations, with a tab between them")
        if word not in PART_OF:
            raise UserError(f"{path}:{number}: '{word}' is no word of CoGnition's compounds")
        lexicon[word] = [] if translations == "/" else translations.split("/")
    return lexicon


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits and lexicon.json. Raises UserError for missing or malformed sources."""
    with settings.open_sources(sources, stand_in.write_cognition, settings.seed) as found:
        return build_cognition(settings, found)


def build_cognition(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Build the data set from upstream's files."""
    reduced = settings.training == "valid_and_test"
    splits = ["valid", "test"] if reduced else ["train", "valid", "test"]
    names = [f"{split}.{side}" for split in splits for side in ("en", "zh")] + [*NEW_COMPOUNDS, LEXICON, CODE]
    files = {name: settings.find_source(sources, f"cognition/{name}") for name in names}
    lexicon = read_cognition_lexicon(files[LEXICON])
    new = [tuple(map(reduce_spaces, line)) for line in read_aligned_lines([files[name] for name in NEW_COMPOUNDS])]
    for number, (source, _, compound) in enumerate(new, start=1):
        unknown = [word for word in split_compound(compound) if word not in lexicon]
        if f" {compound} " not in f" {source} " or unknown:
            what = f"'{unknown[0]}' is not in {files[LEXICON]}" if unknown else f"it is not in '{source}'"
            raise UserError(f"{files[NEW_COMPOUNDS[2]]}:{number}: the compound '{compound}': {what}; fetch it again")
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
    divide = load_subwords(files[CODE])
    made = {split: [Example(source, divide(target)) for source, target in pairs[split]] for split in pairs}
    made["cg_test"] = [Example(text, target.replace(" ", ""), find_phrase_type(found)) for text, target, found in new]
    columns, extra = {"cg_test": {"compound": compounds}}, {"lexicon.json": lexicon}
    protocol = "reduced" if reduced else "paper"
    return Seq2SeqDataset(made, notes, protocol, columns=columns, files=extra, whole_targets=["cg_test"])


def load_subwords(path: Path) -> Callable[[str], str]:
    """Return the function that splits words into subwords: `幼@@ 儿@@ 园`. Raises UserError for a malformed merge."""
    from subword_nmt.apply_bpe import BPE  # not at the top, because reading the catalogue imports this module

    lines = read_text_lines(path)
    for number, line in enumerate(lines, start=1):  # BPE would end the process
        if len(line.strip(" ").split(" ")) != 2 or (number == 1 and line != VERSION):
            expected = VERSION if number == 1 else "two subwords with a space between them"
            raise UserError(f"{path}:{number}: expected {expected}; fetch it again")
    return BPE(io.StringIO("\n".join(lines))).process_line


def reduce_spaces(line: str) -> str:
    """Reduce repeated spaces, which a few of upstream's lines contain, to one."""
    return " ".join(line.split())


def sample_splits(
    pairs: list[Pair], compounds: list[str], settings: Options
) -> tuple[dict[str, list[Pair]], list[str]]:
    """Sample train, valid and test from the pairs whose source has none of `compounds`. Returns (splits, notes)."""
    new = {tuple(compound.split(" ")) for compound in compounds}
    lengths = {len(words) for words in new}
    kept = [pair for pair in pairs if new.isdisjoint(iterate_ngrams(tuple(pair[0].split(" ")), lengths))]
    if len(kept) <= 2 * settings.held_out:
        raise settings.make_error(f"key 'held_out' is {settings.held_out}; it must be below half of {len(kept)} pairs")
    drawn = random.Random(f"{settings.seed}/held_out").sample(range(len(kept)), 2 * settings.held_out)
    places = {"valid": sorted(drawn[: settings.held_out]), "test": sorted(drawn[settings.held_out :])}
    splits = {"train": [kept[i] for i in sorted(set(range(len(kept))) - set(drawn))]}
    splits |= {split: [kept[i] for i in rows] for split, rows in places.items()}
    return splits, [
        f"train: {len(splits['train'])} of the {len(pairs)} pairs of upstream's validation and test sets, in place of "
        "upstream's training set: numbers are not comparable with published ones",
        f"left out: {len(pairs) - len(kept)} pairs with a compound of cg_test",
        f"valid and test: {settings.held_out} pairs each, drawn with seed {settings.seed}",
    ]
