"""Translation data from end to end on small archives in upstream's formats; broken ones; bounded
memory.
"""

import gzip
import json
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.memory import measure_peak
from tests.data.packing import pack
from tests.data.preparing import prepare_data, write_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import wmt
from workflow_scripts.data.formats.parallel_text import pair_lines
from workflow_scripts.data.formats.translation_tables import Limits, mask_lengths
from workflow_scripts.data.prepared import read_vocabularies
from workflow_scripts.data.token_ids import UNK
from workflow_scripts.tasks.seq2seq.batches import read_pairs

OPTIONS = {
    "source": "en",
    "target": "fr",
    "merges": 30,
    "validation_every": 5,
    "corpora": [
        {
            "archive": "wmt/news.tgz",
            "files": {"en": "training/news.fr-en.en", "fr": "training/news.fr-en.fr"},
        },
        {"archive": "wmt/giga.tar", "files": {"en": "giga.en.gz", "fr": "giga.fr.gz"}},
    ],
    "test": {
        "archive": "wmt/test.tgz",
        "files": {"en": "test/news-src.en.sgm", "fr": "test/news-ref.fr.sgm"},
    },
}
ENGLISH = [f"The well-known member number {i % 4} can't vote." for i in range(12)]
FRENCH = [f"L'éminent membre numéro {i % 4} ne peut pas voter." for i in range(12)]
TEST = {
    "en": '<srcset setid="t">\n<seg id="1"> It’s a ☃ vote. </seg>\n<seg id="2">The member</seg>\n</srcset>\n',
    "fr": '<refset setid="t">\n<seg id="1">C’est un vote.</seg>\n<seg id="2">Le membre</seg>\n</refset>\n',
}


def text(lines):
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def archives(tmp_path):
    def make(english=ENGLISH, french=FRENCH, test=TEST, without=None):
        giga = {
            "giga.en.gz": gzip.compress(text(ENGLISH[::-1])),
            "giga.fr.gz": gzip.compress(text(FRENCH[::-1])),
        }
        content = {
            "news.tgz": {
                "../../escaped": b"a path that leads out",
                "training/news.fr-en.en": text(english),
                "training/news.fr-en.fr": text(french),
            },
            "giga.tar": giga,
            "test.tgz": {
                f"test/news-{'src' if s == 'en' else 'ref'}.{s}.sgm": test[s] for s in ("en", "fr")
            },
        }
        for files in content.values():
            files.pop(without, None)
        return {f"wmt/{name}": pack(tmp_path / name, files) for name, files in content.items()}

    return make


def made(tmp_path, sources, **options):
    options = OPTIONS | options
    spec = {"task": "t", "prepare": "workflow_scripts.data.datasets.wmt", "protocol": "paper"}
    out = tmp_path / "data"
    write_data(prepare_data(wmt, options, sources), spec | {"options": options, "sources": []}, out)
    return out, json.loads((out / "dataset.json").read_text())


def test_from_archives_to_tables(tmp_path, archives):
    out, summary = made(tmp_path, archives())
    names = {path.name for path in out.iterdir()}
    assert names == {
        "train.parquet",
        "valid.parquet",
        "test.parquet",
        "vocabulary.json",
        "dataset.json",
    }
    assert not (tmp_path / "escaped").exists() and not (tmp_path.parent / "escaped").exists()
    rows = {split: counts["rows"] for split, counts in summary["splits"].items()}
    assert rows == {"train": 20, "valid": 4, "test": 2}
    valid = pq.read_table(out / "valid.parquet").to_pylist()
    # Every fifth of the 24 lines of both corpora: the giga corpus continues the count.
    assert [row["source"].replace("@@ ", "") for row in valid] == [
        f"The well @-@ known member number {i} can &apos;t vote ." for i in (0, 1, 1, 0)
    ]
    assert valid[0]["target_words"] == "L&apos; éminent membre numéro 0 ne peut pas voter ."
    assert valid[0]["target"].replace("@@ ", "") == valid[0]["target_words"]
    vocabulary = read_vocabularies(out)
    for split in ("train", "valid"):
        table, ids = pq.read_table(out / f"{split}.parquet"), read_pairs(out, split)
        assert len(ids) == summary["splits"][split]["rows"]
        for side in ("source", "target"):
            for words, row in zip(
                table[side].to_pylist(), table[f"{side}_ids"].to_pylist(), strict=True
            ):
                assert [vocabulary[side][i] for i in row] == words.split(" ")


def test_the_test_set_keeps_its_text(tmp_path, archives):
    out, summary = made(tmp_path, archives())
    test = pq.read_table(out / "test.parquet").to_pylist()
    assert [row["target_text"] for row in test] == ["C’est un vote.", "Le membre"]
    assert [row["target_words"] for row in test] == ["C&apos; est un vote .", "Le membre"]
    assert UNK in test[0]["source_ids"]
    assert summary["splits"]["test"]["out_of_vocabulary_tokens"] >= 1


