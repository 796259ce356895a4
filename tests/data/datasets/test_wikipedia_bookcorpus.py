"""Wikipedia and BookCorpus from end to end on small files in upstream's forms; broken ones; bounded
memory.
"""

import json
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from tests.data.memory import measure_peak
from tests.data.packing import pack
from tests.data.preparing import prepare_data, write_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import wikipedia_bookcorpus
from workflow_scripts.data.datasets.wikipedia_bookcorpus import (
    BOOKCORPUS,
    TOKENIZER,
    read_articles,
)
from workflow_scripts.data.formats import hownet, punkt
from workflow_scripts.data.stand_ins import corpora
from workflow_scripts.tasks.masked_lm.batches import read_ordered_sentences, read_sentence_ids

SPEC = {
    "task": "t",
    "prepare": "workflow_scripts.data.datasets.wikipedia_bookcorpus",
    "options": {},
    "sources": [],
}
TEXT = (
    "The council met Dr. Smith in June. It rejects the budget. Everyone left.\n\nHistory\n\nThe vote.\n"
    "The member supports new rules. The report delays the vote."
)
SHARD = "wikipedia/train-00000-of-00041.parquet"


@pytest.fixture
def sources(tmp_path, mirror):
    """The stand-in's files under the names of upstream's."""
    (tmp_path / "sources").mkdir()
    found = corpora.write_corpora(tmp_path / "sources")
    shard = found.pop("wikipedia/train-00000-of-00001.parquet")
    return {SHARD: shard, punkt.SOURCE: mirror / punkt.SOURCE, **found}


def made(tmp_path, sources, **options):
    out = tmp_path / "data"
    write_data(
        prepare_data(wikipedia_bookcorpus, {"validation_every": 5, **options}, sources),
        SPEC | {"protocol": "paper"},
        out,
    )
    return out, json.loads((out / "dataset.json").read_text())


def texts(out, split):
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    rows = pq.read_table(out / f"{split}.parquet").to_pylist()
    return [
        (row["source"], *(tokenizer.decode(row[f"{s}_ids"]) for s in ("first", "second")))
        for row in rows
    ]


def test_sentences_of_a_paragraph_make_pairs(tmp_path, sources):
    pq.write_table(pa.table({"id": ["1"], "text": [TEXT]}), sources[SHARD])
    counts = prepare_data(wikipedia_bookcorpus, {}, sources).fill(tmp_path)["splits"]
    wikipedia = [row[1:] for row in texts(tmp_path, "train") if row[0] == "wikipedia"]
    # Punkt knows `Dr.`; the third sentence of the first paragraph has no partner, nor have
    # headings.
    assert [[side.replace(" .", ".") for side in pair] for pair in wikipedia] == [
        ["the council met dr. smith in june.", "it rejects the budget."],
        ["the member supports new rules.", "the report delays the vote."],
    ]
    assert counts["train"]["wikipedia"] == 2


def test_every_file_that_training_reads(tmp_path, sources):
    out, summary = made(tmp_path, sources)
    assert {path.name for path in out.iterdir()} == {
        *("train.parquet", "train.mapped", "valid.parquet", "tokenizer.json"),
        *("sememes.parquet", "sememe_names.json", "dataset.json"),
    }
    counts = summary["splits"]
    for split, found in counts.items():
        first, second = read_sentence_ids(out, split)
        assert (
            len(first.length)
            == len(second.length)
            == found["rows"]
            == found["wikipedia"] + found["bookcorpus"]
        )
        assert len(first.ids) + len(second.ids) == found["tokens"]
        assert (read_ordered_sentences(out, split)[2] is not None) == (split == "train")
    assert counts["valid"]["rows"] == (counts["train"]["rows"] + counts["valid"]["rows"]) // 5
    assert summary["protocol"] == "paper"
    assert counts["train"]["bookcorpus"] + counts["valid"]["bookcorpus"] == corpora.LINES // 2
    known, _ = hownet.read_sememes(sources[hownet.SOURCES[0]].parent)
    table = pq.read_table(out / "sememes.parquet").to_pylist()
    assert {row["word"]: row["sememes"] for row in table} == known


def test_lines_of_books_in_their_order(tmp_path, sources):
    lines = [
        f"the council {verb} the vote."
        for verb in ("supports", "rejects", "prepares", "discusses", "delays", "welcomes")
    ]
    content = "\n\n".join(lines).encode()
    pack(sources[BOOKCORPUS], dict.fromkeys(["../../escaped.txt", "notes.md"], content))
    prepare_data(wikipedia_bookcorpus, {}, sources).fill(tmp_path)
    books = [row[1:] for row in texts(tmp_path, "train") if row[0] == "bookcorpus"]
    assert books == [(lines[i], lines[i + 1]) for i in (0, 2, 4)]
    assert not (tmp_path.parent / "escaped.txt").exists()


def test_long_sentences_are_cut(tmp_path, sources):
    out, _ = made(tmp_path, sources, longest=3)
    first, second = read_sentence_ids(out, "train")
    assert first.length.max() == second.length.max() == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (SHARD, b"no parquet", "has no column text of articles"),
        (BOOKCORPUS, b"no archive", "cannot be read"),
        (TOKENIZER, b"{}", "cannot be read as a tokenizer"),
        (punkt.SOURCE, b"no archive", "cannot be read"),
    ],
)
def test_broken_sources_are_named(tmp_path, sources, name, content, message):
    broken = tmp_path / "broken"
    broken.write_bytes(content)
    with pytest.raises(UserError, match=f"broken.*{message}.*fetch it again") as caught:
        made(tmp_path, sources | {name: broken})
    assert "\n" not in str(caught.value) and not (tmp_path / "data").exists()


def test_a_folder_may_be_named_like_a_pattern(tmp_path, sources):
    shard = tmp_path / "recompose[2]" / "articles*.parquet"
    shard.parent.mkdir()
    shard.write_bytes(sources[SHARD].read_bytes())
    assert list(read_articles([shard])) == pq.read_table(sources[SHARD])["text"].to_pylist()


def test_an_article_without_text_is_one_line(tmp_path):
    shard = tmp_path / "articles.parquet"
    pq.write_table(pa.table({"text": ["One. Two.", None]}), shard)
    with pytest.raises(UserError, match=r"articles\.parquet has no column text of .*without text"):
        list(read_articles([shard]))


@pytest.mark.faults
def test_memory_does_not_grow_with_the_corpora(tmp_path, sources):
    """Eight times the articles and lines: the peak stays. What is more, kept as text, would be 45
    MB and more.
    """
    table = pq.read_table(sources[SHARD])
    with tarfile.open(sources[BOOKCORPUS]) as tar:
        lines = tar.extractfile("books_large_p1.txt").read()
    found, options = [], {"validation_every": 99}
    for times in (15, 120):
        folder = tmp_path / str(times)
        folder.mkdir()
        shard, books = folder / "articles.parquet", folder / "books.tar.bz2"
        pq.write_table(pa.concat_tables([table] * times), shard, row_group_size=200)
        pack(books, {"books_large_p1.txt": lines * times})
        given = sources | {SHARD: shard, BOOKCORPUS: books}
        found.append(
            measure_peak(folder, "wikipedia_bookcorpus", options, given, ARTICLES=50, LINES=500)
        )
    (small, before), (large, after) = found
    assert large > 7 * small
    assert after - before < 25_000, f"KiB: {found}"
