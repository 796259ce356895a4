"""BiRD, SST-2, STS-B, GLUE, MNLI by genre, IMDB, Amazon: real files if at hand, else small ones in
their layouts.
"""

import gzip
from collections import Counter

import pytest

from tests.data import upstream_files
from tests.data.packing import pack
from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import amazon, bird, glue, imdb, mnli_letters, paws, sst2, sts


def sizes(made) -> dict[str, int]:
    return {split: len(columns["item"]) for split, columns in made.tables.items()}


def test_bird(mirror):
    made = prepare_data(bird, {}, {"bird/BiRD.txt": mirror / "bird/BiRD.txt"})
    scores = made.tables["test"]["label"]
    assert sizes(made) == {"test": 3345} and (min(scores), max(scores)) == (0.026, 0.936)
    assert made.described == {"labels": None}


def test_abba_has_each_pair_in_both_orders(mirror):
    columns = prepare_data(
        bird, {"set": "abba"}, {"bird/BiRD-ABBA.txt": mirror / "bird/BiRD-ABBA.txt"}
    ).tables["test"]
    assert len(columns["item"]) == 410
    assert all(
        first.split() == second.split()[::-1]
        for first, second in zip(columns["first"], columns["second"], strict=True)
    )


def test_a_bird_file_that_is_none(tmp_path):
    (tmp_path / "BiRD.txt").write_text("pair\tterm1\tterm2\tscore\na\tb\tc\t1\n")
    with pytest.raises(UserError, match=r"BiRD.txt: no column 'relatedness score'"):
        prepare_data(bird, {}, {"bird/BiRD.txt": tmp_path / "BiRD.txt"})
    (tmp_path / "BiRD.txt").write_text("term1\tterm2\trelatedness score\na b\tb\t1.5\n")
    with pytest.raises(
        UserError, match=r"BiRD.txt:2: the label is '1.5', not a number from 0 to 1"
    ):
        prepare_data(bird, {}, {"bird/BiRD.txt": tmp_path / "BiRD.txt"})


def test_sst2_from_the_files_of_the_mirror(mirror):
    made = prepare_data(
        sst2, {}, {name: mirror / name for name in ("sst2/train.tsv", "sst2/dev.tsv")}
    )
    assert sizes(made) == {"train": 60000, "valid": 872, "test": 7349}
    assert made.tables["valid"]["first"][0] == "it 's a charming and often affecting journey ."
    assert Counter(made.tables["valid"]["label"]) == {1.0: 444, 0.0: 428}
    assert set(made.tables["train"]["second"]) == {None}


def test_stsb_from_the_files_of_the_mirror(mirror):
    sources = {f"stsb/sts-{part}.csv": mirror / f"stsb/sts-{part}.csv" for part in sts.PARTS}
    assert sizes(prepare_data(sts, {}, sources)) == {"train": 5749, "valid": 1500, "test": 1379}
    made = prepare_data(sts, {"in_distribution": "images", "test": "MSRvid"}, sources)
    assert sizes(made) == {"train": 1000, "valid": 250, "in_distribution": 250, "test": 250}
    # Images and MSRvid are equal in number in every part.
    parts = {"train": "train", "valid": "dev", "in_distribution": "test", "test": "test"}
    for split, part in parts.items():
        lines = (
            (mirror / f"stsb/sts-{part}.csv").read_text(encoding="utf-8").rstrip("\n").split("\n")
        )
        rows = [
            cells
            for line in lines
            if (cells := line.split("\t"))[1] == ("MSRvid" if split == "test" else "images")
        ]
        expected = [(cells[5], cells[6], float(cells[4])) for cells in rows]
        columns = (made.tables[split][name] for name in ("first", "second", "label"))
        assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize(
    ("module", "options"), [(sst2, {"test": 200}), (sts, {"in_distribution": "images"}), (bird, {})]
)
def test_stand_ins(module, options):
    made = prepare_data(module, {"from": "stand_in", **options}, {})
    assert made.protocol == "stand_in"
    assert all(len(set(columns["label"])) > 1 for columns in made.tables.values())


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    return upstream_files.write(tmp_path_factory.mktemp("upstream"))


