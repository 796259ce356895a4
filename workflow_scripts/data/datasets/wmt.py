"""WMT translation data, prepared like fairseq's recipes.

Memory does not grow with the corpora. Texts are pieces (`hel@@ lo`). `test` and `valid` also have
`target_words` (Moses tokens), `test` has `target_text` (the unchanged reference translation).
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import StrictModel
from workflow_scripts.data.formats.parallel_text import (
    extract_files,
    iterate_lines,
    map_in_order,
    pair_lines,
    read_segments,
    split_into_chunks,
)
from workflow_scripts.data.prepared import StreamedDataset
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.stand_ins import wmt as stand_in

PAIRS_TO_TOKENISE = 2_000  # in one call
PAIRS_TO_ENCODE = 20_000  # in one call
Language = Literal["en", "de", "fr"]


class Corpus(StrictModel):
    """An archive of the sources, and its file for each language."""

    archive: str
    files: dict[Language, str]


class Options(DataOptions):
    """The corpora and what of them is used.

    validation_every: every n-th training line is used for validation instead.
    merges: maximum number of merges of the byte-pair encoding, which both languages share.
    longest, ratio: training and validation pairs are dropped if a side is empty or has more than
        `longest` pieces, or more than `ratio` times the pieces of the other side.
    """

    source: Language
    target: Language
    corpora: Annotated[list[Corpus], Field(min_length=1)]
    test: Corpus
    validation_every: Annotated[int, Field(gt=1)]
    merges: PositiveInt
    longest: PositiveInt = 250
    ratio: Annotated[float, Field(ge=1)] = 1.5

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> StreamedDataset:
    """Prepare the splits. Malformed sources raise UserError later, in `fill`."""
    for corpus in (*settings.corpora, settings.test):
        for language in (settings.source, settings.target):
            if language not in corpus.files:
                raise settings.make_error(
                    f"{corpus.archive} has no file for the language '{language}'; name it"
                )
        if settings.origin == "upstream":
            settings.find_source(sources, corpus.archive)
    notes = [
        "train, valid: without pairs with an empty side, a side of over "
        f"{settings.longest} pieces, or over {settings.ratio} times as many pieces on one side",
        f"valid: the last of each {settings.validation_every} training lines",
    ]
    corpora = [(corpus.archive, corpus.files) for corpus in settings.corpora]
    test = (settings.test.archive, settings.test.files)

    def fill(folder: Path) -> dict[str, Any]:
        with settings.open_sources(sources, stand_in.write_wmt, corpora, test) as archives:
            return write_translations(folder, settings, archives)

    return StreamedDataset(fill, notes)


def write_translations(
    folder: Path, settings: Options, archives: dict[str, Path]
) -> dict[str, Any]:
    """Write the data into `folder`. Returns the counts for dataset.json.

    Temporary files hold tokenised lines, from which the merges are learnt, then joint pieces of
    both languages, from which each language gets its own vocabulary.
    """
    # Not imported at the top, because reading the catalogue imports this module and must not wait
    # for numpy and regex.
    from workflow_scripts.data.formats.translation_tables import (
        Limits,
        learn_byte_pairs,
        write_tables,
    )

    scratch = folder / "scratch"
    scratch.mkdir()
    characters, last_characters = write_training_text(scratch, settings, archives)
    test_columns = write_test_text(scratch, settings, archives)
    languages = (settings.source, settings.target)
    both = chain.from_iterable(
        iterate_lines(scratch / f"train.{language}") for language in languages
    )
    tokenizer = learn_byte_pairs(both, settings.merges, characters, last_characters)
    texts = {}
    for split in ("train", "valid", "test"):
        lines = [iterate_lines(scratch / f"{split}.{language}") for language in languages]
        texts[split] = split_into_chunks(zip(*lines, strict=True), PAIRS_TO_ENCODE)
    limits = Limits(settings.longest, settings.ratio)
    content = write_tables(folder, scratch, tokenizer, texts, limits, test_columns)
    shutil.rmtree(scratch)
    return content


def iterate_training_pairs(
    scratch: Path, settings: Options, archives: dict[str, Path]
) -> Iterator[tuple[str, str]]:
    """Yield the aligned lines of all corpora. One corpus at a time is unpacked into `scratch`.

    Raises UserError for an archive that is broken or lacks a file, and for lines that do not pair.
    """
    for corpus in settings.corpora:
        archive = archives[corpus.archive]
        raw = locate_raw_files(scratch, settings, corpus)
        extract_files(archive, raw)
        source_file, target_file = raw.values()
        yield from pair_lines(source_file, target_file, f"{archive}: {' and '.join(raw)}")
        for path in raw.values():
            path.unlink()


def locate_raw_files(scratch: Path, settings: Options, corpus: Corpus) -> dict[str, Path]:
    """Return where the files of a corpus are unpacked to: name in the archive -> path."""
    raw = {}
    for language in (settings.source, settings.target):
        raw[corpus.files[language]] = scratch / f"raw.{language}"
    return raw


def write_training_text(
    scratch: Path, settings: Options, archives: dict[str, Path]
) -> tuple[set[str], set[str]]:
    """Write the tokenised lines `{train,valid}.<language>`.

    Returns all characters, and those that end a token.
    """
    from workflow_scripts.data.formats.moses import tokenise_pairs

    languages = (settings.source, settings.target)
    characters: set[str] = set()
    last_characters: set[str] = set()
    number = 0
    pairs = iterate_training_pairs(scratch, settings, archives)
    chunks = split_into_chunks(pairs, PAIRS_TO_TOKENISE)
    with ExitStack() as files:
        streams = {}
        for split in ("train", "valid"):
            for language in languages:
                path = scratch / f"{split}.{language}"
                streams[split, language] = files.enter_context(
                    open(path, "w", newline="\n", encoding="utf-8")
                )
        for tokenised in map_in_order(tokenise_pairs, chunks, *languages):
            characters |= tokenised.characters
            last_characters |= tokenised.last_characters
            for source, target in zip(tokenised.source, tokenised.target, strict=True):
                number += 1
                split = "train"
                if number % settings.validation_every == 0:
                    split = "valid"
                streams[split, settings.source].write(source + "\n")
                streams[split, settings.target].write(target + "\n")
    return characters, last_characters


def write_test_text(
    scratch: Path, settings: Options, archives: dict[str, Path]
) -> dict[str, list[str]]:
    """Write the tokenised lines `test.<language>`.

    Returns the column with the unchanged reference translations.
    """
    from workflow_scripts.data.formats.moses import tokenise_moses

    archive = archives[settings.test.archive]
    raw = locate_raw_files(scratch, settings, settings.test)
    extract_files(archive, raw)
    sources, targets = (read_segments(path, f"{archive}: {name}") for name, path in raw.items())
    if len(sources) != len(targets):
        sizes = f"{len(sources)} segments on one side, {len(targets)} on the other"
        raise UserError(f"{archive}: {' and '.join(raw)}: {sizes}; fetch it again")
    for language, texts in {settings.source: sources, settings.target: targets}.items():
        lines = []
        for text in texts:
            line = tokenise_moses(text.replace("’", "'"), language, normalise=False)
            lines.append(f"{line}\n")
        (scratch / f"test.{language}").write_text("".join(lines), "utf-8", newline="\n")
    return {"target_text": targets}
