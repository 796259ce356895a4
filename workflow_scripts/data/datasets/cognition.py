"""CoGnition (Li et al. 2021): English to Chinese, tested on 2,160 new compounds.

`test` is of the training distribution. In `cg_test`, each new compound is in five contexts, in
upstream's order, `subset` is the phrase type (NP, VP or PP), the column `compound` is the compound,
and targets are whole texts, because upstream does not split them into words. Other targets are
subwords of upstream's byte-pair encoding (`@@` joins a subword to the next one).
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.datasets.contamination import PhraseIndex
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import read_aligned_lines, read_text_lines
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example, sample_indices
from workflow_scripts.data.stand_ins import cognition as stand_in
from workflow_scripts.evaluation.compounds import Lexicon, find_phrase_type

NEW_COMPOUNDS = ["cg-test_cg-test.en", "cg-test_cg-test.zh", "cg-test_cg-test.compound"]
LEXICON = "eval_lexicon"
CODE = "processed_code"
RARE = 0.1  # how often a character counts as a word if it is none in `train`

Pair = tuple[str, str]
SplitWords = Callable[[str], str]  # the words of a text into subwords


class Options(DataOptions):
    """What is trained on.

    `training: valid_and_test` trains on upstream's validation and test sets, without sentences with
    a new compound. `held_out` of these pairs are then sampled for each of valid and test.
    `cg_valid_share` above 0 makes the split `cg_valid`, this share of `cg_test`, in which it stays.
    """

    training: Literal["upstream", "valid_and_test"] = "upstream"
    held_out: PositiveInt = 1000
    cg_valid_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    seed: int = 0

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        splits = ["train", "valid", "test", "cg_test"]
        if self.cg_valid_share:
            splits.append("cg_valid")
        return splits


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
        split_words = load_subword_splitter(settings, files)
        dataset = build_cognition(settings, files, split_words)
        return add_cg_valid(dataset, settings, split_words)


def load_subword_splitter(settings: Options, sources: dict[str, Path]) -> SplitWords:
    """Load upstream's byte-pair encoding, which splits words into subwords: `幼@@ 儿@@ 园`."""
    # Not imported at the top, because reading the catalogue imports this module.
    from subword_nmt.apply_bpe import BPE

    with open(settings.find_source(sources, f"cognition/{CODE}"), encoding="utf-8") as stream:
        return BPE(stream).process_line


def build_cognition(
    settings: Options, sources: dict[str, Path], split_words: SplitWords
) -> Seq2SeqDataset:
    """Build the data set, without `cg_valid`, from upstream's files or from stand-in ones."""
    trains_on_valid_and_test = settings.training == "valid_and_test"
    splits = ["train", "valid", "test"]
    if trains_on_valid_and_test:
        splits.remove("train")
    names = []
    for split in splits:
        names += [f"{split}.en", f"{split}.zh"]
    names += [*NEW_COMPOUNDS, LEXICON]
    files = {name: settings.find_source(sources, f"cognition/{name}") for name in names}

    lexicon = read_cognition_lexicon(files[LEXICON])
    test_rows = read_clean_lines([files[name] for name in NEW_COMPOUNDS])
    compounds = [compound for _english, _chinese, compound in test_rows]
    pairs: dict[str, list[Pair]] = {}
    for split in splits:
        rows = read_clean_lines([files[f"{split}.en"], files[f"{split}.zh"]])
        pairs[split] = [(english, chinese) for english, chinese in rows]
    notes = []
    protocol = "paper"
    if trains_on_valid_and_test:
        pairs, notes = sample_splits(pairs["valid"] + pairs["test"], compounds, settings)
        protocol = "reduced"

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


def add_cg_valid(
    dataset: Seq2SeqDataset, settings: Options, split_words: SplitWords
) -> Seq2SeqDataset:
    """Add the split `cg_valid`, a share of the rows of `cg_test`, if the settings ask for it."""
    if not settings.cg_valid_share:
        return dataset
    rows = dataset.splits["cg_test"]
    size = math.floor(len(rows) * Fraction(str(settings.cg_valid_share)))
    positions = sample_indices(rows, size, settings.seed, "cg_valid")
    sample = [rows[position] for position in positions]
    note = (
        f"cg_valid: {len(sample)} of the {len(rows)} pairs of cg_test, drawn with seed "
        f"{settings.seed}; they stay inside cg_test, as in SQ-Transformer's paper"
    )
    cg_valid = split_targets(sample, dataset.splits["train"], split_words)
    return replace(
        dataset,
        splits=dataset.splits | {"cg_valid": cg_valid},
        notes=[*dataset.notes, note],
    )


def split_targets(
    rows: Sequence[Example], usual: Sequence[Example], split_words: SplitWords
) -> list[Example]:
    """Split the targets of rows of `cg_test`, whole texts, into subwords.

    What a word is, is seen in the targets of the `usual` rows.
    """
    words: Counter[str] = Counter()
    for row in usual:
        words.update(row.target.replace("@@ ", "").split(" "))
    words_of_rows = split_into_words([row.target for row in rows], words)
    examples = []
    for row, words_of_row in zip(rows, words_of_rows, strict=True):
        examples.append(Example(row.source, split_words(" ".join(words_of_row))))
    return examples


def split_into_words(texts: Sequence[str], words: Counter[str]) -> list[list[str]]:
    """Split each text into its most probable sequence of words.

    A word is as probable as it is frequent in `words`. Upstream splits Chinese in all its files but
    `cg_test`. On 2,000 of these sentences, with the words of the others, 97% of upstream's words
    are found.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    characters = sorted(set("".join(texts)))
    counts = dict.fromkeys(characters, RARE) | words
    # The library needs an entry for unknown characters, the first; there are none.
    vocabulary = [("", 0.0)]
    for word, count in counts.items():
        vocabulary.append((word, math.log(count / words.total())))
    tokenizer = Tokenizer(Unigram(vocabulary, unk_id=0))
    return [encoded.tokens for encoded in tokenizer.encode_batch(list(texts))]


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