@pytest.mark.parametrize(
    ("module", "options", "parts", "n_texts", "label"),
    [
        (glue, {"task": "cola", "validation": 6}, ["train valid", "test"], 1, lambda i, y: y),
        (
            glue,
            {"task": "mnli", "validation": 6},
            ["train valid", "test", "mismatched"],
            2,
            lambda i, y: y + i % 2,
        ),
        (glue, {"task": "mrpc"}, ["train valid", "test"], 2, lambda i, y: y),
        (glue, {"task": "qnli", "validation": 6}, ["train valid", "test"], 2, lambda i, y: y),
        (glue, {"task": "qqp", "validation": 6}, ["train valid", "test"], 2, lambda i, y: y),
        (glue, {"task": "rte", "validation": 6}, ["train valid", "test"], 2, lambda i, y: y),
        (sst2, {"test": 6}, ["train test", "valid"], 1, lambda i, y: y),
        (imdb, {}, ["train", "valid in_distribution"], 1, lambda i, y: y),
        (sts, {}, ["train", "valid", "test"], 2, lambda i, y: 4 * y + i % 2),
        (paws, {}, ["train", "valid", "in_distribution"], 2, lambda i, y: y),
        (
            amazon,
            {"train": 9, "valid": 6, "test": 24},
            ["train valid in_distribution", "test"],
            1,
            lambda i, y: i % 5,
        ),
    ],
)
def test_splits_have_the_rows_of_upstreams_parts(upstream, module, options, parts, n_texts, label):
    """`parts` are the splits that share the rows of each part; the labels are those that its rows
    were written with.
    """
    made = prepare_data(module, options, upstream)
    for seed, splits in enumerate(parts):
        columns = (
            [x for split in splits.split() for x in made.tables[split][name]]
            for name in ("first", "second", "label")
        )
        # the first line of QQP is broken
        rows = list(upstream_files.texts(seed))[options.get("task") == "qqp" :]
        assert Counter(zip(*columns, strict=True)) == Counter(
            (one, two if n_texts == 2 else None, label(i, y)) for i, one, two, y in rows
        )
    for split, key in (("valid", "validation"), ("test", "test")):
        assert sizes(made)[split] == options.get(key, sizes(made)[split])
    assert made.protocol == ("reduced" if module is amazon else "paper")


def test_what_is_left_of_few_reviews_is_in_distribution(upstream):
    made = prepare_data(amazon, {"train": 9, "valid": 6, "test": 12}, upstream)
    assert sizes(made) == {"train": 9, "valid": 6, "in_distribution": 9, "test": 12}
    assert "in_distribution: 9 reviews, 12 were asked for" in made.notes


def test_a_review_that_is_not_utf_8_is_one_line(tmp_path):
    archive = pack(tmp_path / "imdb.tar.gz", [("aclImdb/train/pos/1_9.txt", b"\xff")])
    with pytest.raises(UserError, match=r"imdb.tar.gz cannot be read \(.*\); fetch it again$"):
        imdb.read_imdb(archive)


def test_imdb_is_shuffled_and_tested_on_sst2(upstream):
    tables = prepare_data(imdb, {}, upstream).tables
    assert tables["train"]["label"] != sorted(tables["train"]["label"])
    assert tables["test"] == prepare_data(sst2, {"test": 6}, upstream).tables["valid"]


def test_mnli_by_genre(upstream):
    made = prepare_data(mnli_letters, {"train": 6}, upstream)
    assert sizes(made) == {"train": 6, "valid": 2, "in_distribution": 8, "test": 8}
    for splits, seed, genre in (("train valid", 0, 0), ("in_distribution", 1, 0), ("test", 2, 1)):
        first = Counter(text for split in splits.split() for text in made.tables[split]["first"])
        assert first == Counter(
            one for i, one, _, _ in upstream_files.texts(seed) if i % 3 == genre
        )
    with pytest.raises(UserError, match="key 'train' is 8; the training set has 8 pairs"):
        prepare_data(mnli_letters, {"train": 8}, upstream)


def test_mrpc_has_its_own_dev_set(upstream):
    made = prepare_data(glue, {"task": "mrpc"}, upstream)
    assert made.tables["valid"]["item"] == [f"{100 + i}/{200 + i}" for i in range(6)]


@pytest.mark.parametrize(
    ("line", "said"),
    [(b'{"overall": 5.0}', "reviewText"), (b"[" * 100_000, "maximum recursion depth exceeded")],
)
def test_a_bad_review_is_named(tmp_path, line, said):
    (tmp_path / "broken.json.gz").write_bytes(
        gzip.compress(b'{"reviewText": "fine", "overall": 5.0}\n' + line)
    )
    with pytest.raises(
        UserError, match=rf"broken.json.gz:2: not a review with reviewText and overall \(.*{said}"
    ):
        amazon.read_amazon_reviews(tmp_path / "broken.json.gz")


PAIRS = "index\tsentence1\tsentence2\tlabel\n"
QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


@pytest.mark.parametrize(
    ("source", "task", "part", "content", "message"),
    [
        (
            "glue/CoLA.zip",
            "cola",
            "train",
            "a\t1\t\tA\na\t2\t\tB\n",
            "train.tsv:2: the label is '2'",
        ),
        ("glue/RTE.zip", "rte", "dev", f"{PAIRS}0\tA\tB\tno\n", "dev.tsv:2: the label is 'no'"),
        (
            "glue/RTE.zip",
            "rte",
            "train",
            f"{PAIRS}0\tA\tB\tentailment\n1\tA\n",
            "train.tsv:3: 2 fields, 4 needed",
        ),
        (
            "glue/QQP-clean.zip",
            "qqp",
            "train",
            f"{QQP}1\t1\t2\tA?\tB?\tyes\n",
            "train.tsv:2: the label is 'yes'",
        ),
    ],
)
def test_a_bad_line_of_glue_is_named(tmp_path, source, task, part, content, message):
    files = {"train": f"{PAIRS}0\tA\tB\tentailment\n"} | {part: content}
    archive = pack(tmp_path / "a.zip", {f"{part}.tsv": text for part, text in files.items()})
    with pytest.raises(UserError, match=f"a.zip: {message}.* fetch (the file|it) again") as caught:
        prepare_data(glue, {"task": task, "validation": 1}, {source: archive})
    assert "\n" not in str(caught.value)
