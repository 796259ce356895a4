"""Stand-in articles and books in the formats of Wikipedia's and BookCorpus's files.

The sentences come from the stand-in translations (`stand_ins.wmt`). There is a tokenizer, too.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from workflow_scripts.data.formats.tokenizer_training import train_wordpiece
from workflow_scripts.data.sources.task_sources import write_tar
from workflow_scripts.data.stand_ins import sememes, wmt

ARTICLES = 60
PARAGRAPHS = 3  # of an article
LINES = 400  # of books
VOCABULARY = 300


def write_corpora(folder: Path) -> dict[str, Path]:
    """Write one Parquet file, the archive, tokenizer and sememes.

    Returns their paths by source name.
    """
    # Not imported at the top, because reading the catalogue imports this module and must be fast.
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = random.Random("corpora stand-in")
    texts = [generate_article(rng, f"Matter {number}") for number in range(ARTICLES)]
    lines = generate_sentences(rng, LINES)
    shard = folder / "wikipedia.parquet"
    table = pa.table({"id": [str(number) for number in range(ARTICLES)], "text": texts})
    pq.write_table(table, shard, row_group_size=20)
    archive = folder / "bookcorpus.tar.bz2"
    books = {
        "books_large_p1.txt": format_book(lines[::2]),
        "books_large_p2.txt": format_book(lines[1::2]),
    }
    write_tar(archive, "w:bz2", books)
    tokenizer = folder / "tokenizer.json"
    train_wordpiece(VOCABULARY, [*texts, *lines]).save(str(tokenizer))
    return {
        "wikipedia/train-00000-of-00001.parquet": shard,
        "bookcorpus/bookcorpus.tar.bz2": archive,
        "bert/tokenizer.json": tokenizer,
        **sememes.write_sememes(folder),
    }


def generate_article(rng: random.Random, heading: str) -> str:
    """Generate paragraphs, one per line, with a heading after the first."""
    paragraphs = []
    for _ in range(PARAGRAPHS):
        paragraphs.append(" ".join(generate_sentences(rng, rng.randint(2, 6))))
    return "\n\n".join([paragraphs[0], heading, *paragraphs[1:]])


def format_book(lines: Sequence[str]) -> bytes:
    """Return the content of a file of lower-case lines."""
    return "".join(f"{line.lower()}\n" for line in lines).encode()


def generate_sentences(rng: random.Random, count: int) -> Sequence[str]:
    """Generate sentences with a capital letter and a full stop."""
    sentences = []
    for _ in range(count):
        text = wmt.generate_sentence(rng).first.removesuffix(" .") + "."
        sentences.append(text[0].upper() + text[1:])
    return sentences