def test_each_side_has_its_own_vocabulary_by_frequency(tmp_path, archives):
    out, summary = made(tmp_path, archives())
    vocabulary, train = read_vocabularies(out), pq.read_table(out / "train.parquet")
    assert summary["vocabulary"] == {side: len(tokens) for side, tokens in vocabulary.items()}
    for side, tokens in vocabulary.items():
        ids = np.concatenate([np.array(row) for row in train[f"{side}_ids"].to_pylist()])
        counts = np.bincount(ids, minlength=len(tokens))[4:]
        assert (counts > 0).all() and (np.diff(counts) <= 0).all()
        assert ids.min() >= 4


def test_pairs_that_do_not_fit_are_left_out_after_the_split(tmp_path, archives):
    english = ["a b c", "a b c d e f", "", *ENGLISH[3:]]
    french = ["a b c d e", "a b", "a", *FRENCH[3:]]
    _, summary = made(tmp_path, archives(english, french), merges=1000, validation_every=6)
    counts = {
        "left_out": 3,
        "out_of_vocabulary_tokens": 0,
        "longest_source": 11,
        "longest_target": 10,
    }
    assert summary["splits"]["train"] | {"rows": 0} == counts | {"rows": 0}


@given(st.integers(0, 300), st.integers(0, 300))
def test_fitting_is_the_rule(source, target):
    kept = (
        1 <= source <= 250
        and 1 <= target <= 250
        and source / target <= 1.5
        and target / source <= 1.5
    )
    limits = Limits(longest=250, ratio=1.5)
    assert mask_lengths(np.array([source]), np.array([target]), limits).tolist() == [kept]


def test_the_other_direction_is_the_same_pairs(tmp_path, archives):
    forth, _ = made(tmp_path, archives())
    there = {
        split: pq.read_table(forth / f"{split}.parquet") for split in ("train", "valid", "test")
    }
    back, summary = made(tmp_path, archives(), source="fr", target="en")
    for split, table in there.items():
        turned = pq.read_table(back / f"{split}.parquet")
        assert turned["source"] == table["target"] and turned["target"] == table["source"]
    assert summary["protocol"] == "paper"
    assert pq.read_table(back / "test.parquet")["target_text"].to_pylist() == [
        "It’s a ☃ vote.",
        "The member",
    ]


def test_only_line_feeds_end_a_line(tmp_path):
    (tmp_path / "en").write_bytes(
        "a\u2028b\x0cc\r\n\xff\n".encode("latin-1", "ignore") + b"\xff d\n"
    )
    (tmp_path / "fr").write_bytes(b"1\n2\n3\n")
    assert [left for left, _ in pair_lines(tmp_path / "en", tmp_path / "fr", "x")] == [
        "ab\x0cc",
        "\ufffd",
        "\ufffd d",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"french": FRENCH[:9]},
            "news.fr-en.en and training/news.fr-en.fr: 12 lines on one side, 9 on the other",
        ),
        (
            {"english": ENGLISH[:3]},
            "news.fr-en.en and training/news.fr-en.fr: 3 lines on one side, 12 on the other",
        ),
        ({"test": TEST | {"fr": '<seg id="1">un</seg>'}}, "2 segments on one side, 1 on the other"),
        ({"test": TEST | {"fr": "<html>"}}, "news-ref.fr.sgm: has no segments"),
        ({"without": "training/news.fr-en.fr"}, "news.tgz: has no training/news.fr-en.fr"),
        ({"without": "giga.en.gz"}, "giga.tar: has no giga.en.gz"),
    ],
)
def test_malformed_archives_are_named(tmp_path, archives, changes, message):
    sources = archives(**changes)
    with pytest.raises(UserError) as caught:
        made(tmp_path, sources)
    assert message in str(caught.value) and "fetch it again" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()
    assert not list(tmp_path.glob(".data*"))


def test_a_torn_archive(tmp_path, archives):
    draw = random.Random(1)
    noise = [f"{draw.getrandbits(64):x}" for _ in range(2000)]
    for kept, message in ((20_000, "cannot be read"), (150, "")):
        sources = archives(noise, noise)
        sources["wmt/news.tgz"].write_bytes(sources["wmt/news.tgz"].read_bytes()[:kept])
        with pytest.raises(UserError, match=rf"news.tgz.? ?{message}.*fetch it again"):
            made(tmp_path, sources)


@pytest.mark.faults
def test_memory_does_not_grow_with_the_corpora(tmp_path, archives):
    """Eight times the pairs, of the same words: the peak stays. 42,000 pairs more, kept, would be
    30 MB and more.
    """
    found = []
    for times in (500, 4000):
        folder = tmp_path / str(times)
        folder.mkdir()
        made = archives(ENGLISH * times, FRENCH * times)
        sources = {name: path.rename(folder / path.name) for name, path in made.items()}
        found.append(
            measure_peak(
                folder, "wmt", OPTIONS, sources, PAIRS_TO_TOKENISE=200, PAIRS_TO_ENCODE=500
            )
        )
    (small, before), (large, after) = found
    assert large > 7 * small
    assert after - before < 12_000, f"KiB: {found}"
