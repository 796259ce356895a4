"""Stand-in articles and books in the formats of Wikipedia's Parquet files and BookCorpus's archive, with a tokenizer.

The sentences come from the stand-in translations (`stand_ins.wmt`).
"""

import random
from collections.abc import Sequence
from pathlib import Path

from workflow_scripts.data.formats.tokenizer_training import train_wordpiece
from workflow_scripts.data.sources.task_sources import write_tar
from workflow_scripts.data.stand_ins import sememes, wmt

ARTICLES, PARAGRAPHS, LINES = 60, 3, 400
VOCABULARY = 300


def write_corpora(folder: Path) -> dict[str, Path]:
    """Write one Parquet file, the archive, tokenizer and sememes.

    Returns their paths by source name.
    """
    # Not imported at the top, because reading the catalogue imports this module and must be fast.
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = random.Random("corpora stand-in")
    texts = []
    for number in range(ARTICLES):  # a heading and paragraphs, one per line
        paragraphs = [
            " ".join(generate_sentences(rng, rng.randint(2, 6))) for _ in range(PARAGRAPHS)
        ]
        texts.append("\n\n".join([paragraphs[0], f"Matter {number}", *paragraphs[1:]]))
    lines = generate_sentences(rng, LINES)
    paths = {
        name: folder / name.replace("/", "-")
        for name in (
            "wikipedia/train-00000-of-00001.parquet",
            "bookcorpus/bookcorpus.tar.bz2",
            "bert/tokenizer.json",
        )
    }
    shard, archive, tokenizer = paths.values()
    pq.write_table(
        pa.table({"id": [str(i) for i in range(ARTICLES)], "text": texts}), shard, row_group_size=20
    )
    parts = {"books_large_p1.txt": lines[::2], "books_large_p2.txt": lines[1::2]}
    books = {
        name: "".join(f"{line.lower()}\n" for line in part).encode() for name, part in parts.items()
    }
    write_tar(archive, "w:bz2", books)
    train_wordpiece(VOCABULARY, [*texts, *lines]).save(str(tokenizer))
    return paths | sememes.write_sememes(folder)


def generate_sentences(rng: random.Random, count: int) -> Sequence[str]:
    """Generate sentences with a capital letter and a full stop."""
    found = [wmt.generate_sentence(rng)["first"].removesuffix(" .") + "." for _ in range(count)]
    return [text[0].upper() + text[1:] for text in found]
