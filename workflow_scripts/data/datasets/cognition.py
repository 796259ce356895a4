"""CoGnition (Li et al. 2021): English to Chinese, tested on 2,160 new compounds.

`test` is of the training distribution. In `cg_test`, each new compound is in five contexts, in
upstream's order, `subset` is the phrase type (NP, VP or PP), the column `compound` is the compound,
and targets are whole texts, because upstream does not split them into words. Other targets are
subwords of upstream's byte-pair encoding (`@@` joins a subword to the next one).
"""

import random
from pathlib import Path
from typing import Literal

from pydantic import PositiveInt

from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.datasets.contamination import PhraseIndex
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import read_aligned_lines, read_text_lines
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins import cognition as stand_in
from workflow_scripts.evaluation.compounds import Lexicon, find_phrase_type

NEW_COMPOUNDS = ["cg-test_cg-test.en", "cg-test_cg-test.zh", "cg-test_cg-test.compound"]
LEXICON = "eval_lexicon"
CODE = "processed_code"

Pair = tuple[str, str]


class Options(DataOptions):
    """What is trained on.

    `training: valid_and_test` trains on upstream's validation and test sets, without sentences with
    a new compound. `held_out` of these pairs are then sampled for each of valid and test.
    """

    training: Literal["upstream", "valid_and_test"] = "upstream"
    held_out: PositiveInt = 1000
    seed: int = 0

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "test", "cg_test"]


def read_cognition_lexicon(path: Path) -> Lexicon:
    """Read lines `word TAB translation/translation/...`.

    `/` means that a word needs no translation and gets [].
    """
    lexicon: Lexicon = {}
    for line in read_text_lines(path):
        word, translations = line.split("\t")
        if translations == "/":
            lexicon[word] = []
        else:
            lexicon[word] = translations.split("/")
    return lexicon


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits and lexicon.json. Raises UserError for missing or malformed sources."""
    with settings.open_sources(sources, stand_in.write_cognition, settings.seed) as files:
        return build_cognition(settings, files)


def build_cognition(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Build the data set from upstream's files, or from stand-in ones, by source name."""
    # Not imported at the top, because reading the catalogue imports this module.
    from subword_nmt.apply_bpe import BPE

    trains_on_valid_and_test = settings.training == "valid_and_test"
    splits = ["train", "valid", "test"]
    if trains_on_valid_and_test:
        splits.remove("train")
    names = []
    for split in splits:
        names += [f"{split}.en", f"{split}.zh"]
    names += [*NEW_COMPOUNDS, LEXICON, CODE]
    files = {name: settings.find_source(sources, f"cognition/{name}") for name in names}

    lexicon = read_cognition_lexicon(files[LEXICON])
    test_rows = read_clean_lines([files[name] for name in NEW_COMPOUNDS])
    compounds = [compound for _english, _chinese, compound in test_rows]
    pairs: dict[str, list[Pair]] = {}
    for split in splits:
        pairs[split] = read_clean_lines([files[f"{split}.en"], files[f"{split}.zh"]])
    notes = []
    protocol = "paper"
    if trains_on_valid_and_test:
        pairs, notes = sample_splits(pairs["valid"] + pairs["test"], compounds, settings)
        protocol = "reduced"

    with open(files[CODE], encoding="utf-8") as stream:
        split_words = BPE(stream).process_line  # into subwords: `幼@@ 儿@@ 园`
    examples: dict[str, list[Example]] = {}
    for split, rows in pairs.items():
        examples[split] = [Example(english, split_words(chinese)) for english, chinese in rows]
    examples["cg_test"] = []
    for english, chinese, compound in test_rows:
        phrase_type = find_phrase_type(compound)
        examples["cg_test"].append(Example(english, chinese.replace(" ", ""), phrase_type))
    return Seq2SeqDataset(
        examples,
        notes,
        protocol,
        columns={"cg_test": {"compound": compounds}},
        files={DataFolder(Path()).lexicon.name: lexicon},
        whole_targets=["cg_test"],
    )


def read_clean_lines(paths: list[Path]) -> list[tuple[str, ...]]:
    """Read aligned lines, with one space for several, which a few of upstream's lines have."""
    rows = []
    for texts in read_aligned_lines(paths):
        rows.append(tuple(" ".join(text.split()) for text in texts))
    return rows


def sample_splits(
    pairs: list[Pair], compounds: list[str], settings: Options
) -> tuple[dict[str, list[Pair]], list[str]]:
    """Sample train, valid and test from the pairs whose source has none of `compounds`.

    Valid and test have `settings.held_out` pairs each, train all others. Returns (splits, notes).
    Raises UserError if no pair is left for train.
    """
    phrases = PhraseIndex(compounds)
    kept = [pair for pair in pairs if not phrases.is_part_of(pair[0])]
    held_out = settings.held_out
    if len(kept) <= 2 * held_out:
        raise settings.make_error(
            f"key 'held_out' is {held_out}; it must be below half of {len(kept)} pairs"
        )
    rng = random.Random(f"{settings.seed}/held_out")
    held_out_positions = rng.sample(range(len(kept)), 2 * held_out)
    positions_of_split = {
        "train": set(range(len(kept))) - set(held_out_positions),
        "valid": held_out_positions[:held_out],
        "test": held_out_positions[held_out:],
    }
    splits = {}
    for split, positions in positions_of_split.items():
        splits[split] = [kept[position] for position in sorted(positions)]
    return splits, [
        f"train: {len(splits['train'])} of the {len(pairs)} pairs of upstream's validation and "
        "test sets, in place of upstream's training set: numbers are not comparable with "
        "published ones",
        f"left out: {len(pairs) - len(kept)} pairs with a compound of cg_test",
        f"valid and test: {held_out} pairs each, drawn with seed {settings.seed}",
    ]
